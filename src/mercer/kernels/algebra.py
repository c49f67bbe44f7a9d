"""The algebra of kernels: sums, products, powers and exponentials.

Closure of kernels: Schoelkopf & Smola (2002), *Learning with Kernels*, section 13.1.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.kernels.base import ATOM, POWER, PRODUCT, SUM, Definiteness, Expression, Kind, LinearParts
from mercer.kernels.elementary import exponential
from mercer.kernels.explicit import joined, multiplied
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.kernel import OPERATIONS, Kernel
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.parameters import as_float, number
from mercer.loops import steps

if TYPE_CHECKING:
    from mercer.kernels.program import Lowering


def _as_term(other: Any) -> Kernel:
    if isinstance(other, Kernel):
        return other
    if not 0 < as_float(other) < np.inf:
        raise ParameterError(
            f"kernels are added to, and multiplied by, finite numbers above 0, not {short(other)}: the result "
            "would not be a kernel."
        )
    return Constant(float(other))


def worst(*parts: Definiteness) -> Definiteness:
    for worst in ("indefinite", "conditional"):
        if worst in parts:
            return worst
    return "positive"


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """``k(x, z) = value``: a shared offset of all functions.

    Parameters
    ----------
    value : float, default=1.0
        Above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Constant(2.0)([[1.0], [5.0]]).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    value: float = number(1.0)

    def kind_of_rows(self) -> Kind:
        return "anything"

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        out.fill(self.value)

    def _lower(self, program: Lowering) -> bool:
        return program.constant(self.value)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        self._pull_sum(pairs, weights, slopes)

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        total = float(weights.sum())
        slopes[0] += total
        return self.value * total

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return iter(())

    def _linear_parts(self, rows: Rows) -> LinearParts:
        return [(self.value, np.ones((rows.n, 1)))]

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        return np.full((rows.n, 1), np.sqrt(self.value)) if most >= 1 else None


@dataclass(frozen=True, repr=False)
class Unary(Kernel):
    """A kernel made of one other."""

    kernel: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(f"{type(self).__name__} takes a kernel, but got {self.kernel!r}.")

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

    @property
    def homogeneity(self) -> float | None:
        return self.kernel.homogeneity

    def _expression(self) -> str:
        return f"{self.factor!r} * {self.kernel._inside(PRODUCT)}"

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        joined = _product(Constant(self.factor), *kernels)
        return dataclasses.replace(joined, tuning=self.tuning) if isinstance(joined, Scaled) else joined

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        out *= out.dtype.type(self.factor)

    def _lower(self, program: Lowering) -> bool:
        return program.kernel(self.kernel) and program.step(steps.scale, self.factor)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        self._pull_sum(pairs, weights, slopes)

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        # Slopes are linear in the weights, so the factor need not go through all of these.
        inner = np.zeros(slopes.size - 1)
        total = self.kernel._pull_sum(pairs, weights, inner)
        slopes[0] += total
        slopes[1:] += self.factor * inner
        return self.factor * total

    def _linear_parts(self, rows: Rows) -> LinearParts | None:
        parts = self.kernel._linear_parts(rows)
        return None if parts is None else [(self.factor * weight, A) for weight, A in parts]

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        features = self.kernel._explicit_features(rows, most)
        if features is None or self.factor == 1:
            return features
        return multiplied(features, np.full(rows.n, np.sqrt(self.factor)), rows)


@dataclass(frozen=True, repr=False)
class Power(Unary):
    """``k ** exponent``; positive semi-definite for whole exponents."""

    exponent: float = 2

    precedence = POWER

    @property
    def homogeneity(self) -> float | None:
        return None if self.kernel.homogeneity is None else self.exponent * self.kernel.homogeneity

    def __post_init__(self) -> None:
        super().__post_init__()
        e = self.exponent
        if isinstance(e, bool) or not isinstance(e, numbers.Real) or not 0 < as_float(e) < np.inf:
            raise ParameterError(f"a kernel's exponent must be a finite number above 0, but is {short(e)}.")
        object.__setattr__(self, "exponent", int(e) if float(e).is_integer() else float(e))

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)} ** {self.exponent!r}"

    @property
    def definiteness(self) -> Definiteness:
        whole = isinstance(self.exponent, int)
        return "positive" if whole and self.kernel.definiteness == "positive" else "indefinite"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        raise_to(out, self.exponent)

    def _lower(self, program: Lowering) -> bool:
        return program.kernel(self.kernel) and program.power(self.exponent)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        with scratch(weights) as inner:
            self.kernel._fill(pairs, inner)
            # A value of 0 is one that has underflowed, as has its slope: below exponent 1 their product would be NaN.
            zero = inner == 0 if self.exponent < 1 else None
            with np.errstate(divide="ignore"):
                raise_to(inner, self.exponent - 1)
            if zero is not None:
                inner[zero] = 0
            inner *= weights
            inner *= self.exponent
            self.kernel._pull(pairs, inner, slopes)


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
        exponential(out)

    def _lower(self, program: Lowering) -> bool:
        return program.kernel(self.kernel) and program.step(steps.exponential)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        with scratch(weights) as values:
            self._fill(pairs, values)
            values *= weights
            self.kernel._pull(pairs, values, slopes)


