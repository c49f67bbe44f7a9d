"""The answers of one-vs-one problems in arrays, because half a million objects would take longer than solving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.box_qp import BoxQPValue

Answer = Solution[BoxQPValue, Vector]
Pair = tuple[int, int]
STATUSES = tuple(Status)


class PairLayout:
    """The layout of values for the rows of each pair of classes, in one array (k - 1, n), rows sorted by class.

    For a row of class c, entry j is for the pair with the j-th class other than c. Values of the pairs themselves (p,)
    are in the order (0, 1), (0, 2), ..., (1, 2), ...

    Parameters
    ----------
    sizes : ndarray of shape (k,)
        Rows of each class.

    Examples
    --------
    >>> layout = PairLayout(np.array([1, 2, 1]))
    >>> values = np.zeros((2, 4), int)
    >>> for pair, part in {(0, 1): [1, 2, 3], (0, 2): [4, 5], (1, 2): [6, 7, 8]}.items():
    ...     layout.put(values, pair, np.array(part))
    >>> values.tolist(), layout.take(values, (1, 2)).tolist()
    ([[1, 2, 3, 5], [4, 6, 7, 8]], [6, 7, 8])
    """

    def __init__(self, sizes: NDArray[np.integer]) -> None:
        self.sizes = np.asarray(sizes, dtype=np.intp)
        self.k, self.n = len(self.sizes), int(self.sizes.sum())
        self.pairs = self.k * (self.k - 1) // 2
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def classes(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and the second class of each pair, (p,) each."""
        order = np.arange(self.k)
        first, second = np.nonzero(order[:, None] < order)
        return first, second

    def part(self, group: int) -> slice:
        """The rows of a class."""
        return slice(int(self.starts[group]), int(self.starts[group + 1]))

    def rows(self, pair: Pair) -> NDArray[np.intp]:
        """The rows of a pair."""
        return np.r_[self.part(pair[0]), self.part(pair[1])]

    def number(self, i: Any, j: Any) -> Any:
        """Return the position of the pair of classes ``i < j`` among all pairs; also for arrays of pairs."""
        return i * (2 * self.k - i - 1) // 2 + j - i - 1

    def against_later(self, i: int) -> slice:
        """The positions of the pairs of class ``i`` with each later one."""
        return slice(int(self.number(i, i + 1)), int(self.number(i, self.k)))

    def take(self, values: np.ndarray, pair: Pair) -> np.ndarray:
        """Return the values of one pair, its first class first."""
        i, j = pair
        return np.concatenate([values[j - 1, self.part(i)], values[i, self.part(j)]])

    def put(self, values: np.ndarray, pair: Pair, part: np.ndarray) -> None:
        """Set the values of one pair."""
        i, j = pair
        first = int(self.sizes[i])
        values[j - 1, self.part(i)], values[i, self.part(j)] = part[:first], part[first:]

    def spread(self, of_pairs: np.ndarray) -> np.ndarray:
        """Values of the pairs (p,) for every row, (k - 1, n)."""
        table = np.zeros((self.k, self.k), of_pairs.dtype)
        table[self.classes] = of_pairs
        return self._of_rows(table + table.T)

    def least(self, values: np.ndarray) -> np.ndarray:
        """The least value among the rows of a pair, for every row, (k - 1, n)."""
        table = np.full((self.k, self.k), np.inf)
        table[np.arange(self.k), self._others()] = np.minimum.reduceat(values, self.starts[:-1], axis=1)
        return self._of_rows(np.minimum(table, table.T))

    def sums(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of values (k - 1, n) over the class of each row, and over the other class of the pair."""
        table = np.zeros((self.k, self.k))
        table[np.arange(self.k), self._others()] = np.add.reduceat(values, self.starts[:-1], axis=1)
        return self._of_rows(table), self._of_rows(table.T)

    def _others(self) -> NDArray[np.intp]:
        """The j-th class other than c, (k - 1, k)."""
        j = np.arange(self.k - 1)[:, None]
        return j + (j >= np.arange(self.k))

    def _of_rows(self, table: np.ndarray) -> np.ndarray:
        return np.repeat(table[np.arange(self.k), self._others()], self.sizes, axis=1)


@dataclass(frozen=True, eq=False)
class Certificates(Sequence[Certificate]):
    """A sequence of certificates, one for each pair of classes, created on access.

    Parameters
    ----------
    primal, dual, kkt_violation, iterations, seconds, peak_bytes : ndarray of shape (p,)
        The figures of the certificates.
    status : ndarray of shape (p,)
        Positions in :class:`mercer.solvers.solution.Status`.
    violations : dict of str to ndarray of shape (p,)
        NaN where a certificate has no violation of that name.
    convex : ndarray of bool of shape (p,)
        Whether the problems are convex.
    storage : dict of str to ndarray of bool of shape (p,)
        Where the kernel matrix was, in a sentence, and for which problems.

    Examples
    --------
    >>> one = Certificates.empty(1)
    >>> one.put(0, Certificate(1.5, 1.0, 1e-4, 10, 0.1, 800, Status.converged))
    >>> one[0].gap
    0.5
    """

    primal: Vector
    dual: Vector
    kkt_violation: Vector
    iterations: NDArray[np.int64]
    seconds: Vector
    peak_bytes: NDArray[np.int64]
    status: NDArray[np.int8]
    violations: dict[str, Vector]
    convex: NDArray[np.bool_]
    storage: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = *self._figures(), self.status, self.convex, *self.violations.values(), *self.storage.values()
        shapes = {column.shape for column in columns}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise ValueError("the columns of certificates must be vectors of one length.")
        if not 0 <= self.status.min(initial=0) <= self.status.max(initial=0) < len(STATUSES):
            raise ValueError(f"every status must be from 0 to {len(STATUSES) - 1}.")

    @classmethod
    def empty(cls, count: int) -> Certificates:
        """Create arrays for ``count`` certificates."""
        numbers, whole = np.zeros((4, count)), np.zeros((2, count), dtype=np.int64)
        status, convex = np.zeros(count, dtype=np.int8), np.ones(count, dtype=bool)
        return cls(numbers[0], numbers[1], numbers[2], whole[0], numbers[3], whole[1], status, {}, convex)

    def put(self, number: int, part: Certificate) -> None:
        """Set one certificate."""
        figures = part.primal, part.dual, part.kkt_violation, part.iterations, part.seconds, part.peak_bytes
        for column, value in zip(self._figures(), figures):
            column[number] = value
        self.status[number], self.convex[number] = STATUSES.index(part.status), part.convex
        for name, value in part.violations.items():
            self.column(name)[number] = value
        if part.storage:
            self.stored(part.storage)[number] = True

    def column(self, name: str) -> Vector:
        """The violations of that name, made if there were none."""
        return self.violations.setdefault(name, np.full(len(self), np.nan))

    def stored(self, sentence: str) -> NDArray[np.bool_]:
        """For which problems that sentence holds, made if it held for none."""
        return self.storage.setdefault(sentence, np.zeros(len(self), dtype=bool))

    def __len__(self) -> int:
        return len(self.primal)

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | list[Certificate]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        primal, dual, violation, iterations, seconds, peak_bytes = (column[index].item() for column in self._figures())
        violations = {name: float(column[index]) for name, column in self.violations.items()}
        return Certificate(
            primal,
            dual,
            violation,
            iterations,
            seconds,
            peak_bytes,
            STATUSES[self.status[index]],
            {name: value for name, value in violations.items() if not np.isnan(value)},
            bool(self.convex[index]),
            next((sentence for sentence, parts in self.storage.items() if parts[index]), ""),
        )

    def __repr__(self) -> str:
        return f"<{len(self)} certificates>"

    def _figures(self) -> tuple[np.ndarray, ...]:
        return self.primal, self.dual, self.kkt_violation, self.iterations, self.seconds, self.peak_bytes


class PairAnswers:
    """The answers of all pairs of classes.

    ``beta``, ``gradient`` and ``state`` are held as by :class:`PairLayout`, ``offsets`` (p,) and ``certificates`` by
    pair.

    Parameters
    ----------
    sizes : ndarray of shape (k,)
        Rows of each class.
    """

    def __init__(self, sizes: NDArray[np.integer]) -> None:
        self.layout = PairLayout(sizes)
        self.beta, self.gradient, self.state = np.zeros((3, self.layout.k - 1, self.layout.n))
        self.offsets = np.zeros(self.layout.pairs)
        self.certificates = Certificates.empty(self.layout.pairs)

    def put(self, pair: Pair, answer: Answer) -> None:
        """Keep the answer of one pair."""
        number = self.layout.number(*pair)
        value = answer.value
        for values, part in ((self.beta, value.beta), (self.gradient, value.gradient), (self.state, answer.state)):
            self.layout.put(values, pair, part)
        self.offsets[number] = value.offset
        self.certificates.put(number, answer.certificate)
