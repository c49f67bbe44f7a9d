r"""The mode of latent functions over landmarks, for classification: Newton's method with all second derivatives.

With ``K_mm = L L^T`` for m landmarks and ``F = K_nm L^-T``, the latent values of n rows are ``f = F u`` for each of c
functions, and the prior of the coordinates u (m, c) is the standard normal distribution. The mode minimises

    -log p(y | F u) + |u|^2 / 2

With ``g`` for the slopes of ``log p`` by f, the gradient is ``u - F^T g``, and the second derivatives are
``A = I + (I (x) F)^T W (I (x) F)``. W is a sum over pairs of classes, as
:class:`~mercer.losses.log_loss.Slope` has it, so that all of A follows from one matrix
``F^T diag(w_ab) F`` for each pair, which is positive semi-definite.

The dual problem at ``g`` has the gap ``|F^T g - u|^2 / 2``, as that of :mod:`mercer.solvers.gaussian.mode` has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.losses.log_loss import LogLoss, log_loss
from mercer.solvers.algebra.line_search import flat_step
from mercer.solvers.gaussian.cross import CrossCovariance, CrossValues
from mercer.solvers.gaussian.inducing import kernel_blocks, symmetric
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Certificate, Status

# Steps without a smaller gradient or a lower objective after which rounding is all that is left.
_IDLE, _FALL = 4, 1e-9
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class InducingClassification:
    """Labels of rows whose latent functions are over landmarks.

    Parameters
    ----------
    covariance : CrossCovariance
        Between n rows and m landmarks, without noise.
    codes : ndarray of shape (n,)
        The numbers of the classes of the rows, from 0.
    classes : int, default=2
        Number of classes. Two have one latent function, and more have one each.
    """

    covariance: CrossCovariance
    codes: NDArray[np.intp]
    classes: int = 2

    @property
    def functions(self) -> int:
        """Latent functions."""
        return 1 if self.classes == 2 else self.classes

    def loss(self, rows: slice) -> LogLoss:
        """That of some rows."""
        return log_loss(self.codes[rows], 1.0, self.classes)


@dataclass(frozen=True, eq=False)
class InducingPoint:
    """Coordinates with what one pass over the rows tells of them, in the symbols of the module.

    ``latent`` is F u, (n, c), ``residual`` ``F^T g - u``, (m, c), and ``factor`` that of A in the upper triangle,
    (c m, c m). ``explained`` is the diagonal of ``F F^T``, and ``rounding`` the size of rounding errors in the
    residual.
    """

    u: Matrix
    latent: Matrix
    objective: float
    residual: Matrix
    factor: Matrix
    explained: Vector
    rounding: float

    @property
    def violation(self) -> float:
        """The largest entry of the residual, in deviations of the prior."""
        return float(np.abs(self.residual).max())

    @property
    def gap(self) -> float:
        """The duality gap."""
        return 0.5 * float((self.residual**2).sum())

    @property
    def evidence(self) -> float:
        """Laplace's approximation to ``log p(y)``, where the point is the mode."""
        return -self.objective - float(np.log(self.factor.diagonal()).sum())

    def solve(self, V: Matrix) -> Matrix:
        """``A^-1 V`` for V (m, c)."""
        row = np.array(V.T, dtype=np.float64, order="C").reshape(1, -1)
        lapack.solve_cholesky(self.factor, row)
        return row.reshape(V.shape[::-1]).T


@dataclass(frozen=True, eq=False)
class InducingMode:
    """The mode at one ``theta``, with the kernel values and the factor of the landmarks that belong to it."""

    values: CrossValues
    white: Whitening
    point: InducingPoint
    steps: int
    status: Status

    @property
    def weights(self) -> Matrix:
        """The coefficients of the landmarks, (m, c): the means are ``k(x, Z) weights``."""
        return np.ascontiguousarray(self.white.coefficients(self.point.u))

    def certificate(self, seconds: float, peak_bytes: int) -> Certificate:
        """Of the negative log of the posterior, up to a constant."""
        point = self.point
        violation, dual = point.violation, point.objective - point.gap
        return Certificate(
            point.objective, dual, violation, self.steps, seconds, peak_bytes, self.status, {"mode": violation}
        )


