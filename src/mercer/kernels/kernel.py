"""The base of all kernels: evaluation, operators, and the methods that make other kernels."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.markup import notebook_table
from mercer.data.objects import short
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Rows
from mercer.kernels.parameters import as_float
from mercer.kernels.plan import Plan, check_finite, diagonal

# What the operators and methods below make are kernels themselves, so their modules import this one and fill in
# here what they define: algebra.py the operators, modifiers.py and centring.py the methods.
OPERATIONS: dict[str, Callable[..., Kernel]] = {}

# The public names of the package, filled in where all of them are known, for the parser of expressions.
PUBLIC: dict[str, Any] = {}


class Cost(NamedTuple):
    """What a block would cost.

    Parameters
    ----------
    nbytes : int
        Bytes to hold it.
    operations : int
        Arithmetic operations to make it.
    """

    nbytes: int
    operations: int


@dataclass(frozen=True, repr=False)
class Kernel(Expression):
    """Base of all kernels. A kernel is an immutable value, compared and hashed by its fields.

    ``k(X)`` is the Gram matrix of ``X`` with itself, ``k(X, Z)`` the block of ``X`` with ``Z``. Kernels combine
    by ``+``, ``*`` (also with positive numbers), ``/`` (a positive number), ``**`` and :func:`exp`.

    Parameters
    ----------
    tuning : tuple, optional
        Pairs of a name and either None (fixed) or bounds, as :meth:`fixed` and :meth:`bounded` set them.

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
        """The kernel's values between rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or other rows that the kernel takes
        Z : array-like of shape (m, d), or other rows that the kernel takes, optional
            None for ``X`` itself.
        out : ndarray of shape (n, m), optional
            Written to and returned.

        Returns
        -------
        ndarray of shape (n, m)
            In float32 when both inputs are, else float64.

        Raises
        ------
        DataError
            If an input is not what the kernel is defined on, or ``out`` has another shape.
        KernelValueError
            If a value is NaN or infinite, such as one that overflows.
        MemoryBudgetError
            If the block would not fit the memory budget; raised before anything is allocated.
        """
        left = Rows(X)
        plan = Plan(self, left, left if Z is None else Rows(Z), getattr(out, "dtype", None))
        return plan.dense(out, checked=True)

    def with_data(self, X: Any) -> Self:
        """The same kernel with parameters that name a rule, such as ``"median"``, computed from rows.

        Learners call it with the training rows; ``kernel_`` shows the numbers.

        Parameters
        ----------
        X : array-like of shape (n, d), or other rows that the kernel takes

        Returns
        -------
        Kernel

        Examples
        --------
        >>> from mercer.kernels import GlobalAlignment
        >>> GlobalAlignment("median").with_data([[0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 5.0]])
        GlobalAlignment(4.0)
        """
        kernel: Self = self._with_data(Rows(X)) if self.needs_data else self
        return kernel

    def diagonal(self, X: Any) -> Array:
        """``k(x_i, x_i)`` for every row, without the rest of the Gram matrix.

        Parameters
        ----------
        X : array-like of shape (n, d), or other rows that the kernel takes

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        DataError, KernelValueError
            As :meth:`block` does.
        """
        rows = Rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            values = diagonal(self, rows).astype(rows.dtype, copy=False)
        check_finite(values, self)
        return values

    def pullback(self, X: Any, Z: Any, dK: Any) -> Array:
        """The contracted gradient ``sum_ij dK_ij d k(x_i, z_j) / d theta``.

        Work goes by tiles: no array of shape ``(n, m, parameters)`` is made.

        Parameters
        ----------
        X : array-like of shape (n, d), or other rows that the kernel takes
        Z : array-like of shape (m, d), or other rows that the kernel takes, or None
            None for ``X`` itself.
        dK : array-like of shape (n, m)

        Returns
        -------
        ndarray of shape (len(theta),)
        """
        left = Rows(X)
        plan = Plan(self, left, left if Z is None else Rows(Z))
        weights = np.asarray(dK)
        if weights.shape != plan.shape:
            raise DataError(f"dK must have the shape of the block, {plan.shape}, but has {weights.shape}.")
        return plan.pull(weights)

    def cost(self, n: int, m: int, d: int = 1) -> Cost:
        """What a block costs in memory and operations.

        Parameters
        ----------
        n, m : int
            Shape of the block.
        d : int, default=1
            Numbers in a row, of float64.

        Returns
        -------
        Cost
        """
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

    def _repr_html_(self) -> str:
        heads = ("parameter", "value", "bounds of a search")
        rows = [
            (p.name, p.value, f"{p.bounds[0]:g} to {p.bounds[1]:g}" if p.free else "fixed") for p in self.parameters
        ]
        return notebook_table(f"{self!r}, {self.definiteness}", heads if rows else (), rows)

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
            raise ParameterError("a quotient of kernels is not a kernel; kernels can only be added and multiplied.")
        if not _is_operand(other):
            return NotImplemented
        if not 0 < as_float(other) < math.inf:
            raise ParameterError(f"a kernel can only be divided by a finite number above 0, not by {short(other)}.")
        return OPERATIONS["product"](1.0 / as_float(other), self)

    def __rtruediv__(self, other: Any) -> Kernel:
        raise ParameterError("a kernel cannot be a divisor; kernels can only be added and multiplied.")

    def __pow__(self, exponent: Any) -> Kernel:
        return OPERATIONS["power"](self, exponent)

    def __sub__(self, other: Any) -> Kernel:
        raise ParameterError("a difference of kernels is not a kernel; kernels can only be added and multiplied.")

    __rsub__ = __sub__

    # NumPy scalars leave the multiplication to the kernel.
    __array_ufunc__ = None

    # ---- methods that make other kernels

    def on(self, columns: Any) -> Kernel:
        """The kernel on some columns of X only.

        Parameters
        ----------
        columns : int, str, or list of int or str
            Positions or names.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear().on([1])([[5.0, 2.0]]).tolist()
        [[4.0]]
        """
        return OPERATIONS["on"](self, columns)

    def scaled_by(self, function: Callable[[Any], Any]) -> Kernel:
        """``f(x) k(x, z) f(z)``.

        Parameters
        ----------
        function : callable
            f, from the rows ``(n, d)`` to ``(n,)`` numbers.

        Returns
        -------
        Kernel
        """
        return OPERATIONS["scaled_by"](self, function)

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``: the cosine of the angle in feature space; 0 where ``k(x, x)`` is 0."""
        return OPERATIONS["normalized"](self)

    def centered(self, X: Any) -> Kernel:
        """The kernel with the origin of feature space moved to the mean of reference rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or other rows that the kernel takes
            The reference rows.

        Returns
        -------
        Kernel
        """
        return OPERATIONS["centered"](self, X)

    def warped(self, map: Callable[[Any], Any]) -> Kernel:
        """``k(map(x), map(z))``.

        Parameters
        ----------
        map : callable
            From rows ``(n, d)`` to rows ``(n, d')``.

        Returns
        -------
        Kernel
        """
        return OPERATIONS["warped"](self, map)


def _is_operand(other: Any) -> bool:
    return isinstance(other, Kernel) or (isinstance(other, numbers.Real) and not isinstance(other, bool))
