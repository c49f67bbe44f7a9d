"""The algebra of kernels: sums, products, powers, exponentials, and what joins them to operators.

Closure of kernels: Schoelkopf & Smola (2002), *Learning with Kernels*, section 13.1.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.engine.tiles import Array
from mercer.kernels.base import ATOM, POWER, PRODUCT, SUM, Definiteness, Expression
from mercer.kernels.inputs import Pairs, Rows, Scope, scratch
from mercer.kernels.parameters import number
from mercer.kernels.plan import Plan, diagonal

# Classes behind the methods on, normalized, ...: they derive from Kernel, so their module fills this in.
MODIFIERS: dict[str, Callable[..., Kernel]] = {}


class Cost(NamedTuple):
    """What a block would cost: bytes to hold it, and arithmetic operations to make it."""

    nbytes: int
    operations: int


@dataclass(frozen=True, repr=False)
class Kernel(Expression):
    """Base of all kernels. A kernel is an immutable value: equal and hashed by what it is made of.

    ``k(X)`` is the Gram matrix of ``X`` with itself, ``k(X, Z)`` the block of ``X`` with ``Z``. Kernels combine
    by ``+``, ``*`` (also with positive numbers), ``**`` and :func:`exp`.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> k = 0.5 * RBF(2.0) + Linear()
    >>> k
    0.5 * RBF(2.0) + Linear()
    >>> k([[0.0], [1.0]]).round(4).tolist()
    [[0.5, 0.4412], [0.4412, 1.5]]
    """

    def __call__(self, X: Any, Z: Any = None) -> Array:
        return self.block(X, Z)

    def block(self, X: Any, Z: Any = None, out: Array | None = None) -> Array:
        """The kernel's values between the rows of ``X`` and those of ``Z`` (``X`` itself if None), shape ``(n, m)``.

        ``out`` is written to if given. The result is float32 when both inputs are, else float64.

        Raises
        ------
        DataError
            If an input is not what the kernel is defined on, or ``out`` has another shape.
        """
        left = Rows(X)
        plan = Plan(self, left, left if Z is None else Rows(Z), None if out is None else out.dtype)
        if out is not None and out.shape != plan.shape:
            raise DataError(f"out has shape {out.shape}, and the block has {plan.shape}.")
        return plan.dense(out)

    def diagonal(self, X: Any) -> Array:
        """``k(x_i, x_i)`` for every row of ``X``, shape ``(n,)``, without the rest of the Gram matrix."""
        rows = Rows(X)
        return diagonal(self, rows).astype(rows.dtype, copy=False)

    def pullback(self, X: Any, Z: Any, dK: Any) -> Array:
        """The contracted gradient ``sum_ij dK_ij d k(x_i, z_j) / d theta``, shape ``(len(theta),)``.

        ``Z=None`` stands for ``X`` itself. Work goes by tiles: no array of shape ``(n, m, parameters)`` is made.
        """
        left = Rows(X)
        plan = Plan(self, left, left if Z is None else Rows(Z))
        weights = np.asarray(dK)
        if weights.shape != plan.shape:
            raise DataError(f"dK must have the shape of the block, {plan.shape}, and has {weights.shape}.")
        return plan.pull(weights)

    def cost(self, n: int, m: int, d: int = 1) -> Cost:
        """What an ``(n, m)`` block on rows of ``d`` float64 numbers costs to hold and to make."""
        terms = sum(1 for _ in self._uses(())) or 1
        return Cost(8 * n * m, n * m * terms * (2 * d + 16))

    def indefinite_part(self) -> Kernel | None:
        """The smallest part at fault when the kernel is not known to be positive semi-definite, else None."""
        if self.definiteness == "positive":
            return None
        for _, child in self.children():
            if isinstance(child, Kernel) and child.definiteness == self.definiteness:
                return child.indefinite_part()
        return self

    # ---- operators

    def __add__(self, other: Any) -> Kernel:
        return _sum([self, _as_term(other)]) if _is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return _sum([_as_term(other), self]) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        return _product([self, _as_term(other)]) if _is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return _product([_as_term(other), self]) if _is_operand(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Kernel:
        return Power(self, exponent)

    def __sub__(self, other: Any) -> Kernel:
        raise ParameterError("a difference of kernels is not a kernel; kernels may be added and multiplied.")

    # NumPy scalars leave the multiplication to the kernel.
    __array_ufunc__ = None

    # ---- methods that make other kernels

    def on(self, columns: Any) -> Kernel:
        """The kernel on some columns of X only: a position or a name, or a list of them.

        >>> from mercer.kernels import Linear
        >>> Linear().on([1])([[5.0, 2.0]]).tolist()
        [[4.0]]
        """
        return MODIFIERS["on"](self, columns)

    def scaled_by(self, function: Callable[[Any], Any]) -> Kernel:
        """``f(x) k(x, z) f(z)`` for a function from the rows ``(n, d)`` to ``(n,)`` numbers."""
        return MODIFIERS["scaled_by"](self, function)

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``: the cosine of the angle in feature space; 0 where ``k(x, x)`` is 0."""
        return MODIFIERS["normalized"](self)

    def centered(self, X: Any) -> Kernel:
        """The kernel with the mean of the rows of ``X`` in feature space taken as the origin."""
        return MODIFIERS["centered"](self, X)

    def warped(self, map: Callable[[Any], Any]) -> Kernel:
        """``k(map(x), map(z))`` for a map from rows ``(n, d)`` to rows ``(n, d')``."""
        return MODIFIERS["warped"](self, map)


