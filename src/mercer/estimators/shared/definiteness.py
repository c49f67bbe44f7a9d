"""The rule of all learners for kernels that are not positive semi-definite.

``allow_indefinite`` is ``"warn"``, True or False. A kernel states whether it is positive semi-definite. A precomputed
matrix and a user-defined function do not, so they are examined on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer._errors import IndefiniteKernelError, IndefiniteKernelWarning, warn_user
from mercer.estimators.shared.degenerate import warn_if_degenerate
from mercer.estimators.shared.parameters import require_choice
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.hold import evaluated
from mercer.gram.protocol import GramMatrix
from mercer.kernels.function import rests_on_a_function
from mercer.kernels.kernel import Kernel
from mercer.solvers.curvature import require_conditionally_positive, require_kernel, require_positive

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator


@dataclass(frozen=True)
class Policy:
    """How a learner treats an indefinite kernel.

    Parameters
    ----------
    result : str
        A sentence that says what the result of the fit is.
    permission : str
        What ``allow_indefinite=True`` is for, after a warning.
    instead : str
        What it gives in place of an error.
    from_declaration : bool
        Whether to warn because of the kernel's own declaration. If not, the learner reports the spectrum itself.
    needs_matrix : bool
        Whether the matrix on the training rows has to be positive semi-definite, unless ``allow_indefinite=True``.
    """

    result: str = "The result is a stationary point without a guarantee."
    permission: str = "silence this warning"
    instead: str = "get a stationary point without a guarantee"
    from_declaration: bool = True
    needs_matrix: bool = False


STATIONARY = Policy()
NO_SPACE = Policy(
    "The learned function lies in no feature space, so there is no guarantee for it.",
    instead="use it without a guarantee",
)
SPECTRUM = Policy(
    "The components describe its positive part only.",
    instead="get the components of its positive part",
    from_declaration=False,
)
_RAISED = "raise the diagonal of the matrix as far as needed"
PROCESS = Policy(
    "It serves as a covariance function as long as its matrix on the training rows is positive semi-definite; fit "
    "raises an error where it is not.",
    _RAISED,
    _RAISED,
    needs_matrix=True,
)


def is_usable(kernel: Kernel, intercept: bool) -> bool:
    """Whether a kernel declares that it makes the problem convex; an intercept makes the weights sum to zero.

    >>> from mercer.kernels import NegativeDistance
    >>> is_usable(NegativeDistance(), True), is_usable(NegativeDistance(), False)
    (True, False)
    """
    return kernel.definiteness == "positive" or (intercept and kernel.definiteness == "conditional")


def is_taken_on_trust(kernel: Kernel | None) -> bool:
    """Whether only the user states that the kernel is positive: for a matrix (None), and for a function."""
    return kernel is None or rests_on_a_function(kernel)


def require_rule(learner: KernelEstimator) -> None:
    """Raise ParameterError unless ``allow_indefinite`` is "warn", True or False."""
    require_choice(learner, "allow_indefinite", ("warn", True, False))


def judge_kernel(learner: KernelEstimator, kernel: Kernel, intercept: bool) -> None:
    """Warn or raise if, by the declaration of the kernel, the learner's problem is not convex.

    Raises
    ------
    IndefiniteKernelError
        With ``allow_indefinite=False``; the message names the indefinite part of the kernel.
    """
    policy = learner._if_indefinite
    if policy is None or is_usable(kernel, intercept):
        return
    conditional = kernel.definiteness == "conditional"
    part = kernel.indefinite_part()
    whole = "" if part == kernel else f" in {kernel!r}"
    finding = f"{part!r}{whole} is {'only conditionally positive' if conditional else 'indefinite'}"
    centred = " kernel.centered(X) makes it positive." if conditional else ""
    if _mode(learner) == "raise":
        raise IndefiniteKernelError(
            f"{type(learner).__name__} needs a positive semi-definite kernel, but {finding}. Choose another kernel, or "
            f"pass allow_indefinite=True to {policy.instead}.{centred}",
            finding=finding,
        )
    if policy.from_declaration:
        _warn(learner, finding, centred)


def judge_matrix(
    learner: KernelEstimator, gram: GramMatrix, positions: NDArray[np.intp], precision: Any, intercept: bool
) -> bool:
    """Whether the learner's problem on the matrix ``gram`` of ``kernel_`` is convex; warn or raise if it is not.

    Matrices and functions are examined, unless ``allow_indefinite=True``, which makes them count as indefinite.

    Parameters
    ----------
    learner : KernelEstimator
        With ``kernel_``.
    gram : GramMatrix
        K, symmetric, (n, n).
    positions : ndarray of shape (n,)
        Those of its rows in X, for messages.
    precision : dtype
        Of the data.
    intercept : bool
        Whether the weights have to sum to 0.

    Raises
    ------
    IndefiniteKernelError
        If it is not convex, and the learner needs it to be, or ``allow_indefinite`` is False.
    KernelValueError
        If a function is not symmetric.
    """
    kernel, policy = learner.kernel_, learner._if_indefinite
    examined = _is_examined(learner)
    if kernel is not None and not is_taken_on_trust(kernel):
        usable = is_usable(kernel, intercept)
        if not usable and examined and policy is not None and policy.needs_matrix:
            _require_covariance(gram, policy)
        return usable
    declared = kernel is None or is_usable(kernel, intercept)
    try:
        if kernel is not None:
            # A function that declares itself indefinite was judged by that.
            curved = not (examined and declared)
            require_kernel(gram, positions, precision, balanced=intercept, curved=curved, name=repr(kernel))
            warn_if_degenerate(learner, kernel, gram, gram.block)
        elif examined:
            (require_conditionally_positive if intercept else require_positive)(gram)
    except IndefiniteKernelError as error:
        if policy is not None and policy.needs_matrix:
            raise _no_covariance(error, policy) from None
        if _mode(learner) == "raise" or policy is None:
            raise
        _warn(learner, error.finding)
        return False
    return declared and examined


def _require_covariance(gram: GramMatrix, policy: Policy) -> None:
    """Raise if a kernel that is declared indefinite has a matrix that is not a covariance matrix."""
    try:
        require_positive(gram)
    except IndefiniteKernelError as error:
        raise _no_covariance(error, policy) from None


def _no_covariance(error: IndefiniteKernelError, policy: Policy) -> IndefiniteKernelError:
    return IndefiniteKernelError(
        f"{error.finding}, so it is not the covariance matrix of a Gaussian process. Choose another kernel or other "
        "values of its parameters, repair the matrix with mercer.validity.nearest(K), or pass allow_indefinite=True "
        f"to {policy.permission}.",
        finding=error.finding,
    )


def judge_covariance(learner: KernelEstimator, rows: Any, precision: Any, given: GramMatrix | None = None) -> bool:
    """The same for a Gaussian process on all ``rows``, which evaluates its matrices itself, unless one is given."""
    kernel = learner.kernel_
    if kernel is None:
        gram: Any = PrecomputedGram(rows)
    else:
        gram = Gram.of_checked(kernel, rows, None, None, learner.n_jobs)
        if given is not None:
            gram = given.astype(gram.dtype)
        # For a function a sample is examined, for a positive kernel nothing.
        elif not is_usable(kernel, False):
            gram = evaluated(gram)
    return judge_matrix(learner, gram, np.arange(gram.shape[0]), precision, False)


def judge_finding(learner: KernelEstimator, finding: str) -> None:
    """Warn or raise for an indefiniteness that the learner has detected.

    Raises
    ------
    IndefiniteKernelError
        With ``allow_indefinite=False``.
    """
    if _mode(learner) == "raise":
        raise IndefiniteKernelError(
            f"{finding}. Choose another kernel, or pass allow_indefinite=True. mercer.validity.nearest repairs a "
            "matrix.",
            finding=finding,
        )
    _warn(learner, finding, " mercer.validity.nearest repairs a matrix.")


def counts_as_definite(learner: KernelEstimator) -> bool:
    """Whether a Gaussian process may assume that its covariance is positive definite, and fail if it is not.

    Otherwise, with ``allow_indefinite=True``, it adds to the diagonal until the covariance is positive definite.
    """
    kernel = learner.kernel_
    known = kernel is not None and not is_taken_on_trust(kernel) and is_usable(kernel, False)
    return known or _is_examined(learner)


def _is_examined(learner: KernelEstimator) -> bool:
    """Whether the learner has a rule for indefinite kernels, and the user has not silenced it."""
    return learner._if_indefinite is not None and _mode(learner) != "silent"


def _mode(learner: KernelEstimator) -> Literal["warn", "raise", "silent"]:
    """Return the mode for ``allow_indefinite``; NumPy's booleans, 0 and 1 count as booleans."""
    allowed = learner.allow_indefinite
    if isinstance(allowed, str):
        return "warn"
    return "silent" if allowed else "raise"


def _warn(learner: KernelEstimator, finding: str, advice: str = "") -> None:
    """Warn of a finding, unless the user has silenced such warnings."""
    policy = learner._if_indefinite
    if policy is None or _mode(learner) != "warn":
        return
    warn_user(
        f"{type(learner).__name__}: {finding}. {policy.result} Pass allow_indefinite=True to {policy.permission}, or "
        f"False to raise an error instead.{advice}",
        IndefiniteKernelWarning,
    )
