"""Kernels from a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import KernelValueError, ParameterError
from mercer.engine.tiles import Array, spans
from mercer.kernels.base import Definiteness, Expression
from mercer.kernels.inputs import Frame, Operand, Pairs, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.parameters import check_function
from mercer.kernels.plan import check_finite
from mercer.kernels.statistics import Statistic

# A call for every single row would cost more than the entries beside the diagonal that small blocks waste.
_DIAGONAL_STEP = 32


@dataclass(frozen=True)
class _Called(Statistic):
    """The user's function on the raw rows."""

    kernel: FromFunction

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        return (_Objects(side.raw),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        out[...] = self.kernel.call(left[0].rows, right[0].rows)
        out *= out.dtype.type(multiplier)
        check_finite(out, self.kernel)

    def diagonal(self, operand: Operand) -> Array:
        rows = operand[0]
        values = np.empty(_count(rows.rows))
        for part in spans(len(values), 1 if self.kernel.pairwise else _DIAGONAL_STEP):
            some = rows[part].rows
            values[part] = np.diagonal(self.kernel.call(some, some))
        check_finite(values, self.kernel)
        return values


class _Objects:
    """Rows of any kind that can be sliced and picked from like an array."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __getitem__(self, index: Any) -> _Objects:
        if hasattr(self.rows, "iloc"):
            return _Objects(self.rows.iloc[index])
        if hasattr(self.rows, "shape") or isinstance(index, slice):
            return _Objects(self.rows[index])
        return _Objects([self.rows[i] for i in index])


def rests_on_a_function(kernel: Expression) -> bool:
    """Whether what a kernel says of itself is what a user says of a function.

    >>> from mercer.kernels import RBF
    >>> rests_on_a_function(RBF(1.0)), rests_on_a_function(2.0 * from_function(lambda X, Z: X @ Z.T) + RBF(1.0))
    (False, True)
    """
    return isinstance(kernel, FromFunction) or any(rests_on_a_function(child) for _, child in kernel.children())


def _count(rows: Any) -> int:
    return rows.shape[0] if hasattr(rows, "shape") else len(rows)


@dataclass(frozen=True, repr=False)
class FromFunction(Kernel):
    """See :func:`from_function`."""

    function: Callable[..., Any]
    pairwise: bool = False
    declared: Definiteness = "positive"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_function("from_function", self.function)
        if self.declared not in ("positive", "conditional", "indefinite"):
            raise ParameterError(
                f'definiteness must be "positive", "conditional" or "indefinite", and is {self.declared!r}.'
            )

    def _expression(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        options = ", pairwise=True" if self.pairwise else ""
        options += f", definiteness={self.declared!r}" if self.declared != "positive" else ""
        return f"from_function({name}{options})"

    @property
    def definiteness(self) -> Definiteness:
        return self.declared

    def call(self, X: Any, Z: Any) -> Array:
        """The function's block between two sets of rows, checked for its shape."""
        shape = _count(X), _count(Z)
        if self.pairwise:
            block = np.array([[self._pair(x, z) for z in _each(Z)] for x in _each(X)])
            return block.reshape(shape)
        returned = self.function(X, Z)
        block = np.asarray(returned.toarray() if sp.issparse(returned) else returned)
        if block.dtype.kind not in "fiub":
            raise KernelValueError(
                f"{self!r} was called on {shape[0]} and {shape[1]} rows and returned {type(returned).__name__} "
                f"({block.dtype}); it must return an array of real numbers, one for every pair."
            )
        if block.shape != shape:
            raise KernelValueError(
                f"{self!r} was called on {shape[0]} and {shape[1]} rows and returned an array of shape {block.shape}; "
                "it must return one value for every pair. Use pairwise=True for a function of two single rows."
            )
        return block

    def _pair(self, x: Any, z: Any) -> float:
        value = self.function(x, z)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise KernelValueError(
                f"{self!r} was called on a pair of rows and returned {value!r}; it must return one number."
            ) from error

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Called(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """No parameters, no slopes."""

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Called(self)


def _each(rows: Any) -> Any:
    return rows.to_numpy() if hasattr(rows, "to_numpy") else rows


def from_function(
    function: Callable[..., Any], *, pairwise: bool = False, definiteness: Definiteness = "positive"
) -> Kernel:
    """A kernel from any function: of two blocks of rows (the fast way), or of a pair of single rows.

    Parameters
    ----------
    function : callable
        ``function(X, Z) -> (n, m)`` array; with ``pairwise``, ``function(x, z) -> float``.
    pairwise : bool, default False
    definiteness : {"positive", "conditional", "indefinite"}, default "positive"
        What you say of the function; ``mercer.validity.check`` tests it on your data.

    Raises
    ------
    KernelValueError
        When evaluated, if the function returns another shape, NaN or an infinity.

    Examples
    --------
    >>> k = from_function(lambda x, z: float(min(x[0], z[0])), pairwise=True)
    >>> k([[1.0], [2.0]]).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """
    return FromFunction(function, pairwise, definiteness)