def find_inducing_mode(
    problem: InducingClassification,
    theta: Vector,
    *,
    start: Matrix | None = None,
    tol: float = 1e-10,
    max_iter: int = 100,
) -> InducingMode:
    """Find the mode at parameters of the covariance.

    Parameters
    ----------
    problem : InducingClassification
    theta : ndarray of shape (p,)
    start : ndarray of shape (m, c), optional
        Coordinates to begin with, as of neighbouring parameters; used if they are better than 0.
    tol : float, default=1e-10
        The largest entry of the gradient to stop at. Where rounding errors in its sums are larger, these count.
    max_iter : int, default=100
        Maximum number of Newton steps.

    Raises
    ------
    IndefiniteKernelError, NumericalError
        If the matrix of the landmarks is not positive semi-definite, or values are not finite or too large.

    Notes
    -----
    A pass evaluates the kernel and takes ``n m^2`` operations for F and as many for each pair of classes. Nothing of
    the size n x m is stored.
    """
    values = problem.covariance.at(theta)
    white = Whitening.of(values.landmarks())
    point = _begin(problem, values, white, start)
    steps, idle, best, lowest = 0, 0, np.inf, np.inf
    progress = Progress(None, "mode")
    while (status := _status(point, tol, max_iter, steps, idle)) is None:
        point = _advance(problem, values, white, point)
        steps += 1
        # Far from the mode, as with a prior of large variance, only the objective falls from step to step.
        falls = point.violation < 0.9 * best or point.objective < lowest - _FALL * abs(lowest)
        idle = 0 if falls else idle + 1
        best, lowest = min(best, point.violation), min(lowest, point.objective)
        progress.advance()
        record("Newton steps", steps, {"violation": point.violation})
    return InducingMode(values, white, point, steps, status)


def _status(point: InducingPoint, tol: float, max_iter: int, steps: int, idle: int) -> Status | None:
    """How the search ends here; None where it goes on."""
    if point.violation <= max(tol, point.rounding):
        return Status.converged
    if idle >= _IDLE:
        return Status.stalled
    return Status.iteration_limit if steps >= max_iter else None


def _begin(
    problem: InducingClassification, values: CrossValues, white: Whitening, start: Matrix | None
) -> InducingPoint:
    """From ``start``, if it is better than 0."""
    nothing = np.zeros((problem.covariance.shape[1], problem.functions))
    if start is not None and start.shape == nothing.shape:
        point = _pass(problem, values, white, start)
        if point.objective < len(problem.codes) * math.log(problem.classes):
            return point
    return _pass(problem, values, white, nothing)


def _advance(
    problem: InducingClassification, values: CrossValues, white: Whitening, point: InducingPoint
) -> InducingPoint:
    """One Newton step, shorter where it would overshoot."""
    direction = point.solve(point.residual)
    whole = _pass(problem, values, white, point.u + direction)
    # Latent values are linear in u: shorter steps need no pass.
    change, loss = whole.latent - point.latent, problem.loss(slice(None))

    def slope(size: float) -> float:
        by_latent = float(np.vdot(loss.pull(point.latent + size * change), change))
        return float(np.vdot(point.u + size * direction, direction)) - by_latent

    size = flat_step(slope)
    return whole if size == 1.0 else _pass(problem, values, white, point.u + size * direction)


def _pass(problem: InducingClassification, values: CrossValues, white: Whitening, u: Matrix) -> InducingPoint:
    """Everything at ``u``, in one pass over the rows."""
    n, m = problem.covariance.shape
    pairs = problem.loss(slice(0)).pairs
    sums, products = np.zeros((len(pairs), m, m)), np.zeros(u.shape)
    latent, explained = np.empty((n, u.shape[1])), np.empty(n)
    value, slopes, weight = 0.0, 0.0, 0.0
    for rows, block in kernel_blocks((n, m), values):
        F, loss = white.features(block), problem.loss(rows)
        latent[rows] = f = lapack.multiply(F, u)
        explained[rows] = np.einsum("ij,ij->i", F, F)
        slope = loss.slope(f)
        g, w = slope.pull, slope.pair_weights()
        value += loss.value(f)
        slopes, weight = slopes + float(np.abs(g).sum()), weight + float(w.sum())
        products += lapack.multiply(F.T, g)
        for total, root in zip(sums, np.sqrt(w).T, strict=True):
            lapack.add_square_of_columns(total, F * root[:, None])
    reach = math.sqrt(float(explained.max(initial=0.0)))
    rounding = _EPS * reach * (slopes + reach * float(np.linalg.norm(u)) * weight)
    objective = value + 0.5 * float((u**2).sum())
    factor = _factor(pairs, sums, u.shape[1])
    return InducingPoint(u, latent, objective, products - u, factor, explained, rounding)


def _factor(pairs: list[tuple[int, int]], sums: Matrix, functions: int) -> Matrix:
    """The factor of A, from the sums of all pairs."""
    m = sums.shape[1]
    A = np.zeros((functions * m, functions * m))
    parts = [slice(j * m, (j + 1) * m) for j in range(functions)]
    for (a, b), total in zip(pairs, sums, strict=True):
        symmetric(total)
        for j in {a, b}:
            A[parts[j], parts[j]] += total
        if a != b:
            A[parts[a], parts[b]] -= total
    np.einsum("ii->i", A)[...] += 1.0
    if not np.isfinite(A.diagonal()).all() or lapack.factor_cholesky(A):
        raise NumericalError(
            "the second derivatives of the posterior over the landmarks are singular to working precision, or "
            "overflow; use a kernel of smaller variance, bound it (kernel.bounded), or scale the columns of X."
        )
    return A
