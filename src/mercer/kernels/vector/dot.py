"""Kernels that are functions of the inner product (and of the norms)."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.engine import memory
from mercer.kernels.algebra import raise_to
from mercer.kernels.base import Definiteness, LinearParts
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.leaf import Exponential, Powers, StatisticKernel, Steps
from mercer.kernels.modifiers import squares_fit
from mercer.kernels.operands import squared_norms
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import number, whole
from mercer.kernels.plan import diagonal
from mercer.kernels.statistics import Angle, Dot, Statistic
from mercer.kernels.vector.monomials import feature_count, polynomial_features
from mercer.loops import steps


@dataclass(frozen=True, repr=False)
class DotKernel(StatisticKernel):
    """A function of ``<x, z>``."""

    def _statistic(self) -> Statistic:
        return Dot()

    @abc.abstractmethod
    def _finish(self, t: Array) -> None:
        """Turn ``multiplier * <x, z>`` into the kernel's values in place."""


@dataclass(frozen=True, repr=False)
class Linear(DotKernel):
    """``k(x, z) = <x, z>``: linear functions of the columns.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Linear()([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """

    def _finish(self, t: Array) -> None:
        """Inner products are the values."""

    def _steps(self) -> Steps | None:
        return []

    @property
    def homogeneity(self) -> float | None:
        return 1

    def _linear_parts(self, rows: Rows) -> LinearParts:
        return [(1.0, rows.vectors)]

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        return rows.vectors if rows.vectors.shape[1] <= most else None