def _is_operand(other: Any) -> bool:
    return isinstance(other, Kernel) or (isinstance(other, numbers.Real) and not isinstance(other, bool))


def _as_term(other: Any) -> Kernel:
    return other if isinstance(other, Kernel) else Constant(float(other))


def worst(*parts: Definiteness) -> Definiteness:
    for worst in ("indefinite", "conditional"):
        if worst in parts:
            return worst
    return "positive"


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """``k(x, z) = value``: a shared offset of all functions.

    Examples
    --------
    >>> Constant(2.0)([[1.0], [5.0]]).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    value: float = number(1.0)

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        out.fill(self.value)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        slopes[0] += weights.sum()

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return iter(())


@dataclass(frozen=True, repr=False)
class Unary(Kernel):
    """A kernel made of one other."""

    kernel: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(f"{type(self).__name__} takes a kernel, and got {self.kernel!r}.")

    def children(self) -> tuple[tuple[str, Expression], ...]:
        return (("kernel", self.kernel),)

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        return dataclasses.replace(self, kernel=kernels[0])

    @property
    def definiteness(self) -> Definiteness:
        return self.kernel.definiteness

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return self.kernel._uses(scope)


@dataclass(frozen=True, repr=False)
class Scaled(Unary):
    """``factor * k``."""

    factor: float = number(1.0)

    precedence = PRODUCT

    def _expression(self) -> str:
        return f"{self.factor!r} * {self.kernel._inside(PRODUCT)}"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        out *= out.dtype.type(self.factor)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        with scratch(weights) as values:
            self.kernel._fill(pairs, values)
            slopes[0] += np.vdot(weights, values)
        self.kernel._pull(pairs, weights * self.factor, slopes[1:])


@dataclass(frozen=True, repr=False)
class Power(Unary):
    """``k ** exponent``; positive semi-definite for whole exponents."""

    exponent: float = 2

    precedence = POWER

    def __post_init__(self) -> None:
        super().__post_init__()
        e = self.exponent
        if isinstance(e, bool) or not isinstance(e, numbers.Real) or not 0 < e < np.inf:
            raise ParameterError(f"a kernel's exponent must be a number above 0, and is {e!r}.")
        if not isinstance(e, int) and float(e).is_integer():
            object.__setattr__(self, "exponent", int(e))

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)} ** {self.exponent!r}"

    @property
    def definiteness(self) -> Definiteness:
        whole = isinstance(self.exponent, int)
        return "positive" if whole and self.kernel.definiteness == "positive" else "indefinite"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        raise_to(out, self.exponent)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        inner = np.empty_like(weights)
        self.kernel._fill(pairs, inner)
        raise_to(inner, self.exponent - 1)
        self.kernel._pull(pairs, weights * (self.exponent * inner), slopes)


def raise_to(values: Array, exponent: float) -> None:
    """``values ** exponent`` in place; whole exponents by repeated squaring, many times faster than ``pow``."""
    if not isinstance(exponent, int):
        np.power(values, exponent, out=values)
    elif exponent == 2:
        np.multiply(values, values, out=values)
    elif exponent != 1:
        base = values.copy()
        values.fill(1)
        while exponent:
            if exponent & 1:
                values *= base
            exponent >>= 1
            if exponent:
                base *= base


@dataclass(frozen=True, repr=False)
class Exp(Unary):
    """``exp(k)``, positive semi-definite also for conditionally positive ``k`` (Schoenberg's theorem)."""

    def _expression(self) -> str:
        return f"exp({self.kernel!r})"

    @property
    def definiteness(self) -> Definiteness:
        return "indefinite" if self.kernel.definiteness == "indefinite" else "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        np.exp(out, out=out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        values = np.empty_like(weights)
        self._fill(pairs, values)
        self.kernel._pull(pairs, weights * values, slopes)


def exp(kernel: Kernel) -> Kernel:
    """``exp(k(x, z))``: a kernel wherever ``k`` is one.

    >>> from mercer.kernels import Linear
    >>> exp(Linear())([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 1.0], [1.0, 2.7183]]
    """
    return Exp(kernel)


@dataclass(frozen=True, repr=False)
class Combination(Kernel):
    """Kernels joined by one operation; never nested in itself, so ``(a + b) + c`` equals ``a + (b + c)``."""

    terms: tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.terms) < 2 or not all(isinstance(t, Kernel) for t in self.terms):
            raise ParameterError(f"{type(self).__name__} takes two or more kernels, and got {self.terms!r}.")
        object.__setattr__(self, "terms", tuple(self.terms))

    def children(self) -> tuple[tuple[str, Expression], ...]:
        """``left`` and ``right`` for two terms, ``terms[0]``, ``terms[1]``, ... for more."""
        if len(self.terms) == 2:
            return ("left", self.terms[0]), ("right", self.terms[1])
        return tuple((f"terms[{i}]", term) for i, term in enumerate(self.terms))

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        return dataclasses.replace(self, terms=kernels)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The terms by their names, ``left`` and ``right`` or ``terms[0]`` ..., and with ``deep`` their parameters."""
        own = dict(self.children())
        return {k: v for k, v in super().get_params(deep).items() if k != "terms"} | own

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        for term in self.terms:
            yield from term._uses(scope)


@dataclass(frozen=True, repr=False)
class Sum(Combination):
    """``k1 + k2 + ...``: the features of all terms side by side."""

    precedence = SUM

    def _expression(self) -> str:
        # At most one term is a number, so that what is printed is a sum of kernels when it is typed again.
        numbers = (isinstance(t, Constant) and not t.tuning for t in self.terms)
        return " + ".join(
            repr(t.value) if is_number else t._inside(PRODUCT)
            for t, is_number in zip(self.terms, numbers, strict=True)
        )

    @property
    def definiteness(self) -> Definiteness:
        return worst(*(t.definiteness for t in self.terms))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.terms[0]._fill(pairs, out)
        with scratch(out) as term_values:
            for term in self.terms[1:]:
                term._fill(pairs, term_values)
                out += term_values

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        start = 0
        for term in self.terms:
            stop = start + len(term.parameters)
            term._pull(pairs, weights, slopes[start:stop])
            start = stop


@dataclass(frozen=True, repr=False)
class Product(Combination):
    """``k1 * k2 * ...``: all products of a feature of one with a feature of the other."""

    precedence = PRODUCT

    def _expression(self) -> str:
        return " * ".join(t._inside(POWER) for t in self.terms)

    @property
    def definiteness(self) -> Definiteness:
        positive = all(t.definiteness == "positive" for t in self.terms)
        return "positive" if positive else "indefinite"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.terms[0]._fill(pairs, out)
        with scratch(out) as term_values:
            for term in self.terms[1:]:
                term._fill(pairs, term_values)
                out *= term_values

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        values = []
        for term in self.terms:
            values.append(np.empty_like(weights))
            term._fill(pairs, values[-1])
        start = 0
        for i, term in enumerate(self.terms):
            stop = start + len(term.parameters)
            if stop > start:
                others = reduce(np.multiply, (v for j, v in enumerate(values) if j != i), weights)
                term._pull(pairs, others, slopes[start:stop])
            start = stop


def _sum(terms: list[Kernel]) -> Kernel:
    """A flat sum with its constants folded into one."""
    flat = [t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,))]
    plain = [t for t in flat if isinstance(t, Constant) and not t.tuning]
    if len(plain) > 1:
        at = flat.index(plain[0])
        total = Constant(sum(t.value for t in plain))
        flat = [total if i == at else t for i, t in enumerate(flat) if i == at or not any(t is p for p in plain)]
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def _product(factors: list[Kernel]) -> Kernel:
    """A flat product with its numbers folded into one factor in front."""
    factor, rest = 1.0, []
    queue = list(factors)
    numbered = False
    while queue:
        k = queue.pop(0)
        if k.tuning:
            rest.append(k)
        elif isinstance(k, Product):
            queue = [*k.terms, *queue]
        elif isinstance(k, Constant):
            factor, numbered = factor * k.value, True
        elif isinstance(k, Scaled):
            factor, numbered = factor * k.factor, True
            queue.insert(0, k.kernel)
        else:
            rest.append(k)
    if not rest:
        return Constant(factor)
    joined = rest[0] if len(rest) == 1 else Product(tuple(rest))
    return Scaled(joined, factor) if numbered else joined