def exp(kernel: Kernel) -> Kernel:
    """``exp(k(x, z))``: a kernel wherever ``k`` is one.

    Parameters
    ----------
    kernel : Kernel
        k.

    Returns
    -------
    Kernel

    Examples
    --------
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
            raise ParameterError(f"{type(self).__name__} takes two or more kernels, but got {self.terms!r}.")
        object.__setattr__(self, "terms", tuple(self.terms))

    def children(self) -> tuple[tuple[str, Expression], ...]:
        """``left`` and ``right`` for two terms, ``terms[0]``, ``terms[1]``, ... for more."""
        if len(self.terms) == 2:
            return ("left", self.terms[0]), ("right", self.terms[1])
        return tuple((f"terms[{i}]", term) for i, term in enumerate(self.terms))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The terms by their names, ``left`` and ``right`` or ``terms[0]`` ..., and with ``deep`` their parameters."""
        own = dict(self.children())
        return {k: v for k, v in super().get_params(deep).items() if k != "terms"} | own

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        for term in self.terms:
            yield from term._uses(scope)

    def _parts(self, slopes: Array) -> Iterator[tuple[Any, Array]]:
        """Every term with its share of the slopes."""
        start = 0
        for term in self.terms:
            stop = start + len(term.parameters)
            yield term, slopes[start:stop]
            start = stop


@dataclass(frozen=True, repr=False)
class Sum(Combination):
    """``k1 + k2 + ...``: the features of all terms side by side."""

    precedence = SUM

    @property
    def homogeneity(self) -> float | None:
        powers = {term.homogeneity for term in self.terms}
        return powers.pop() if len(powers) == 1 else None

    def _expression(self) -> str:
        # At most one term is a number, so that what is printed is a sum of kernels when it is typed again.
        numbers = (isinstance(t, Constant) and not t.tuning for t in self.terms)
        return " + ".join(
            repr(t.value) if is_number else t._inside(PRODUCT) for t, is_number in zip(self.terms, numbers, strict=True)
        )

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        return _sum(*kernels)

    @property
    def definiteness(self) -> Definiteness:
        return worst(*(t.definiteness for t in self.terms))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.terms[0]._fill(pairs, out)
        with scratch(out) as term_values:
            for term in self.terms[1:]:
                term._fill(pairs, term_values)
                out += term_values

    def _lower(self, program: Lowering) -> bool:
        return program.joined(self.terms, steps.add)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        for term, part in self._parts(slopes):
            term._pull(pairs, weights, part)

    def _pull_sum(self, pairs: Pairs, weights: Array, slopes: Array) -> float:
        return sum(term._pull_sum(pairs, weights, part) for term, part in self._parts(slopes))

    def _linear_parts(self, rows: Rows) -> LinearParts | None:
        parts = [term._linear_parts(rows) for term in self.terms]
        return None if any(part is None for part in parts) else [pair for part in parts for pair in part]

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        return joined(self.terms, rows, most)


@dataclass(frozen=True, repr=False)
class Product(Combination):
    """``k1 * k2 * ...``: all products of a feature of one with a feature of the other."""

    precedence = PRODUCT

    @property
    def homogeneity(self) -> float | None:
        powers = [term.homogeneity for term in self.terms]
        return None if None in powers else sum(powers)

    def _expression(self) -> str:
        return " * ".join(t._inside(POWER) for t in self.terms)

    def with_children(self, kernels: tuple[Any, ...]) -> Any:
        return _product(*kernels)

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

    def _lower(self, program: Lowering) -> bool:
        return program.joined(self.terms, steps.multiply)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        with ExitStack() as arrays:
            values = [arrays.enter_context(scratch(weights)) for _ in self.terms]
            others = arrays.enter_context(scratch(weights))
            for term, value in zip(self.terms, values, strict=True):
                term._fill(pairs, value)
            for i, (term, part) in enumerate(self._parts(slopes)):
                if part.size:
                    others[...] = weights
                    for j, value in enumerate(values):
                        if j != i:
                            others *= value
                    term._pull(pairs, others, part)


def _sum(*terms: Any) -> Kernel:
    """A flat sum with its constants folded into one."""
    flat = [t for term in map(_as_term, terms) for t in (term.terms if isinstance(term, Sum) else (term,))]
    plain = [t for t in flat if isinstance(t, Constant) and not t.tuning]
    if len(plain) > 1:
        at = flat.index(plain[0])
        total = Constant(sum(t.value for t in plain))
        flat = [total if i == at else t for i, t in enumerate(flat) if i == at or not any(t is p for p in plain)]
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def _product(*factors: Any) -> Kernel:
    """A flat product with its numbers folded into one factor in front."""
    factor, rest = 1.0, []
    queue = [_as_term(f) for f in factors]
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


OPERATIONS.update(sum=_sum, product=_product, power=Power)
