"""Kernels from user-defined functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._errors import KernelValueError, ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.engine import memory, threads
from mercer.engine.tiles import spans
from mercer.kernels.base import Definiteness, Expression, Kind
from mercer.kernels.inputs import Frame, Operand, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import check_function, flag
from mercer.kernels.plan import check_finite
from mercer.kernels.raw_rows import count, pick
from mercer.kernels.statistics import Statistic

# A call for every single row would cost more than the entries beside the diagonal that small blocks waste.
_DIAGONAL_STEP = 32
# Rows and columns of a tile where a call is made for each pair.
_SIDE = 32
# The values of a function of two single rows are kept where they take at most this share of the memory budget.
_SHARE = 0.25
# Pairs that are compared in both orders, and by how much of the largest value, or of eps, these may differ.
_PROBES, _ROUNDING, _MIRRORED = 16, 1e-6, 1e3


@dataclass(frozen=True)
class _Called(Statistic):
    """The user's function on the raw rows."""

    kernel: FromFunction
    shared: bool = True
    """Whether a function of two single rows is called for one order of each pair, whose value counts for both."""

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        if self.kernel.pairwise:
            values = None
            if self.shared and frame.left is frame.right:
                values = side.hold(self.kernel, lambda: _PairValues.within_budget(side.n))
            return (_SingleRows(_each(side.raw), np.arange(side.n), values),)
        return (_Objects(side.raw),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        if self.kernel.pairwise:
            left[0].fill(right[0], self.kernel, out)
        else:
            out[...] = self.kernel.call(left[0].rows, right[0].rows)
        out *= out.dtype.type(multiplier)
        check_finite(out, self.kernel)

    def diagonal(self, operand: Operand) -> Array:
        rows = operand[0]
        if self.kernel.pairwise:
            values = rows.diagonal(self.kernel)
        else:
            values = np.empty(count(rows.rows))
            for part in spans(len(values), _DIAGONAL_STEP):
                some = rows[part].rows
                values[part] = np.diagonal(self.kernel.call(some, some))
        check_finite(values, self.kernel)
        return values


class _PairValues:
    """The values of a function at the pairs of n rows, each computed at most once; NaN where it is not known yet."""

    def __init__(self, n: int) -> None:
        self.known = np.full((n, n), np.nan)
        self.is_probed = False
        # A function may be called from several threads, but one pair must not be computed by two of them.
        self.lock = threading.Lock()

    def probe(self, rows: Any, kernel: FromFunction) -> None:
        """Raise unless a few pairs have equal values in both orders, of which only one is computed for the others."""
        self.is_probed, n = True, len(self.known)
        if n < 2:
            return
        rng = np.random.default_rng(0)
        first = rng.integers(n, size=_PROBES)
        second = (first + rng.integers(1, n, size=_PROBES)) % n
        pairs = np.unique(np.sort([first, second], axis=0), axis=1).T
        there = np.array([kernel.pair(rows[i], rows[j]) for i, j in pairs])
        back = np.array([kernel.pair(rows[j], rows[i]) for i, j in pairs])
        self.known[pairs[:, 0], pairs[:, 1]] = there
        gaps = np.abs(there - back)
        eps = np.finfo(np.float32 if getattr(rows, "dtype", None) == np.float32 else np.float64).eps
        worst = int(np.argmax(gaps))
        if gaps[worst] > max(_ROUNDING, _MIRRORED * eps) * np.abs([there, back]).max():
            i, j = pairs[worst]
            raise KernelValueError(
                f"{kernel!r} is not symmetric: it is {there[worst]:.6g} for the rows {i} and {j} of X, and "
                f"{back[worst]:.6g} for the rows {j} and {i}. Pass a function with k(x, z) = k(z, x), such as the mean "
                "of the two."
            )

    @classmethod
    def within_budget(cls, n: int) -> _PairValues | None:
        """None if the values would take more than their share of the memory budget."""
        return cls(n) if 8 * n * n <= _SHARE * memory.budget() else None


class _SingleRows:
    """Some of the rows that a function of two single rows compares; ``values`` belongs to all of them."""

    def __init__(self, rows: Any, index: NDArray[np.intp], values: _PairValues | None) -> None:
        self.rows, self.index, self.values = rows, index, values

    def __getitem__(self, positions: Any) -> _SingleRows:
        return _SingleRows(self.rows, self.index[positions], self.values)

    def fill(self, other: _SingleRows, kernel: FromFunction, out: Array) -> None:
        """Write the values of all pairs."""
        if self.values is None or self.values is not other.values:
            self._call(other, kernel, out)
            return
        # The function is symmetric, so (i, j) and (j, i) are one pair.
        first = np.minimum(self.index[:, None], other.index)
        second = np.maximum(self.index[:, None], other.index)
        table = self.values.known
        with self.values.lock:
            if not self.values.is_probed and (first != second).any():
                self.values.probe(self.rows, kernel)
            missing = np.isnan(table[first, second])
            if missing.any():
                for code in np.unique(first[missing] * len(table) + second[missing]):
                    threads.checkpoint()
                    i, j = divmod(int(code), len(table))
                    table[i, j] = kernel.pair(self.rows[i], self.rows[j])
        out[...] = table[first, second]

    def diagonal(self, kernel: FromFunction) -> Array:
        """The values of each row with itself."""
        out = np.empty(len(self.index))
        for number in range(len(out)):
            row = self[number : number + 1]
            row.fill(row, kernel, out[number : number + 1, None])
        return out

    def _call(self, other: _SingleRows, kernel: FromFunction, out: Array) -> None:
        for i, row in enumerate(self.index):
            threads.checkpoint()
            for j, column in enumerate(other.index):
                out[i, j] = kernel.pair(self.rows[row], other.rows[column])


class _Objects:
    """Rows of any kind that can be sliced and picked from like an array."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __getitem__(self, index: Any) -> _Objects:
        return _Objects(pick(self.rows, index))


def rests_on_a_function(kernel: Expression) -> bool:
    """Whether a kernel's properties are declared by a user, for a function or for a class below scikit-learn's.

    >>> from mercer.kernels import RBF
    >>> rests_on_a_function(RBF(1.0)), rests_on_a_function(2.0 * from_function(lambda X, Z: X @ Z.T) + RBF(1.0))
    (False, True)
    """
    return kernel.on_trust or any(rests_on_a_function(child) for _, child in kernel.children())


@dataclass(frozen=True, repr=False)
class FromFunction(Kernel):
    """See :func:`from_function`."""

    function: Callable[..., Any]
    pairwise: bool = False
    declared: Definiteness = "positive"

    on_trust: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_function("from_function", self.function)
        object.__setattr__(self, "pairwise", flag("from_function", "pairwise", self.pairwise))
        if not isinstance(self.declared, str) or self.declared not in ("positive", "conditional", "indefinite"):
            raise ParameterError(
                f'definiteness must be "positive", "conditional" or "indefinite", but is {short(self.declared)}.'
            )

    def _expression(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        options = ", pairwise=True" if self.pairwise else ""
        options += f", definiteness={self.declared!r}" if self.declared != "positive" else ""
        return f"from_function({name}{options})"

    def kind_of_rows(self) -> Kind:
        return "anything"

    @property
    def definiteness(self) -> Definiteness:
        return self.declared

    @property
    def tile(self) -> int:
        # Few calls between two checks for Ctrl-C, and learners evaluate such a matrix once.
        return _SIDE if self.pairwise else super().tile

    def call(self, X: Any, Z: Any) -> Array:
        """The block that a function of two blocks returns, checked for its shape."""
        shape = count(X), count(Z)
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

    def pair(self, x: Any, z: Any) -> float:
        """The value of a function of two single rows, checked to be one number."""
        value = self.function(x, z)
        try:
            one = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
            # NumPy turns complex numbers into real ones with a warning only, and Python raises an error.
            return float(one)
        except (TypeError, ValueError) as error:
            raise KernelValueError(
                f"{self!r} was called on a pair of rows and returned {value!r}; it must return one number."
            ) from error

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(_Called(self), 1.0, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        """A kernel without parameters has no slopes."""

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        yield scope, _Called(self)


def in_both_orders(uses: Iterable[Hashable]) -> dict[Hashable, Statistic]:
    """Substitutes for the functions among the statistics that a kernel uses: they are called for each order of a pair.

    >>> kernel = from_function(lambda x, z: float(x[0] * z[0]), pairwise=True)
    >>> len(in_both_orders((kernel + 1.0)._uses(())))
    1
    """
    called = [use for use in uses if isinstance(use, tuple) and isinstance(use[1], _Called)]
    return {use: replace(use[1], shared=False) for use in called}


def takes_single_rows(function: Callable[..., Any], X: Any) -> bool:
    """Whether a function is one of two single rows, and not of two blocks of them; tried on one or two rows of ``X``.

    It is if it does not return one number for each pair of a small block, and returns one for a pair of rows. So a
    function that can do both is called on blocks, which takes fewer calls.

    >>> X = np.eye(3)
    >>> takes_single_rows(lambda x, z: x @ z.T, X), takes_single_rows(lambda x, z: float(min(x[0], z[0])), X)
    (False, True)
    """
    rows, kernel = _Objects(X), FromFunction(function)
    n = count(X)
    # A block of one row and one column tells the two apart, unless a row is a single number: np.dot is both then.
    narrow = getattr(X, "shape", (n, 0))[1:] == (1,)
    left, right = (np.arange(2) % n, np.arange(3) % n) if narrow else (np.zeros(1, int), np.zeros(1, int))
    if _returns(lambda: kernel.call(rows[left].rows, rows[right].rows)):
        return False
    one = _each(X)[0]
    return _returns(lambda: kernel.pair(one, one))


def _returns(call: Callable[[], Any]) -> bool:
    """Whether a call ends without an error; an error, if any, recurs when the function is used."""
    try:
        call()
    except Exception:
        return False
    return True


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
        The declared definiteness of the function; ``mercer.validity.check`` tests it on your data.

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