@dataclass(frozen=True, repr=False)
class Polynomial(DotKernel):
    """``k(x, z) = (scale <x, z> + offset)^degree``: all products of up to ``degree`` columns.

    Parameters
    ----------
    degree : int, default 3
        A whole number of at least 1.
    scale : float, default 1.0
        Above 0.
    offset : float, default 1.0
        At least 0; at 0 only products of exactly ``degree`` columns remain.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]

    References
    ----------
    Schoelkopf & Smola (2002), *Learning with Kernels*, section 2.1.
    """

    degree: int = 3
    scale: float = number(1.0)
    offset: float = number(1.0, closed=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        degree = whole("Polynomial", "degree", self.degree, "a whole number of at least 1")
        object.__setattr__(self, "degree", degree)

    @property
    def homogeneity(self) -> float | None:
        return self.degree if self.offset == 0 else None

    def _multiplier(self) -> float:
        return self.scale

    def _multiplier_powers(self) -> Powers:
        return {"scale": 1}

    def _finish(self, t: Array) -> None:
        t += t.dtype.type(self.offset)
        raise_to(t, self.degree)

    def _steps(self) -> Steps | None:
        return [(steps.shift, self.offset), (steps.power, self.degree)]

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        X = rows.vectors
        lowest = 0 if self.offset > 0 else self.degree
        count = feature_count(X.shape[1], self.degree, lowest)
        if sp.issparse(X) or count > most or 8 * rows.n * count > memory.room(8 * rows.n * count):
            return None
        return polynomial_features(X, self.degree, self.scale, self.offset)

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        outer = t + self.offset
        raise_to(outer, self.degree - 1) if self.degree > 1 else outer.fill(1)
        outer *= self.degree
        return outer, {"offset": outer}


@dataclass(frozen=True, repr=False)
class ExponentialDot(Exponential, DotKernel):
    """``k(x, z) = exp(scale <x, z>)``: the polynomial kernel of infinite degree.

    Parameters
    ----------
    scale : float, default 1.0
        Above 0. Values grow exponentially in it and in the norms of the rows: scale the columns first.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> ExponentialDot()([[1.0, 0.0]], [[1.0, 2.0]]).round(4).tolist()
    [[2.7183]]
    """

    scale: float = number(1.0)

    def _multiplier(self) -> float:
        return self.scale

    def _multiplier_powers(self) -> Powers:
        return {"scale": 1}


@dataclass(frozen=True, repr=False)
class Sigmoid(DotKernel):
    """``k(x, z) = tanh(scale <x, z> + offset)``, after a layer of neurons. Not positive semi-definite.

    Parameters
    ----------
    scale : float, default 1.0
        Any number.
    offset : float, default 0.0
        Any number.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Sigmoid(0.5).definiteness
    'indefinite'

    References
    ----------
    Lin & Lin (2003), *A study on sigmoid kernels for SVM and the training of non-PSD kernels by SMO-type methods*.
    """

    scale: float = number(1.0, bounds=(-1e3, 1e3), transform="identity", low=-math.inf)
    offset: float = number(0.0, bounds=(-1e3, 1e3), transform="identity", low=-math.inf)

    @property
    def definiteness(self) -> Definiteness:
        return "indefinite"

    def _multiplier(self) -> float:
        return self.scale

    def _multiplier_powers(self) -> Powers:
        return {"scale": 1}

    def _finish(self, t: Array) -> None:
        t += t.dtype.type(self.offset)
        np.tanh(t, out=t)

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        self._finish(t)
        outer = 1 - t * t
        return outer, {"offset": outer}


def _lengths(rows: Rows) -> Array:
    """Of rows of any size."""
    X = rows.vectors.astype(np.float64)
    largest = abs(X).max(axis=1)
    largest = np.ravel(largest.toarray() if sp.issparse(largest) else largest)
    inverse = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    scaled = sp.diags_array(inverse) @ X if sp.issparse(X) else X * inverse[:, None]
    return largest * np.sqrt(squared_norms(scaled, X.dtype))


def _squared_norms(rows: Rows) -> Array:
    return diagonal(Linear(), rows)


@dataclass(frozen=True, repr=False)
class NormDotKernel(Kernel):
    """A function of ``<x, z>``, ``|x|^2`` and ``|z|^2`` without tunable numbers."""

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(Dot(), 1.0, out)
        left, right = (side.astype(out.dtype) for side in pairs.vectors("squared norm", _squared_norms))
        self._combine(out, left[:, None] if out.ndim == 2 else left, right)

    @abc.abstractmethod
    def _combine(self, dot: Array, left: Array, right: Array) -> None:
        """Turn inner products into kernel values in place, given squared norms that broadcast."""

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """A kernel without parameters has no slopes."""

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, Dot()


@dataclass(frozen=True, repr=False)
class ArcCosine(NormDotKernel):
    """``k(x, z) = |x|^n |z|^n J_n(angle) / pi``: an infinitely wide layer of neurons, activated by ``max(0, u)^n``.

    Parameters
    ----------
    order : {0, 1, 2}, default 1
        The power ``n``; ``J_0 = pi - a``, ``J_1 = sin a + (pi - a) cos a``,
        ``J_2 = 3 sin a cos a + (pi - a)(1 + 2 cos^2 a)``.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> ArcCosine(1)([[3.0, 4.0]]).round(6).tolist()
    [[25.0]]

    References
    ----------
    Cho & Saul (2009), *Kernel methods for deep learning*, equations 3 to 6.
    """

    order: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        order = whole("ArcCosine", "order", self.order, "0, 1 or 2", low=0)
        if order > 2:
            raise ParameterError(f"ArcCosine: order must be 0, 1 or 2, but is {short(order)}.")
        object.__setattr__(self, "order", order)

    @property
    def homogeneity(self) -> float | None:
        return self.order

    def _fill(self, pairs: Pairs, out: Array) -> None:
        if self.order > 0:
            super()._fill(pairs, out)
            return
        # Where rows are close, the arc cosine of their inner product has half of the digits; higher orders are flat.
        pairs.statistic(Angle(), -1 / np.pi, out)
        out += 1

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, Dot() if self.order else Angle()

    def _combine(self, dot: Array, left: Array, right: Array) -> None:
        norms = np.sqrt(left) * np.sqrt(right)
        cosine = np.divide(dot, norms, out=np.zeros_like(dot), where=norms > 0)
        np.clip(cosine, -1, 1, out=cosine)
        rest = np.pi - np.arccos(cosine)
        sine = np.sqrt(1 - cosine * cosine)
        if self.order == 1:
            dot[...] = norms * (sine + rest * cosine)
        else:
            dot[...] = norms**2 * (3 * sine * cosine + rest * (1 + 2 * cosine * cosine))
        dot /= np.pi


@dataclass(frozen=True, repr=False)
class Tanimoto(NormDotKernel):
    """``k(x, z) = <x, z> / (|x|^2 + |z|^2 - <x, z>)``: for 0/1 columns, the fraction of common ones.

    Two rows of zeros have the value 1.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Tanimoto()([[1, 1, 0]], [[0, 1, 1]]).round(4).tolist()
    [[0.3333]]

    References
    ----------
    Ralaivola et al. (2005), *Graph kernels for chemical informatics*. Positive semi-definite on all real rows, since
    ``1 / u = int_0^inf exp(-t u) dt`` and ``exp(t <x, z>)`` is a kernel.
    """

    def _fill(self, pairs: Pairs, out: Array) -> None:
        if all(squares_fit(side, _squared_norms, out.dtype) for side in (pairs.left, pairs.right)):
            super()._fill(pairs, out)
            return
        # From cosines c and lengths, c / (|x| / |z| + |z| / |x| - c), in which nothing is squared.
        Linear().normalized()._fill(pairs, out)
        left, right = pairs.vectors("length", _lengths)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (left[:, None] if out.ndim == 2 else left) / right
            ratio += 1 / ratio
            out /= ratio - out
        out[np.isnan(ratio)] = 1

    def _combine(self, dot: Array, left: Array, right: Array) -> None:
        union = left + right - dot
        np.divide(dot, union, out=dot, where=union > 0)
        dot[union <= 0] = 1
