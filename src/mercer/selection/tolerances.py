"""The tolerances of the fits of a search: loose ones to begin with."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.nu_svr import NuSVR
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.solvers.svm.smo import EXACT

# Times the own tolerance. On 4858 rows of covtype, scores differ by a third of a standard error, at 0.6 of the time.
_LOOSER = 100.0
_LOOSEST = 0.1


# A tolerance above this share of the spread of the targets ends a fit before it has learned them, and one below the
# second share is not met, because of rounding. The third is that of the default where the spread is 1.
_COARSE, _UNREACHABLE, _USUAL = 0.1, 1e-10, 1e-3


def tolerance_for(learner: Any, y: Any) -> float | None:
    """Return a tolerance for targets so small or large that the learner's own is meaningless; None otherwise.

    The tolerance of a support vector regression is in units of the targets.

    Examples
    --------
    >>> y = np.array([0.0, 2.0])
    >>> tolerance_for(SVR(), y), tolerance_for(SVR(), 1e-6 * y), tolerance_for(SVC(), y)
    (None, 1e-09, None)
    """
    if type(learner) not in (SVR, NuSVR) or not isinstance(learner.solver, str):
        return None
    spread = float(np.std(np.asarray(y, dtype=np.float64)))
    is_usable = _UNREACHABLE * spread <= learner.tol <= _COARSE * spread
    return None if spread == 0.0 or is_usable else float(f"{_USUAL * spread:.4g}")


def tolerances_of(learner: Any, rows: int) -> tuple[float | None, float | None]:
    """Return the tolerance of a learner, and the one to begin with.

    Parameters
    ----------
    learner : estimator
    rows : int
        Of the largest fit.

    Returns
    -------
    own, loose : float or None
        None for a learner whose fits cannot be loosened or tightened by ``tol``: direct solutions, fits to few rows,
        which are exact, and those whose solver has its own tolerance.

    Examples
    --------
    >>> tolerances_of(SVC(), 5000), tolerances_of(SVC(tol=0.2), 5000), tolerances_of(SVC(), 500)
    ((0.001, 0.1), (0.2, None), (None, None))
    """
    if type(learner) not in (SVC, NuSVC, SVR, NuSVR) or learner.solver != "smo" or rows <= EXACT:
        return None, None
    own = float(learner.tol)
    loose = min(_LOOSER * own, _LOOSEST)
    return own, loose if loose > own else None
