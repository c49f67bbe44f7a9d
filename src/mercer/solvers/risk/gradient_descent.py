"""Least squares by batch gradient descent, on the coefficients of the expansion instead of theta."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from mercer._errors import DataError, NumericalError, ParameterError
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.lanczos import STEPS, largest_eigenvalue
from mercer.solvers.linear.linear_system import ScaledGram
from mercer.solvers.linear.low_rank import find_low_rank
from mercer.solvers.risk.products import stored_products
from mercer.solvers.solution import Certificate, Solution, Status

# Vectors of length n for each target, and the share of all columns at which a rank counts as low.
_VECTORS, _LOW = 8, 4
# Rounding of a product, in units of eps times the root of n, that may make the loss rise.
_ROUNDING = 16.0
_TILE = 512


@dataclass(frozen=True, eq=False)
class LeastSquares:
    r""":math:`\min_\theta \tfrac12 \sum_i w_i |y_i - \langle \theta, \phi(x_i) \rangle|^2`, one theta a target.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n).
    targets : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
        Above 0.
    convex : bool, default=True
        Whether K is positive semi-definite.

    Raises
    ------
    DataError
        If the shapes do not go together.
    """

    gram: GramMatrix
    targets: Vector
    weights: Vector
    convex: bool = True

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        if self.gram.shape != (n, n) or self.targets.shape[:1] != (n,) or self.weights.shape != (n,):
            raise DataError(
                f"targets {self.targets.shape} and weights {self.weights.shape} do not match K {self.gram.shape}."
            )


@dataclass(eq=False)
class HeldOut:
    """Held-out rows: the descent ends when their predictions no longer improve.

    Parameters
    ----------
    gram : GramMatrix
        K between these rows and those that are learned from, (m, n).
    targets : ndarray of shape (m, k)
    weights : ndarray of shape (m,)
    patience : int
        Iterations without a gain, after which the best one is taken.
    gain : float
        The score must be above the best one before by more than this to count as better.
    scores : list of float
        Filled in: R^2 before the first iteration and after each, the mean over the targets.
    """

    gram: GramMatrix
    targets: Vector
    weights: Vector
    patience: int
    gain: float
    scores: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        spread = self.targets - np.average(self.targets, axis=0, weights=self.weights)
        self._total = self.weights @ spread**2
        self._best, self._idle = -np.inf, 0

    def look(self, predictions: Vector) -> bool:
        """Score predictions (m, k); whether they are the best so far."""
        missed = self.weights @ (self.targets - predictions) ** 2
        # Targets that are all the same have no R^2; as in scikit-learn 1 if they are hit, else 0.
        shares = np.where(self._total > 0, missed / np.where(self._total > 0, self._total, 1.0), missed > 0)
        score = float(1.0 - shares.mean())
        self._idle = 0 if score > self._best + self.gain else self._idle + 1
        better = score > self._best
        self._best = max(score, self._best)
        self.scores.append(score)
        return better

    @property
    def exhausted(self) -> bool:
        """Whether ``patience`` iterations in a row had no gain."""
        return self._idle >= self.patience


@dataclass(frozen=True)
class Descent:
    """How a descent went: its step, the largest eigenvalue if it was computed, and the loss after 0, 1, ... steps."""

    learning_rate: float
    largest_eigenvalue: float | None
    losses: Vector
    n_iter: int


def descend(
    problem: LeastSquares,
    learning_rate: float | None = None,
    *,
    max_iter: int = 1000,
    tol: float = 1e-3,
    held_out: HeldOut | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Solution[Vector, Descent]:
    r"""Steps :math:`\beta \leftarrow \beta + \eta W (y - K \beta)` from :math:`\beta = 0`.

    With :math:`\theta = \sum_i \beta_i \phi(x_i)` these are the steps of gradient descent in theta. They converge for
    :math:`\eta < 2 / \lambda`, the largest eigenvalue of :math:`W^{1/2} K W^{1/2}`, and the loss then falls
    at each. If it rises, the step is longer than that.

    Parameters
    ----------
    problem : LeastSquares
    learning_rate : float, optional
        The length of a step; None for one over the largest eigenvalue.
    max_iter : int, default=1000
    tol : float, default=1e-3
        The length of the gradient, relative to that at the start, to stop at; 0 not to stop at any.
    held_out : HeldOut, optional
        What may end the descent earlier.
    n_jobs : int, optional
    verbose : bool, default=False

    Returns
    -------
    Solution
        ``value`` is beta (n, k), ``state`` a :class:`Descent`. The certificate has the loss, and as its bound from
        below what least squares leaves where the rank of K is seen to be low, otherwise 0.

    Raises
    ------
    ParameterError
        If the step is known to be too long before the first one is made: by the largest eigenvalue if K is stored,
        else by the largest entry of the diagonal.
    NumericalError
        If the loss rises.
    MemoryBudgetError
        If not even vectors and a tile of K fit.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> problem = LeastSquares(PrecomputedGram(np.diag([1.0, 2.0])), np.array([[1.0], [4.0]]), np.ones(2))
    >>> solution = descend(problem, 0.5, max_iter=2, tol=0.0)
    >>> solution.value.ravel().tolist(), solution.state.losses.tolist()
    ([0.75, 2.0], [8.5, 0.125, 0.03125])
    """
    start_time = time.perf_counter()
    with memory.track() as account, ExitStack() as stack, threads.workers(n_jobs):
        n, k = problem.targets.shape
        size = 8 * (n * (_VECTORS * k + STEPS) + min(n, _TILE) ** 2)
        stack.enter_context(memory.reserve(size, f"vectors of {n} rows and a tile of their kernel matrix"))
        walk = _Iterates(problem, learning_rate, stack)
        status = walk.go(max_iter, tol, held_out, stack, verbose)
        if status is Status.converged and not problem.convex:
            # The loss has stopped falling along the gradient, which proves nothing of other points.
            status = Status.stationary
        primal, violation = walk.quality()
        best = _least_loss(walk)
    state = Descent(walk.step, walk.largest, np.array(walk.losses), len(walk.losses) - 1)
    certificate = Certificate(
        primal,
        min(best, primal),
        violation,
        state.n_iter,
        time.perf_counter() - start_time,
        account.peak,
        status,
        {"gradient": violation},
        problem.convex,
        walk.storage.sentence,
    )
    return Solution(walk.beta, status, certificate, state)


class _Iterates:
    """The iterates: beta, what they leave of the targets, and the losses so far."""

    def __init__(self, problem: LeastSquares, learning_rate: float | None, stack: ExitStack) -> None:
        self.problem = problem
        self.storage = stored_products(problem.gram, stack)
        self.largest: float | None = None
        if learning_rate is None or self.storage.array is not None:
            self.largest = self._largest()
        if learning_rate is None:
            self.step = 1.0 / self.largest if self.largest else 1.0
            if not np.isfinite(self.step):
                raise NumericalError(
                    f"the largest eigenvalue of the kernel matrix is {self.largest:.3g}, whose inverse overflows; "
                    "scale the columns of X (sklearn.preprocessing.StandardScaler), or multiply the kernel by a number."
                )
        else:
            self.step = learning_rate
            # Without K in memory, a single row decides: no eigenvalue is needed to see that it overshoots.
            curvature = (
                float((problem.weights * problem.gram.diagonal()).max()) if self.largest is None else self.largest
            )
            if learning_rate * curvature > 2.0 * (1.0 + 1e-12):
                at_most = " at most, by the largest k(x, x)" if self.largest is None else ""
                raise ParameterError(
                    f"learning_rate={learning_rate:g} is too large: gradient descent diverges above 2 / lambda_max, "
                    "with the largest eigenvalue of the (weighted) kernel matrix, and the largest safe step is "
                    f"{2.0 / curvature:.6g}{at_most}. Pass a smaller one, or learning_rate='auto'."
                )
        self.beta = np.zeros_like(problem.targets)
        self.left = problem.targets.copy()
        self.losses = [self._loss(self.left)]
        if not np.isfinite(self.losses[0]):
            raise NumericalError("the squares of the targets overflow; divide y by a number.")
        self._lowest = self.losses[0]
        self._first: Vector | None = None

    def _product(self, V: Vector) -> Vector:
        return np.asarray(self.storage.gram @ V, dtype=np.float64)

    def _largest(self, start: Vector | None = None) -> float:
        scale = np.sqrt(self.problem.weights)

        def multiply(v: Vector) -> Vector:
            product: Vector = scale * self._product((scale * v)[:, None])[:, 0]
            with np.errstate(over="ignore", invalid="ignore"):
                usable = np.isfinite(product @ product)
            if not usable:
                raise NumericalError(
                    "products with the kernel matrix overflow; scale the columns of X "
                    "(sklearn.preprocessing.StandardScaler), or choose a kernel with smaller values."
                )
            return product

        value, _ = largest_eigenvalue(multiply, len(scale), start)
        return max(value, 0.0)

    def _loss(self, left: Vector) -> float:
        with np.errstate(over="ignore"):
            return 0.5 * float((self.problem.weights @ left**2).sum())

    def go(self, max_iter: int, tol: float, held_out: HeldOut | None, stack: ExitStack, verbose: bool) -> Status:
        """Make the steps."""
        weights = self.problem.weights[:, None]
        watched = None if held_out is None else stored_products(held_out.gram, stack).gram
        predictions = np.zeros(held_out.targets.shape if held_out is not None else (0, 0))
        best, status = self.beta, Status.iteration_limit
        progress = Progress(max_iter, "gradient descent", verbose)
        while True:
            threads.checkpoint()
            if held_out is not None:
                if held_out.look(predictions):
                    best = self.beta.copy()
                if held_out.exhausted:
                    status = Status.converged
                    break
            gradient = weights * self.left
            change = self._product(gradient)
            # In the space of the kernel, where the gradient is the sum of these weights times phi(x_i).
            lengths = np.sqrt(np.maximum((gradient * change).sum(axis=0), 0.0))
            if self._first is None:
                self._first = lengths
            # The length has no digits below the root of rounding, so that it may be 0 before the gradient is.
            if tol > 0 and (lengths <= tol * self._first).all():
                status = Status.converged
                break
            if len(self.losses) > max_iter:
                break
            self.beta = self.beta + self.step * gradient
            self.left = self.left - self.step * change
            if watched is not None:
                predictions += self.step * (watched @ gradient)
            self._check(self._loss(self.left))
            progress.advance()
            record("steps of gradient descent", len(self.losses) - 1, {"primal": self.losses[-1]})
        if held_out is not None:
            self.beta = best
        return status

    def _check(self, loss: float) -> None:
        """Keep the loss; raise if it is above the lowest one by more than rounding."""
        count = len(self.losses)
        eps = float(np.finfo(np.float64).eps)
        allowed = _ROUNDING * eps * count * np.sqrt(len(self.left) * self.losses[0])
        if not np.sqrt(loss) <= np.sqrt(self._lowest) + allowed:
            before = self.losses[-1]
            start = np.sqrt(self.problem.weights) * self.left[:, 0]
            usable = np.isfinite(start).all() and start.any()
            most = 2.0 / max(self._largest(start if usable else None), float(np.finfo(float).tiny))
            reason = (
                f"it is above 2 / lambda_max = {most:.6g}, the largest safe step. Pass a smaller one, or "
                "learning_rate='auto'."
                if self.step > most
                else "the kernel matrix has a negative eigenvalue, along which no step converges. Choose another "
                f"kernel, or fewer iterations (max_iter={count - 1})."
            )
            raise NumericalError(
                f"gradient descent diverges with steps of {self.step:.6g}: the loss has risen from {before:.6g} to "
                f"{loss:.6g} in iteration {count}; {reason}"
            )
        self.losses.append(loss)
        self._lowest = min(self._lowest, loss)

    def quality(self) -> tuple[float, float]:
        """The loss and the length of the gradient, relative to that at the start, at the answer; by new products."""
        left = self.problem.targets - self._product(self.beta)
        gradient = self.problem.weights[:, None] * left
        lengths = np.sqrt(np.maximum((gradient * self._product(gradient)).sum(axis=0), 0.0))
        first = np.zeros_like(lengths) if self._first is None else self._first
        ratios = np.divide(lengths, first, out=np.zeros_like(lengths), where=first > 0)
        return self._loss(left), float(ratios.max(initial=0.0))


def _least_loss(walk: _Iterates) -> float:
    """A lower bound of the loss: what least squares leaves if the rank of K is seen to be low, else 0."""
    problem = walk.problem
    n, most = len(problem.targets), len(problem.targets) // _LOW
    if walk.storage.array is None or most == 0 or not problem.convex or not fits(16 * n * most):
        return 0.0
    scaled = ScaledGram(walk.storage.gram, np.sqrt(problem.weights))
    with memory.reserve(16 * n * most, "the low-rank form of the kernel matrix"):
        form = find_low_rank(scaled, most)
        if form is None:
            return 0.0
        outside = form.into(scaled.apply_scale(problem.targets))[form.Q.shape[1] :]
    return 0.5 * float((outside**2).sum())
