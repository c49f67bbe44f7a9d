"""The base of all kernels: evaluation, operators, and the methods that make other kernels."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.engine.tiles import Array
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import Plan, diagonal

# What the operators and methods below make are kernels themselves, so their modules import this one and fill in
# here what they define: algebra.py the operators, modifiers.py the methods.
OPERATIONS: dict[str, Callable[..., Kernel]] = {}

# The public names of the package, filled in where all of them are known, for the parser of expressions.
PUBLIC: dict[str, Any] = {}


class Cost(NamedTuple):
    """What a block would cost: bytes to hold it, and arithmetic operations to make it."""

    nbytes: int
    operations: int


@dataclass(frozen=True, repr=False)
class Kernel(Expression):
    """Base of all kernels. A kernel is an immutable value: equal and hashed by what it is made of.

    ``k(X)`` is the Gram matrix of ``X`` with itself, ``k(X, Z)`` the block of ``X`` with ``Z``. Kernels combine
    by ``+``, ``*`` (also with positive numbers), ``/`` (a positive number), ``**`` and :func:`exp`.

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
        MemoryBudgetError
            If the block would not fit the memory budget; raised before anything is allocated.
        """
        left = Rows(X)
        return Plan(self, left, left if Z is None else Rows(Z), None if out is None else out.dtype).dense(out)

    def with_data(self, X: Any) -> Self:
        """The same kernel with the parameters that are the name of a rule, such as ``"median"``, taken from ``X``.

        Learners do it when they are fitted, with the rows of the fit; ``kernel_`` shows the numbers.

        Examples
        --------
        >>> from mercer.kernels import GlobalAlignment
        >>> GlobalAlignment("median").with_data([[0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 5.0]])
        GlobalAlignment(4.0)
        """
        made: Self = self._with_data(Rows(X)) if self.needs_data else self
        return made

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
        return OPERATIONS["sum"](self, other) if _is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        # Python's sum() begins with 0.
        if isinstance(other, int) and other == 0:
            return self
        return OPERATIONS["sum"](other, self) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        return OPERATIONS["product"](self, other) if _is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return OPERATIONS["product"](other, self) if _is_operand(other) else NotImplemented

    def __truediv__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            raise ParameterError("a quotient of kernels is not a kernel; kernels may be added and multiplied.")
        if not _is_operand(other):
            return NotImplemented
        if not float(other) > 0:
            raise ParameterError(f"a kernel may be divided by a number above 0, and the number is {other!r}.")
        return OPERATIONS["product"](1.0 / float(other), self)

    def __rtruediv__(self, other: Any) -> Kernel:
        raise ParameterError("a kernel cannot be divided by; kernels may be added and multiplied.")

    def __pow__(self, exponent: Any) -> Kernel:
        return OPERATIONS["power"](self, exponent)

    def __sub__(self, other: Any) -> Kernel:
        raise ParameterError("a difference of kernels is not a kernel; kernels may be added and multiplied.")

    __rsub__ = __sub__

    # NumPy scalars leave the multiplication to the kernel.
    __array_ufunc__ = None

    # ---- methods that make other kernels

    def on(self, columns: Any) -> Kernel:
        """The kernel on some columns of X only: a position or a name, or a list of them.

        >>> from mercer.kernels import Linear
        >>> Linear().on([1])([[5.0, 2.0]]).tolist()
        [[4.0]]
        """
        return OPERATIONS["on"](self, columns)

    def scaled_by(self, function: Callable[[Any], Any]) -> Kernel:
        """``f(x) k(x, z) f(z)`` for a function from the rows ``(n, d)`` to ``(n,)`` numbers."""
        return OPERATIONS["scaled_by"](self, function)

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``: the cosine of the angle in feature space; 0 where ``k(x, x)`` is 0."""
        return OPERATIONS["normalized"](self)

    def centered(self, X: Any) -> Kernel:
        """The kernel with the mean of the rows of ``X`` in feature space taken as the origin."""
        return OPERATIONS["centered"](self, X)

    def warped(self, map: Callable[[Any], Any]) -> Kernel:
        """``k(map(x), map(z))`` for a map from rows ``(n, d)`` to rows ``(n, d')``."""
        return OPERATIONS["warped"](self, map)


def _is_operand(other: Any) -> bool:
    return isinstance(other, Kernel) or (isinstance(other, numbers.Real) and not isinstance(other, bool))
