"""Warn of repeated rows where parameters are chosen by leaving out one row."""

from __future__ import annotations

from mercer._errors import MercerWarning, warn_user
from mercer._types import CheckedRows, Positions, Vector
from mercer.data.distinct import equal_rows

# Share of the rows from which on copies decide what leave-one-out chooses.
_MANY = 0.1


def warn_of_repeated_rows(learner: str, X: CheckedRows, y: Vector, rows: Positions) -> None:
    """Warn if more than a tenth of some ``rows`` of ``X`` repeat an earlier one and its targets ``y`` (n,) or (n, t).

    Rows that are equal by chance, such as those of a few categories, mostly differ in their targets: there is no
    warning unless most of the equal rows agree in them.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> X, y = np.arange(4.0)[:, None], np.array([0.3, 1.2, 0.1, 0.9])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_repeated_rows("Model", np.tile(X, (2, 1)), np.tile(y, 2), np.arange(8))
    >>> str(caught[0].message)[:62]
    'Model: 4 of the 8 rows repeat another row and its target. Leav'
    """
    n = len(rows)
    if len(rows) < X.shape[0]:
        X, y = X[rows], y[rows]
    first, owner = equal_rows(X)
    repeated = n - len(first)
    if repeated <= _MANY * n:
        return
    targets = y.reshape(n, -1)
    copies = int((targets == targets[first][owner]).all(axis=1).sum()) - len(first)
    if copies > max(_MANY * n, 0.5 * repeated):
        warn_user(
            f"{learner}: {copies} of the {n} rows repeat another row and its target. Leaving out one row leaves its "
            "copies in, so that the errors are too small and the choice follows the noise. Remove the copies, or "
            "choose by folds that keep copies together, as in KernelSearchCV(..., cv=GroupKFold()) with groups.",
            MercerWarning,
        )
