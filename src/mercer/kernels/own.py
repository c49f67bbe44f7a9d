"""Bases of user-defined kernels: a function of a statistic, counted features, or a comparison of two objects."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer._errors import KernelValueError, ParameterError
from mercer._types import Array
from mercer.data.objects import Objects
from mercer.engine import threads
from mercer.kernels.base import Definiteness, is_overridden
from mercer.kernels.features import FeatureKernel as CountedFeatures
from mercer.kernels.features import Features
from mercer.kernels.leaf import Powers, StatisticKernel, Steps
from mercer.kernels.objects import Packed
from mercer.kernels.objects import PairKernel as PackedPairs
from mercer.kernels.parameters import one_of
from mercer.kernels.statistics import Dot, ManhattanDistance, SquaredDistance, Statistic
from mercer.loops import steps

_WORDS = {
    "statistic": ("squared_distance", "manhattan_distance", "inner_product"),
    "definiteness": ("positive", "conditional", "indefinite"),
}


class _UserDefined:
    """Checks of the class of a user-defined kernel."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, allowed in _WORDS.items():
            word = vars(cls).get(name)
            # A property decides later.
            if isinstance(word, str):
                one_of(cls.__name__, name, word, allowed)

    def __new__(cls, *args: Any, **options: Any) -> Self:
        fields = {name for name, kind in vars(cls).get("__annotations__", {}).items() if "ClassVar" not in str(kind)}
        if fields and "__dataclass_fields__" not in vars(cls):
            raise ParameterError(
                f"{cls.__name__} has the parameters {', '.join(sorted(fields))}, but is not a dataclass; write "
                "@dataclass(frozen=True, repr=False) above the class."
            )
        return super().__new__(cls)


