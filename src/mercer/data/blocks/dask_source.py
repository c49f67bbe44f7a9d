"""Collections of Dask: their partitions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer._errors import DataError

_NAMES = ("X", "y", "sample_weight")


def is_dask(X: Any) -> bool:
    """Whether rows are a collection of Dask: an array or a data frame.

    >>> is_dask(np.zeros((2, 1)))
    False
    """
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


def delayed_parts(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return references to the partitions of rows, targets and weights; None for what is not given.

    Raises
    ------
    DataError
        If one is not a collection of Dask, or they have different numbers of partitions.
    """
    if hasattr(X, "map_blocks") and X.ndim == 2:
        X = X.rechunk({1: -1})
    sides = [_pieces(side, X, name) for side, name in zip((X, y, sample_weight), _NAMES, strict=True)]
    counts = {len(side) for side in sides if side is not None}
    if len(counts) > 1:
        raise DataError(
            f"X, y and sample_weight have different numbers of partitions ({sorted(counts)}); give them the same ones "
            "(rechunk or repartition)."
        )
    none = [None] * max(counts)
    return list(zip(*(none if side is None else side for side in sides), strict=True))


def partitions_of(X: Any, y: Any, sample_weight: Any) -> Callable[[], Iterator[tuple[Any, ...]]]:
    """Return a function that yields the rows of one partition after the other, with the targets and weights given."""
    parts = delayed_parts(X, y, sample_weight)

    def read() -> Iterator[tuple[Any, ...]]:
        for part in parts:
            rows, targets, weights = (None if side is None else side.compute() for side in part)
            plain = [None if side is None else np.asarray(side) for side in (targets, weights)]
            yield (rows, *plain)

    return read


def _pieces(side: Any, X: Any, name: str) -> list[Any] | None:
    """The partitions of one collection."""
    if side is None:
        return None
    if not is_dask(side):
        raise DataError(
            f"{name} must be a collection of Dask if X is one, but is a {type(side).__name__}; convert it "
            "(dask.array.from_array)."
        )
    if hasattr(side, "map_blocks") and hasattr(X, "map_blocks") and not np.isnan(X.chunks[0]).any():
        if side.shape[0] != X.shape[0]:
            raise DataError(f"X has {X.shape[0]} rows and {name} has {side.shape[0]}; they must have the same.")
        side = side.rechunk({0: X.chunks[0], **({1: -1} if side.ndim == 2 else {})})
    return list(np.ravel(side.to_delayed()))
