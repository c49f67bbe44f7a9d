"""Learners over landmarks on rows that Dask has in partitions, on one machine or on many."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._optional import optional
from mercer._types import AnyArray, Vector
from mercer.data.blocks.block import Block, join
from mercer.data.blocks.dask_source import delayed_parts
from mercer.data.seeds import generator
from mercer.engine.settings import current, inherited
from mercer.estimators.shared.on_blocks import (
    RowSource,
    Stored,
    Targets,
    check_parts,
    count_of,
    rows_to_draw,
    weights_of_labels,
)
from mercer.estimators.shared.restricted import Restriction
from mercer.solvers.restricted.partitions import Cluster, Groups, PartitionedRows


@dataclass(frozen=True, eq=False)
class DaskRows(RowSource):
    """Rows in partitions.

    Parameters
    ----------
    cluster : Cluster
        Partitions of blocks.
    """

    cluster: Cluster

    @classmethod
    def of(cls, learner: Any, X: Any, y: Any, sample_weight: Any) -> DaskRows:
        """Have all partitions in the memory of the workers, and draw a sample of their rows."""
        check_parts(learner, X)
        if getattr(learner, "checkpoint", None) is not None:
            raise ParameterError(
                "checkpoint is for rows on this machine; leave it out for collections of Dask, whose workers repeat "
                "the work of one that dies, or pass Blocks."
            )
        cluster = _cluster(_partitions(X, y, sample_weight))
        counts = cluster.values(cluster.each(_count, cluster.partitions, None))
        n = sum(counts)
        if not n:
            raise DataError(f"X has no rows in its {len(counts)} partitions; a fit needs at least one.")
        used = [part for part, count in zip(cluster.partitions, counts, strict=True) if count]
        counts, cluster = [count for count in counts if count], replace(cluster, partitions=used)
        size = rows_to_draw(n, count_of(learner))
        random = generator(0 if learner.random_state is None else learner.random_state)
        chosen = np.sort(random.choice(n, size, replace=False))
        starts = np.concatenate([[0], np.cumsum(counts)])
        bounds = np.searchsorted(chosen, starts)
        drawn = []
        for number, part in enumerate(cluster.partitions):
            own = chosen[bounds[number] : bounds[number + 1]] - starts[number]
            if len(own):
                drawn += cluster.each(_take, [part], own)
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        sample = join(cluster.values(drawn))
        if sample.y is None:
            raise DataError(f"{type(learner).__name__} needs targets y, and y is None; pass a collection of Dask.")
        return cls(sample, names, n, cluster)

    @property
    def classes(self) -> tuple[AnyArray, Vector]:
        parts = self.cluster.values(self.cluster.each(_labels, self.cluster.partitions, None))
        classes, where = np.unique(np.concatenate([labels for labels, _ in parts]), return_inverse=True)
        totals = np.bincount(where, np.concatenate([weights for _, weights in parts]))
        return classes[totals > 0], np.asarray(totals[totals > 0], dtype=np.float64)

    @contextmanager
    def rows(self, learner: Any, parts: Restriction, targets: Targets, settings: object) -> Iterator[PartitionedRows]:
        # A worker has a task for each of its threads.
        stored = Stored(learner.kernel_, parts.landmarks.rows, targets, 1)
        n, sample = replace(stored, n_jobs=learner.n_jobs).sampled(self.sample, self.n)
        yield PartitionedRows((n, *sample.shape[1:]), self.cluster, stored, sample.sample)


def predicted(method: Callable[..., Any], learner: Any, X: Any) -> Any:
    """What a method predicts for a collection of Dask, as a collection that is computed on request."""
    example = method(learner, _example(X))
    if hasattr(X, "map_blocks"):
        wide = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], (example.shape[1],))}
        whole = X.rechunk({1: -1})
        return whole.map_blocks(_on_one_thread, method, learner, dtype=example.dtype, meta=example[:0], **wide)
    return X.map_partitions(_on_one_thread, method, learner, meta=example[:0])


def _example(X: Any) -> Any:
    """One row of zeros like those of a collection."""
    if hasattr(X, "map_blocks"):
        return np.zeros((1, X.shape[1]), X.dtype)
    return X._meta_nonempty.iloc[:1]


def _on_one_thread(X: Any, method: Callable[..., Any], learner: Any) -> Any:
    with inherited(replace(current(), n_jobs=1)):
        return method(learner, X)


def _partitions(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """References to blocks, one for each partition of the rows of X."""
    make = optional("dask", "rows in partitions").delayed(_block, pure=False)
    return [make(*parts) for parts in delayed_parts(X, y, sample_weight)]


def _block(X: Any, y: Any, weights: Any) -> Block:
    """Rows of a partition, as arrays."""
    targets, weights = (None if side is None else np.asarray(side) for side in (y, weights))
    rows = X if hasattr(X, "toarray") else np.ascontiguousarray(X, dtype=None if _is_float(X) else np.float64)
    if not np.isfinite(rows.data if hasattr(X, "toarray") else rows).all():
        raise DataError("a partition of X has NaN or infinite values; impute them, or leave out their rows.")
    for side, name in ((targets, "y"), (weights, "sample_weight")):
        if side is not None and len(side) != rows.shape[0]:
            raise DataError(
                f"a partition has {rows.shape[0]} rows in X and {len(side)} in {name}; give both the same divisions."
            )
    if weights is not None and not ((weights >= 0) & np.isfinite(weights)).all():
        raise DataError("a partition of sample_weight has negative or infinite values or NaN; weights count rows.")
    return Block(rows, targets, weights)


def _is_float(X: Any) -> bool:
    return getattr(X, "dtype", None) in (np.float32, np.float64)


def _count(block: Block, _: None) -> int:
    return block.rows


def _labels(block: Block, _: None) -> tuple[AnyArray, Vector]:
    return weights_of_labels(block)


def _take(block: Block, positions: Vector) -> Block:
    return block.take(positions)


def _cluster(partitions: Sequence[Any]) -> Cluster:
    """The scheduler of the context: that of the current Client, or threads of this process."""
    dask = optional("dask", "rows in partitions")

    def each(function: Callable[[Any, Any], Any], references: Sequence[Any], argument: Any) -> list[Any]:
        # The argument contains no collections: Dask need not look for them in it.
        work, shared = dask.delayed(function, pure=False), dask.delayed(argument, pure=False, traverse=False)
        return [work(reference, shared) for reference in references]

    def merge(function: Callable[[list[Any]], Any], references: Sequence[Any]) -> Any:
        return dask.delayed(function, pure=False)(list(references))

    def keep(references: Sequence[Any]) -> list[Any]:
        return list(dask.persist(*references))

    def values(references: Sequence[Any]) -> list[Any]:
        return list(dask.compute(*references))

    return Cluster(keep(partitions), each, merge, values, keep, _memory_of_worker, _near)


def _near(references: Sequence[Any]) -> Groups | None:
    """As many groups for each worker as it has threads, of what it has; None without workers."""
    client = None if "distributed" not in sys.modules else _client()
    if client is None:
        return None
    distributed = optional("distributed", "rows in partitions")
    futures = distributed.futures_of(list(references))
    if len(futures) != len(references):
        return None
    distributed.wait(futures)
    homes, threads = client.who_has(futures), client.nthreads()
    groups: dict[tuple[str, int], list[int]] = {}
    seen: dict[str, int] = {}
    for position, future in enumerate(futures):
        home = next(iter(homes.get(future.key, ())), "")
        number = seen[home] = seen.get(home, -1) + 1
        groups.setdefault((home, number % threads.get(home, 1)), []).append(position)
    positions = list(groups.values())

    def each(function: Callable[[list[Any]], Any]) -> list[Any]:
        # From the references each time, so that nothing is kept when these are gone. Without a graph there is less to
        # send; where a worker has died, the scheduler computes its part again.
        here = distributed.futures_of(list(references))
        return list(
            client.gather([client.submit(function, [here[i] for i in group], pure=False) for group in positions])
        )

    return Groups(positions, each)


def _client() -> Any:
    """The client that computes in this context, or None."""
    scheduler = optional("dask.base", "rows in partitions").get_scheduler()
    client = getattr(scheduler, "__self__", None)
    return client if hasattr(client, "who_has") else None


def _memory_of_worker() -> float:
    """The memory limit of the worker of Dask that calls this, in bytes; infinity elsewhere."""
    if "distributed" not in sys.modules:
        return math.inf
    distributed = optional("distributed", "rows in partitions")
    try:
        worker = distributed.get_worker()
    except ValueError:
        # Not on a worker: Dask works with threads of this process.
        return math.inf
    return float(worker.memory_manager.memory_limit or math.inf)
