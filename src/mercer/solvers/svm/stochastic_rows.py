"""The two forms of stochastic descent: rows given by their features, and rows given by kernel values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Integers, Vector
from mercer.data.statements import Count, Floats, Number, Table
from mercer.engine import memory, threads
from mercer.engine.tiles import spans
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.loops import sgd
from mercer.loops.losses import GIVEN
from mercer.loops.sparse_rows import SparseRows
from mercer.losses import Loss

# Steps between two checks for an interruption; for kernels, also the rows evaluated at once.
_CHUNK = 512
# The fewest rows, where the memory budget has no room for that many.
_LEAST = 16
_FEATURE_CHUNK = 8192


# The least number that can be divided by.
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass
class DescentState:
    """The state of stochastic descent.

    Parameters
    ----------
    theta : ndarray of shape (k, p)
        The sum of all steps, with ``w = theta / (alpha (steps + 1 + shift))``.
    lagged : ndarray of shape (k, p)
        The same with each step times the clock at that time.
    alpha : float
        The regulariser.
    steps : int
        Steps so far.
    shift : float
        By how much the step length runs ahead.
    clock : float
        The sum of ``1 / (alpha (t + shift))`` over the steps.

    Examples
    --------
    >>> DescentState(np.array([[4.0]]), np.zeros((1, 1)), alpha=0.5, steps=3).last()
    array([[2.]])
    """

    theta: Vector
    lagged: Vector
    alpha: float
    steps: int = 0
    shift: float = 0.0
    clock: float = 0.0

    def last(self) -> Vector:
        """The iterate w after the last step, (k, p)."""
        return self.theta / (self.alpha * (self.steps + 1 + self.shift))

    def mean(self) -> Vector:
        """The mean of w over the steps, (k, p): of the points at which the steps were taken."""
        return (self.clock * self.theta - self.lagged) / max(self.steps, 1)

    def rebase(self, alpha: float, shift: float) -> None:
        """Continue with another regulariser or shift, from the same w and the same mean."""
        shift = max(shift, self.shift)
        factor = alpha * (self.steps + 1 + shift) / (self.alpha * (self.steps + 1 + self.shift))
        if factor != 1.0:
            self.lagged = self.lagged + self.clock * (factor - 1.0) * self.theta
            self.theta = factor * self.theta
        self.alpha, self.shift = alpha, shift


STATE_TABLE = Table(
    {
        "theta": Floats("outputs, p"),
        "lagged": Floats("outputs, p"),
        "alpha": Number(least=_SMALLEST),
        "steps": Count(),
        "shift": Number(least=0),
        "clock": Number(least=0),
    }
)
"""Statements about a walk in a model file."""


def _take(
    walk: DescentState,
    chunk: slice,
    loss: Loss,
    go: Callable[[slice, Vector], float],
    product: Callable[[int], Vector],
    codes: Integers,
    positive: Integers,
) -> None:
    """Let ``go`` make the steps of a chunk, one at a time if the loss has no compiled code.

    ``go`` takes positions in the order of the pass and, for one step, minus the slope of the loss, and returns the
    clock.
    ``product`` is ``<theta, x>`` for the row at a position, (k,), ``codes`` are the classes in the order of the pass.
    """
    if loss.code != GIVEN:
        walk.clock = go(chunk, np.empty(0))
        walk.steps += chunk.stop - chunk.start
        return
    for s in range(chunk.start, chunk.stop):
        y = np.where(codes[s] == positive, 1.0, -1.0)
        f = product(s) / (walk.alpha * (walk.steps + 1 + walk.shift))
        walk.clock = go(slice(s, s + 1), -y * loss.gradient(y, f))
        walk.steps += 1


class StochasticRows(ABC):
    """Rows to learn from; ``shape`` is (n, p), the numbers of rows and of coefficients of a w."""

    shape: tuple[int, int]

    @abstractmethod
    def squares(self) -> Vector:
        """``<phi(x), phi(x)>`` of each row, (n,)."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[None]:
        """Return a context in which ``steps`` may be called, always for the same walk."""

    @abstractmethod
    def steps(
        self,
        walk: DescentState,
        order: Integers,
        codes: Integers,
        positive: Integers,
        price: Vector,
        gathered: Vector,
        loss: Loss,
    ) -> None:
        """A step at each row in ``order``; changes ``walk`` and ``gathered``."""

    @abstractmethod
    def evaluate(self, coefficients: Vector) -> tuple[Vector, Vector]:
        """Values of each w on all rows, (m, n), and ``|w|^2``, (m,), in float64; ``coefficients`` is (m, p)."""

    @abstractmethod
    def combine(self, weights: Vector) -> Vector:
        """Coefficients (m, p) of ``sum_i weights_i phi(x_i)``, from (m, n)."""