@dataclass(frozen=True, repr=False)
class VectorKernel(_UserDefined, StatisticKernel):
    r"""Base of user-defined kernels on vectors: ``k(x, z) = value(t)`` for a statistic t of the two rows.

    A subclass is a frozen dataclass (``@dataclass(frozen=True, repr=False)``). Its tunable numbers are fields that
    :func:`mercer.extend.parameter` makes. With a field ``length_scale``, distances are in units of it: one number, or
    one a column if the field has ``per_column=True``; its derivatives are computed from ``derivative``.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Attributes
    ----------
    statistic : {"squared_distance", "manhattan_distance", "inner_product"}
        What t is: :math:`\sum_c (x_c - z_c)^2 / l_c^2`, :math:`\sum_c |x_c - z_c| / l_c` or
        :math:`\langle x, z \rangle`.
    definiteness : {"positive", "conditional", "indefinite"}
        The declared property of every Gram matrix: positive semi-definite, positive semi-definite on vectors that sum
        to 0, or neither.

    See Also
    --------
    mercer.testing.check_kernel : Check that a kernel satisfies its contract.

    Examples
    --------
    >>> from mercer.extend import VectorKernel, parameter
    >>> @dataclass(frozen=True, repr=False)
    ... class Cauchy(VectorKernel):
    ...     length_scale: float = parameter(1.0, per_column=True)
    ...
    ...     def value(self, t):
    ...         return 1.0 / (1.0 + t)
    ...
    ...     def derivative(self, t):
    ...         return -1.0 / (1.0 + t) ** 2
    >>> Cauchy(2.0)([[0.0], [2.0]]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    # Learners test the definiteness that a user declares on some rows.
    on_trust: ClassVar[bool] = True
    statistic: ClassVar[Literal["squared_distance", "manhattan_distance", "inner_product"]] = "squared_distance"
    definiteness: ClassVar[Definiteness] = "positive"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.statistic == "inner_product" and hasattr(self, "length_scale"):
            raise ParameterError(
                f"{type(self).__name__}: an inner product has no length scale, which only distances are divided by; "
                "give the number another name, such as scale, and use it in value(t) and slopes(t)."
            )

    @abc.abstractmethod
    def value(self, t: Array) -> Array:
        """``k`` at each entry of the statistic.

        Parameters
        ----------
        t : ndarray of float32 or float64
            Of any shape; it must not be modified.

        Returns
        -------
        ndarray
            Of the shape of t.
        """

    @abc.abstractmethod
    def derivative(self, t: Array) -> Array:
        """The derivative of ``value`` by t at each entry.

        Parameters
        ----------
        t : ndarray of float32 or float64
            As for :meth:`value`.

        Returns
        -------
        ndarray
            Of the shape of t.
        """

    def slopes(self, t: Array) -> Mapping[str, Array]:
        """The derivative of ``value`` by each tunable number other than the length scale.

        Parameters
        ----------
        t : ndarray of float32 or float64
            As for :meth:`value`.

        Returns
        -------
        dict of ndarray
            By the names of the numbers, each of the shape of t.
        """
        return {}

    @staticmethod
    def compiled(t: float, numbers: Array) -> float:
        """``value`` of one number, as code that Numba compiles: a static method, and optional.

        Large blocks are then computed by loops without Python, several times as fast. Where it raises an error, all
        values of the tile become NaN.

        Parameters
        ----------
        t : float
        numbers : ndarray of float64
            The kernel's numbers other than the length scale, in the order of the fields; four at most.

        Returns
        -------
        float
        """
        raise NotImplementedError

    def _steps(self) -> Steps | None:
        names = [p.name for p in dataclasses.fields(self) if p.name not in ("tuning", "length_scale")]
        numbers = [getattr(self, name) for name in names]
        known = type(self).compiled is not VectorKernel.compiled and not is_overridden(self, "value", "compiled")
        if not known or len(numbers) > 4 or not all(isinstance(number, (int, float)) for number in numbers):
            return None
        return [(steps.of_numbers(type(self).compiled), *map(float, numbers))]

    def _lengths(self) -> float | tuple[float, ...]:
        return getattr(self, "length_scale", 1.0)

    def _statistic(self) -> Statistic:
        lengths = self._lengths()
        scales = lengths if isinstance(lengths, tuple) else ()
        if self.statistic == "inner_product":
            return Dot()
        return SquaredDistance(scales) if self.statistic == "squared_distance" else ManhattanDistance(scales)

    @property
    def _power(self) -> int:
        return {"squared_distance": 2, "manhattan_distance": 1}.get(self.statistic, 0)

    def _multiplier(self) -> float:
        lengths = self._lengths()
        return 1.0 if isinstance(lengths, tuple) else float(lengths) ** -self._power

    def _multiplier_powers(self) -> Powers:
        return {} if isinstance(self._lengths(), tuple) or not self._power else {"length_scale": -self._power}

    def _finish(self, t: Array) -> None:
        t[...] = self._checked("value", self.value(t), t)

    def _slopes(self, t: Array) -> tuple[Array, dict[str, Array]]:
        outer = self._checked("derivative", self.derivative(t), t)
        return outer, {name: self._checked(f"slopes[{name!r}]", slope, t) for name, slope in self.slopes(t).items()}

    def _checked(self, part: str, result: Any, t: Array) -> Array:
        """The checked return value of a method: a number for each entry."""
        array = np.asarray(result)
        if array.shape != t.shape or array.dtype.kind not in "fiub":
            raise KernelValueError(
                f"{type(self).__name__}.{part} must return a number for each of the {t.shape} entries of t, but "
                f"returned {type(result).__name__} of the shape {array.shape}."
            )
        return array.astype(t.dtype, copy=False)


@dataclass(frozen=True, repr=False)
class FeatureKernel(_UserDefined, CountedFeatures):
    """Base of user-defined kernels that count features of objects: ``k(x, z) = sum_f count_f(x) count_f(z)``.

    A subclass is a frozen dataclass that declares the kind of its rows (``rows_of``) and counts the features of one of
    them. Gram matrices are products of sparse matrices, and features are computed once for each row.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Attributes
    ----------
    rows_of : type
        A class below :class:`mercer.extend.Objects`, such as :class:`mercer.extend.Strings`.

    Examples
    --------
    >>> from mercer.extend import FeatureKernel, Strings
    >>> @dataclass(frozen=True, repr=False)
    ... class Letters(FeatureKernel):
    ...     rows_of = Strings
    ...
    ...     def features(self, row):
    ...         return {letter: row.count(letter) for letter in set(row)}
    >>> Letters()(["abba", "ab"]).tolist()
    [[8.0, 4.0], [4.0, 2.0]]
    """

    @abc.abstractmethod
    def features(self, row: Any) -> Mapping[Hashable, float]:
        """Return the counts of the features of a row.

        Parameters
        ----------
        row : object
            A row in the form that ``rows_of`` reads.

        Returns
        -------
        dict of float
            Counts by feature; a feature is text, a number, or a tuple of these.
        """

    def _features(self, objects: Objects) -> Features:
        ids, counts, starts = [], [], [0]
        for number, row in enumerate(objects):
            threads.checkpoint()
            try:
                for name, count in self.features(row).items():
                    ids.append(_number_of(name))
                    counts.append(_finite(count))
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                raise KernelValueError(
                    f"{type(self).__name__}.features failed for row {number}: {error}. It must return a mapping from "
                    "text, numbers or tuples of these to finite numbers."
                ) from error
            starts.append(len(ids))
        return Features(np.array(ids, np.uint64), np.array(counts, np.float64), np.array(starts, np.int64))


def _finite(count: Any) -> float:
    value = float(count)
    if not math.isfinite(value):
        raise ValueError(f"a count is {value}")
    return value


def _number_of(name: Hashable) -> int:
    """A number of 64 bits for a feature, the same in every process and for equal names.

    >>> _number_of(("a", 1)) == _number_of(("a", np.int64(1))), _number_of(1.0) == _number_of(1)
    (True, True)
    """
    return int.from_bytes(hashlib.blake2b(repr(_plain(name)).encode(), digest_size=8).digest(), "little")


def _plain(name: Any) -> Any:
    """A name in a canonical form, which prints the same for equal names."""
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, tuple):
        return tuple(_plain(part) for part in name)
    if isinstance(name, (bool, int, float)):
        return int(name) if float(name).is_integer() else name
    if name is None or isinstance(name, (str, bytes)):
        return name
    raise TypeError(f"a feature is named by {type(name).__name__}")


@dataclass(frozen=True, repr=False)
class PairKernel(_UserDefined, PackedPairs):
    """Base of user-defined kernels that compare two objects directly.

    A subclass is a frozen dataclass that declares the kind of its rows (``rows_of``) and compares two of them. A Gram
    matrix takes one comparison for each pair.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Attributes
    ----------
    rows_of : type
        A class below :class:`mercer.extend.Objects`.
    prepared_by : tuple of str, optional
        Names of the parameters that :meth:`prepare` reads; all by default. Kernels of one class with equal values of
        these share the prepared rows, for instance in a search over the others.

    Examples
    --------
    >>> from mercer.extend import PairKernel, Strings
    >>> @dataclass(frozen=True, repr=False)
    ... class CommonPrefix(PairKernel):
    ...     rows_of = Strings
    ...
    ...     def compare(self, x, z):
    ...         return sum(x[:i] == z[:i] for i in range(1, min(len(x), len(z)) + 1))
    >>> CommonPrefix()(["abc", "abd"]).tolist()
    [[3.0, 2.0], [2.0, 3.0]]
    """

    on_trust: ClassVar[bool] = True
    prepared_by: ClassVar[tuple[str, ...] | None] = None

    @abc.abstractmethod
    def compare(self, x: Any, z: Any) -> float:
        """``k(x, z)`` of two rows; symmetric.

        Parameters
        ----------
        x, z : object
            The rows, as ``prepare`` returns them.

        Returns
        -------
        float
        """

    def prepare(self, row: Any) -> Any:
        """Convert a row to the form that ``compare`` takes: the work that is done once for each row.

        Parameters
        ----------
        row : object
            A row in the form that ``rows_of`` reads.

        Returns
        -------
        object
        """
        return row

    def slopes(self, x: Any, z: Any) -> Iterable[float]:
        """The derivative of ``compare`` by each of the kernel's tunable numbers.

        Parameters
        ----------
        x, z : object
            The rows, as for :meth:`compare`.

        Returns
        -------
        iterable of float
            In the order of the kernel's fields.
        """
        raise KernelValueError(
            f"{type(self).__name__} has tunable numbers but no slopes(x, z); define it, or fix the numbers with "
            "kernel.fixed()."
        )

    def _packing(self) -> Hashable:
        if self.prepared_by is None:
            return self
        names = [field.name for field in dataclasses.fields(self)]
        unknown = [name for name in self.prepared_by if name not in names]
        if unknown:
            raise ParameterError(
                f"{type(self).__name__}.prepared_by names {unknown[0]!r}, but the parameters are {', '.join(names)}."
            )
        return type(self), tuple(getattr(self, name) for name in self.prepared_by)

    def _pack(self, rows: Objects) -> list[Any]:
        return [self.prepare(row) for row in rows]

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._each(left, right, symmetric, lambda i, j, x, z: out.__setitem__((i, j), self._number(self.compare(x, z))))

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise KernelValueError(
                f"{type(self).__name__}.compare must return a number, but returned {type(value).__name__}."
            ) from error

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        total = np.zeros(len(self.parameters))
        if not any(parameter.free for parameter in self.parameters):
            return total

        def add(i: int, j: int, x: Any, z: Any) -> None:
            slopes = np.asarray(list(self.slopes(x, z)), dtype=np.float64)
            if slopes.shape != total.shape:
                raise KernelValueError(
                    f"{type(self).__name__}.slopes must return a number for each of the {len(total)} tunable numbers, "
                    f"but returned {len(slopes)}."
                )
            np.add(total, weights[i, j] * slopes, out=total)

        self._each(left, right, False, add)
        return total

    def _each(self, left: Packed, right: Packed, symmetric: bool, use: Callable[[int, int, Any, Any], None]) -> None:
        for i, one in enumerate(left.index):
            threads.checkpoint()
            for j in range(i if symmetric else 0, len(right.index)):
                use(i, j, left.store[one], right.store[right.index[j]])
