"""Rows in partitions on other machines: each makes its own sums, which are added in a tree; the rows do not move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from mercer._types import Matrix, Vector
from mercer.solvers.restricted.kept import KeptRows
from mercer.solvers.restricted.passes import Part, Revise, StoredRows, Visit
from mercer.solvers.restricted.revised import RevisedRows

Sums = tuple[Matrix, Vector]


@dataclass(frozen=True, eq=False)
class Groups:
    """Partitions that have one task together.

    Parameters
    ----------
    positions : sequence of sequence of int
        Of the partitions of each group.
    each : callable
        ``(function)`` gives ``function(list of values)`` of every group.
    """

    positions: Sequence[Sequence[int]]
    each: Callable[[Callable[[list[Any]], Any]], list[Any]]


@dataclass(frozen=True, eq=False)
class Cluster:
    """How work gets to partitions.

    Parameters
    ----------
    partitions : sequence
        References to rows, where they are.
    each : callable
        ``(function, references, argument)`` gives references to ``function(rows, argument)`` of every partition.
    merge : callable
        ``(function, references)`` gives the reference to ``function(list of values)``.
    values : callable
        From references to their values.
    keep : callable
        From references to others, whose values are computed once and stay where they are as long as these do.
    limit : callable
        The memory of the process that calls it, in bytes; it is sent to the partitions.
    near : callable
        From references, whose values it waits for, to groups of them that one thread of one process serves.
    groups : Groups, optional
        Such groups of ``partitions``, if they are known.
    """

    partitions: Sequence[Any]
    each: Callable[[Callable[[Any, Any], Any], Sequence[Any], Any], list[Any]]
    merge: Callable[[Callable[[list[Any]], Any], Sequence[Any]], Any]
    values: Callable[[Sequence[Any]], list[Any]]
    keep: Callable[[Sequence[Any]], list[Any]]
    limit: Callable[[], float]
    near: Callable[[Sequence[Any]], Groups | None]
    groups: Groups | None = None


@dataclass(frozen=True, eq=False)
class _Pass:
    """The work on one partition."""

    stored: Callable[[Any], StoredRows]
    V: Matrix
    visit: Visit
    widths: tuple[int, int]
    in_single: bool


# Sums that are added in one place. These come here if they have at most this many numbers together: a further task
# takes longer than fetching them.
_FAN, _FETCHED = 8, 2**17


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """Rows in partitions.

    Parameters
    ----------
    shape : tuple of int
        Rows n, landmarks m, targets t.
    cluster : Cluster
    stored : callable
        From the rows of a partition to kernel values with landmarks; it is sent to the partitions.
    draw : callable
        A uniform sample of rows.
    in_single : bool, default=False
        Whether kernel values are in float32.
    """

    shape: tuple[int, int, int]
    cluster: Cluster
    stored: Callable[[Any], StoredRows]
    draw: Callable[[int, np.random.RandomState], tuple[Matrix, Part]]
    in_single: bool = False

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> Sums:
        """``K^T U`` and sums over partitions."""
        work = _Pass(self.stored, np.ascontiguousarray(V), visit, widths, self.in_single)
        few = _FAN if _FAN * (self.shape[1] * widths[0] + widths[1]) <= _FETCHED else 1
        # The order of the additions depends on the number of partitions alone.
        if self.cluster.groups is not None and len(self.cluster.partitions) <= few:
            return _add(self._by_groups(work, self.cluster.groups))
        sums = self.cluster.each(_sweep, self.cluster.partitions, work)
        while len(sums) > few:
            sums = [self.cluster.merge(_add, sums[start : start + _FAN]) for start in range(0, len(sums), _FAN)]
        return _add(self.cluster.values(sums))

    def _by_groups(self, work: _Pass, groups: Groups) -> list[Sums]:
        """The sums of each partition, by one task for each group: many short tasks keep the scheduler busy."""
        partial_sums = [sums for several in groups.each(partial(_sweep_all, work)) for sums in several]
        return [partial_sums[k] for k in np.argsort([i for group in groups.positions for i in group])]

    def revised(
        self, V: Matrix, revise: Revise, visit: Visit, widths: tuple[int, int]
    ) -> tuple[RevisedRows, Matrix, Vector]:
        """The rows with the targets ``revise(part, K[part] @ V)``, and what a sweep over these returns; one pass."""
        return RevisedRows(self, ()).revised(V, revise, visit, widths)

    def single(self) -> PartitionedRows:
        """The same rows with kernel values in float32."""
        return replace(self, in_single=True)

    def held_in_single(self, stack: ExitStack) -> PartitionedRows:
        """The same rows with kernel values in float32, beside the rows until the stack is closed where they fit.

        A partition that is lost is evaluated again.
        """
        kept = self.cluster.keep(self.cluster.each(_keep, self.cluster.partitions, (self.stored, self.cluster.limit)))
        stack.callback(kept.clear)
        held = replace(self.cluster, partitions=kept, groups=self.cluster.near(kept))
        return replace(self, cluster=held, stored=attrgetter("single"))

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        return self.draw(count, random)


def _sweep(rows: Any, work: _Pass) -> Sums:
    stored = work.stored(rows)
    part = (stored.single() or stored) if work.in_single else stored
    return part.sweep(work.V, work.visit, work.widths)


def _sweep_all(work: _Pass, partitions: list[Any]) -> list[Sums]:
    return [_sweep(rows, work) for rows in partitions]


def _keep(rows: Any, how: tuple[Callable[[Any], StoredRows], Callable[[], float]]) -> KeptRows:
    stored, limit = how
    return KeptRows(rows, stored, limit())


def _add(sums: list[Sums]) -> Sums:
    products, numbers = (np.array(part) for part in sums[0])
    for more in sums[1:]:
        products += more[0]
        numbers += more[1]
    return products, numbers
