"""Kernels with parameters as solvers for Gaussian processes see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mercer._types import Array, Matrix, Positions, Vector
from mercer.engine import memory
from mercer.engine.tiles import Fill, spans
from mercer.gram import PrecomputedGram
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.kernels.algebra import Scaled
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import Plan, check_finite
from mercer.solvers.gaussian.covariance import Covariance, MatrixCovariance, diagonal_of


@dataclass(frozen=True, eq=False)
class KernelCovariance:
    """The matrix of a kernel over the rows of X as a function of ``kernel.theta``.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> covariance = KernelCovariance(RBF(1.0), np.array([[0.0], [2.0]]))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([2.0]), out)
    >>> out.round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    kernel: Kernel
    X: Any
    n_jobs: int | None = None
    _rows: Rows = field(init=False, repr=False)
    _latest: list[tuple[bytes, Plan]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", self.X if isinstance(self.X, Rows) else Rows(self.X))

    @property
    def n(self) -> int:
        return self._rows.n

    @property
    def size(self) -> int:
        return len(self.kernel.theta)

    def _plan(self, theta: Vector) -> Plan:
        # A gradient is requested at the parameters of the matrix: what was prepared from the rows serves both.
        key = np.asarray(theta, dtype=np.float64).tobytes()
        for last_key, plan in self._latest:
            if last_key == key:
                return plan
        kernel = self.kernel.with_theta(theta)
        # Rows keep what is prepared from them for every value of the scales: a search needs new ones at each step.
        rows = self._rows if kernel == self.kernel else self._rows.renewed()
        plan = Plan(kernel, rows, rows, np.dtype(np.float64))
        self._latest[:] = [(key, plan)]
        return plan

    def matrix(self, theta: Vector, out: Array) -> None:
        plan = self._plan(theta)
        check_finite(plan.dense(out, self.n_jobs), plan.kernel)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        return self._plan(theta).pull_symmetric(weigh, self.n_jobs)


@dataclass(frozen=True, eq=False)
class _Around:
    """A covariance that is made from another one, of the same rows and parameters unless stated otherwise."""

    inner: Any

    @property
    def n(self) -> int:
        rows: int = self.inner.n
        return rows

    @property
    def size(self) -> int:
        parameters: int = self.inner.size
        return parameters


@dataclass(frozen=True, eq=False)
class EvaluatedCovariance(_Around):
    """A covariance whose matrix at the parameters of its kernel exists already.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> given = PrecomputedGram(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> covariance = EvaluatedCovariance(KernelCovariance(RBF(1.0), np.array([[0.0], [2.0]])), given)
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([1.0]), out)
    >>> out.tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    inner: KernelCovariance
    given: GramMatrix

    def matrix(self, theta: Vector, out: Array) -> None:
        if np.array_equal(theta, self.inner.kernel.theta):
            self.given.astype(np.float64).block(None, None, out=out)
        else:
            self.inner.matrix(theta, out)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        return self.inner.pullback(theta, weigh)


@dataclass(frozen=True, eq=False)
class FactorCovariance(_Around):
    """A covariance without parameters times a factor, whose logarithm is theta.

    Entries of kernels on objects take long, so that the matrix is evaluated once for a search.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> covariance = FactorCovariance(KernelCovariance(RBF(1.0).fixed(), np.array([[0.0], [2.0]])))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([3.0]), out)
    >>> out.round(4).tolist()
    [[3.0, 0.406], [0.406, 3.0]]
    """

    inner: KernelCovariance
    size: ClassVar[int] = 1

    @cached_property
    def _whole(self) -> Matrix:
        memory.require(8 * self.n**2, "the kernel matrix")
        out = np.empty((self.n, self.n))
        self.inner.matrix(np.zeros(0), out)
        return out

    def matrix(self, theta: Vector, out: Array) -> None:
        np.multiply(self._whole, np.exp(theta[0]), out=out)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        total = 0.0
        for rows in spans(self.n):
            for columns in spans(self.n):
                weights = np.empty((rows.stop - rows.start, columns.stop - columns.start))
                weigh(rows, columns, weights)
                total += float(np.sum(weights * self._whole[rows, columns]))
        return np.array([np.exp(theta[0]) * total])


def covariance_of(kernel: Kernel | None, rows: Any, n_jobs: int | None, given: GramMatrix | None = None) -> Covariance:
    """Return the covariance of rows; for no kernel they are its matrix, and ``given`` is that of a kernel, if known."""
    if kernel is None:
        return MatrixCovariance(PrecomputedGram(rows))
    inner: Any = kernel.children()[0][1] if isinstance(kernel, Scaled) and len(kernel.theta) == 1 else None
    if inner is not None and not len(inner.theta) and isinstance(kernel.kind_of_rows(), type):
        return FactorCovariance(KernelCovariance(inner, rows, n_jobs))
    computed = KernelCovariance(kernel, rows, n_jobs)
    return computed if given is None else EvaluatedCovariance(computed, given)


@dataclass(frozen=True, eq=False)
class TiedCovariance(_Around):
    """A covariance some of whose parameters are equal: parameter i of ``inner`` is number ``places_i`` of theta.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> inner = KernelCovariance(RBF([1.0, 1.0]), np.array([[0.0, 0.0], [2.0, 2.0]]))
    >>> covariance = TiedCovariance(inner, np.array([0, 0]))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([2.0]), out)
    >>> covariance.size, out.round(4).tolist()
    (1, [[1.0, 0.3679], [0.3679, 1.0]])
    """

    inner: KernelCovariance
    places: Positions

    @property
    def size(self) -> int:
        return int(self.places.max()) + 1

    def matrix(self, theta: Vector, out: Array) -> None:
        self.inner.matrix(theta[self.places], out)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        slopes = self.inner.pullback(theta[self.places], weigh)
        return np.asarray(np.bincount(self.places, weights=slopes, minlength=self.size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ScaledCovariance(_Around):
    r"""``D A D`` for a covariance A of rows and a diagonal D of ``factors`` (n,).

    With noise of variance v, :math:`\\sqrt{w} y` has the covariance :math:`\\sqrt{w} K \\sqrt{w} + v I` if each
    target y is the mean of w repeated measurements.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> covariance = ScaledCovariance(KernelCovariance(RBF(1.0), np.array([[0.0], [2.0]])), np.array([1.0, 3.0]))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([2.0]), out)
    >>> out.round(4).tolist()
    [[1.0, 1.8196], [1.8196, 9.0]]
    """

    inner: KernelCovariance | TiedCovariance
    factors: Vector

    def matrix(self, theta: Vector, out: Array) -> None:
        self.inner.matrix(theta, out)
        out *= self.factors[:, None]
        out *= self.factors

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        def scaled(rows: slice, columns: slice, out: Array) -> None:
            weigh(rows, columns, out)
            out *= self.factors[rows, None]
            out *= self.factors[columns]

        return self.inner.pullback(theta, scaled)


@dataclass(frozen=True, eq=False)
class NoisyCovariance(_Around):
    r"""``A + diag(shares @ v)`` for a covariance A; the last parameters are the logarithms of v, ``shares`` is (n, g).

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> covariance = NoisyCovariance(KernelCovariance(RBF(1.0), np.array([[0.0], [2.0]])), np.array([[0.0], [1.0]]))
    >>> out = np.empty((2, 2))
    >>> covariance.matrix(np.log([2.0, 0.5]), out)
    >>> out.round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.5]]
    """

    inner: KernelCovariance | TiedCovariance | ScaledCovariance
    shares: Matrix

    @property
    def size(self) -> int:
        return self.inner.size + self.shares.shape[1]

    def matrix(self, theta: Vector, out: Array) -> None:
        own = self.inner.size
        self.inner.matrix(theta[:own], out)
        out.flat[:: self.n + 1] += self.shares @ np.exp(theta[own:])

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        own = self.inner.size
        slopes = self.inner.pullback(theta[:own], weigh)
        return np.concatenate([slopes, np.exp(theta[own:]) * (diagonal_of(weigh, self.n) @ self.shares)])