class FeatureRows(StochasticRows):
    """Rows given by their features: an array or CSR matrix (n, p)."""

    def __init__(self, X: Any) -> None:
        self.X: Any = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)
        self.shape = X.shape

    def squares(self) -> Vector:
        if sp.issparse(self.X):
            return np.asarray(self.X.multiply(self.X).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)

    @contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def steps(
        self,
        walk: DescentState,
        order: Integers,
        codes: Integers,
        positive: Integers,
        price: Vector,
        gathered: Vector,
        loss: Loss,
    ) -> None:
        for chunk in spans(len(order), _FEATURE_CHUNK):
            threads.checkpoint()

            def go(rows: slice, slopes: Vector) -> float:
                risk = sgd.Risk(codes, positive, price, loss.code, walk.alpha, walk.shift)
                rest = order[rows], risk, sgd.Descent(walk.theta, walk.lagged, gathered), walk.steps, walk.clock, slopes
                if sp.issparse(self.X):
                    return float(sgd.sparse_steps(SparseRows(self.X.indptr, self.X.indices, self.X.data), *rest))
                return float(sgd.dense_steps(self.X, *rest))

            def value(s: int) -> Vector:
                row = self.X[order[s]]
                return np.asarray((row @ walk.theta.T).ravel() if sp.issparse(row) else walk.theta @ row)

            _take(walk, chunk, loss, go, value, codes[order], positive)

    def evaluate(self, coefficients: Vector) -> tuple[Vector, Vector]:
        values = np.empty((len(coefficients), self.shape[0]))
        for rows in spans(self.shape[0], _FEATURE_CHUNK):
            values[:, rows] = (self.X[rows] @ coefficients.T).T
        return values, np.einsum("ij,ij->i", coefficients, coefficients)

    def combine(self, weights: Vector) -> Vector:
        return np.asarray((self.X.T @ weights.T).T, dtype=np.float64)


class KernelRows(StochasticRows):
    """The first ``n`` rows of a symmetric Gram matrix (p, p) plus a constant; the expansion may use the others, too.

    The matrix is stored while steps are taken if it fits half of the memory budget; if not, its rows are evaluated
    again, block by block, in every pass.
    """

    def __init__(self, gram: GramMatrix, n: int | None = None, constant: float = 0.0) -> None:
        self.gram = gram
        self.constant = constant
        self.whole = False
        self.shape = (gram.shape[0] if n is None else n, gram.shape[0])

    def squares(self) -> Vector:
        return np.asarray(self.gram.diagonal(), dtype=np.float64)[: self.shape[0]] + self.constant

    @contextmanager
    def opened(self) -> Iterator[None]:
        n, p = self.shape
        size = np.dtype(self.gram.dtype).itemsize
        whole = fits(2 * p * p * size)
        capacity = p if whole else memory.fitting(lambda rows: rows * p * size, min(n, _CHUNK), min(n, _LEAST))
        with memory.reserve(capacity * p * size, "the kernel matrix" if whole else "a block of kernel rows"):
            self.whole, self.stored = whole, np.empty((capacity, p), dtype=self.gram.dtype)
            if whole:
                self.gram.block(None, None, out=self.stored)
            self.values: Vector | None = None
            try:
                yield
            finally:
                self.whole = False
                del self.stored

    def steps(
        self,
        walk: DescentState,
        order: Integers,
        codes: Integers,
        positive: Integers,
        price: Vector,
        gathered: Vector,
        loss: Loss,
    ) -> None:
        if self.values is None:
            # By the lazy product, which also finds values that are not finite.
            self.values = self._values(walk.theta)
        values = self.values
        for chunk in spans(len(order), _CHUNK if self.whole else len(self.stored)):
            threads.checkpoint()
            if not self.whole:
                self.gram.block(order[chunk], None, out=self.stored[: chunk.stop - chunk.start])
            first = chunk.start

            def go(rows: slice, slopes: Vector, first: int = first) -> float:
                where = order[rows] if self.whole else np.arange(rows.start - first, rows.stop - first)
                kernel = sgd.KernelValues(self.stored, where, self.constant, values)
                risk = sgd.Risk(codes, positive, price, loss.code, walk.alpha, walk.shift)
                descent = sgd.Descent(walk.theta, walk.lagged, gathered)
                return float(sgd.kernel_steps(kernel, order[rows], risk, descent, walk.steps, walk.clock, slopes))

            _take(walk, chunk, loss, go, lambda s: values[:, order[s]], codes[order], positive)

    def evaluate(self, coefficients: Vector) -> tuple[Vector, Vector]:
        if self.whole and self.stored.dtype == np.float64:
            # On one thread, so that the bits do not depend on the number of threads.
            with threads.one_blas_thread():
                values = coefficients @ self.stored
            values += self.constant * coefficients.sum(axis=1)[:, None]
        else:
            values = self._values(coefficients)
        return values[:, : self.shape[0]], np.einsum("ij,ij->i", values, coefficients)

    def _values(self, coefficients: Vector) -> Vector:
        """``coefficients (K + constant)``, (m, p), in float64."""
        gram = self.gram if self.gram.dtype == np.float64 else self.gram.astype(np.float64)
        product = np.asarray(gram @ np.ascontiguousarray(coefficients.T), dtype=np.float64).T
        return np.ascontiguousarray(product + self.constant * coefficients.sum(axis=1)[:, None])

    def combine(self, weights: Vector) -> Vector:
        return np.pad(weights, ((0, 0), (0, self.shape[1] - self.shape[0])))
