"""Learners whose functions are restricted to the span of few rows: the parameters that they share, and their parts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Positions, Vector
from mercer.data.seeds import generator
from mercer.engine import memory
from mercer.estimators.shared.baseline import no_offset_remedy, warn_if_worse_than_mean
from mercer.estimators.shared.parameters import require_choice, require_whole
from mercer.gram import Gram
from mercer.gram.hold import evaluated
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.landmarks.choose import Landmarks, Names, choose
from mercer.solvers.restricted.least_squares import RestrictedCG, RestrictedLeastSquares, RestrictedState
from mercer.solvers.restricted.passes import Passes, StoredRows
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Certificate, Solution

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

RESTRICTED = "conjugate gradients over landmarks"
# A gap of this share of the objective changes predictions by less than a tenth of the residuals.
_VISIBLE = 1e-2
# Rows on which a fit is compared with the mean.
_SAMPLE = 2000


def require_approximation(learner: Any) -> bool:
    """Whether a learner is to be restricted to landmarks; raises if its parameters do not say how.

    Raises
    ------
    ParameterError
        If a parameter has no such value.
    """
    require_choice(learner, "approximation", (None, "nystroem"))
    if learner.approximation is None:
        return False
    auto = ", or 'auto'" if learner.may_leave_landmarks_open else ""
    require_whole(learner, "n_landmarks", f"a whole number of at least 1{auto}")
    if learner._is_precomputed:
        raise ParameterError(
            'approximation="nystroem" evaluates the kernel between rows and landmarks, and kernel is "precomputed", so '
            "that all values exist already. Leave out approximation, or pass the kernel and the rows."
        )
    return True


@dataclass(frozen=True, eq=False)
class Restriction:
    """The landmarks of a fit, the factor of their kernel matrix, and kernel values of all rows with them, lazily."""

    landmarks: Landmarks
    white: Whitening
    gram: GramMatrix

    def rows(self, targets: Matrix, weights: Vector, n_jobs: int | None) -> StoredRows:
        """What solvers pass over."""
        return StoredRows(self.gram, targets, weights, n_jobs)

    def of_rows(self, positions: Positions) -> Restriction:
        """The same for some of the rows."""
        return dataclasses.replace(self, gram=self.gram.restrict(positions, None))

    def with_positions_in(self, used: Positions) -> Restriction:
        """The same with positions of landmarks among all rows, of which the fit had those at ``used``."""
        indices = self.landmarks.indices
        if indices is None:
            return self
        return dataclasses.replace(self, landmarks=dataclasses.replace(self.landmarks, indices=used[indices]))


def restriction(learner: KernelEstimator, X: Any, weights: Vector | None, seed: Any = None) -> Restriction:
    """Choose landmarks among the rows of a fit for its ``kernel_``, and prepare what solvers need.

    ``seed`` is that of the learner.

    Raises
    ------
    IndefiniteKernelError
        If the kernel is not positive semi-definite.
    """
    kernel: Any = learner.kernel_
    options: Any = learner
    if weights is not None and (weights == weights[0]).all():
        weights = None
    landmarks = choose(
        kernel,
        X,
        options.n_landmarks,
        options.landmarks,
        generator(seed),
        names=Names(type(learner).__name__),
        sample_weight=weights,
    )
    m = landmarks.rows.shape[0]
    gram = Gram(kernel, X, landmarks.rows, dtype=np.float64, n_jobs=learner.n_jobs)
    with memory.reserve(2 * 8 * m * m, f"the kernel matrix of {m:,} landmarks and its factor", _FEWER):
        K = np.asarray(kernel.block(landmarks.rows.astype(np.float64, copy=False)), dtype=np.float64)
        white = Whitening.of(K)
    return Restriction(landmarks, white, evaluated(gram) if gram.expensive else gram)


def continued(learner: KernelEstimator, parts: Restriction) -> tuple[Matrix, Vector] | None:
    """Where a fit starts that goes on from another one: coordinates (m, k) of its functions, projected, and offsets."""
    before = learner.continues
    if before is None:
        return None
    landmarks, kernel = parts.landmarks.rows, cast(Kernel, learner.kernel_)
    offsets = np.broadcast_to(np.asarray(before.offsets, dtype=np.float64), len(before.dual_coef))
    values = Gram(kernel, landmarks, before.rows, dtype=np.float64, n_jobs=learner.n_jobs) @ before.dual_coef.T
    return parts.white.pull(np.asarray(values)), offsets


def ridge_on_landmarks(
    learner: Any, X: Any, targets: Matrix, weights: Vector | None, alphas: Vector
) -> tuple[Landmarks, Solution[Matrix, RestrictedState]]:
    """Regularised least squares over landmarks for ``kernel_``, ``tol`` and the parameters of landmarks.

    Parameters
    ----------
    learner : KernelEstimator
        It has a kernel.
    X : rows
    targets : ndarray of shape (n, k)
    weights : ndarray of shape (n,), optional
    alphas : ndarray of shape (k,)

    Returns
    -------
    landmarks : Landmarks
        With positions among all rows.
    solution : Solution
        The coefficients of the landmarks, (m, k).

    Warns
    -----
    MercerWarning
        If rounding keeps the gap above the tolerance by far.
    """
    used = np.arange(len(targets)) if weights is None else np.flatnonzero(weights)
    if len(used) < len(targets):
        X, targets, weights = X[used], targets[used], None if weights is None else weights[used]
    parts = restriction(learner, X, weights, learner.random_state)
    own = np.ones(len(targets)) if weights is None else weights
    solution = solve_ridge(learner, parts, parts.rows(targets, own, learner.n_jobs), alphas)
    return parts.with_positions_in(used).landmarks, solution


def solve_ridge(learner: Any, parts: Restriction, rows: Passes, alphas: Vector) -> Solution[Matrix, RestrictedState]:
    """Least squares over landmarks, with warnings where the answer is bad."""
    problem = RestrictedLeastSquares(rows, parts.white, alphas)
    start = continued(learner, parts)
    solution = RestrictedCG(learner.tol).solve(problem, None if start is None else start[0])
    name = type(learner).__name__
    _warn_of_gap(name, solution.certificate, learner.tol)
    _warn_if_worse_than_mean(name, problem, solution.value)
    return solution


def _warn_if_worse_than_mean(learner: str, problem: RestrictedLeastSquares, coefficients: Matrix) -> None:
    """Warn if a function is worse than the mean of the targets, on a sample of the rows of its fit."""
    K, part = problem.rows.sample(_SAMPLE, np.random.RandomState(0))
    weights = None if (part.weights == 1.0).all() else part.weights[:, 0]
    warn_if_worse_than_mean(learner, part.targets, K @ coefficients, weights, no_offset_remedy(part.targets))


def _warn_of_gap(learner: str, certificate: Certificate, tol: float) -> None:
    """Warn if a solution may be visibly worse than the best one over its landmarks."""
    if certificate.relative_gap > max(tol, _VISIBLE):
        warn_user(
            f"{learner}: the objective over the landmarks may be {100 * certificate.relative_gap:.2g} % above the "
            f"least one after {certificate.iterations} passes over the rows. Raise alpha, or scale the columns of X.",
            MercerWarning,
        )


_FEWER = "Pass a smaller n_landmarks, or raise the budget with mercer.config(memory=...)."
