"""Rows in any form: what a learner over landmarks is fitted to, and what it predicts for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.estimators.shared.on_blocks import ArrayRows, BlockRows, RowSource, named
from mercer.estimators.shared.on_dask import DaskRows, predicted
from mercer.estimators.shared.whole_rows import answers_parts


def row_source(learner: Any, X: Any, y: Any, sample_weight: Any) -> RowSource | None:
    """The rows of a fit over landmarks, with a sample of those that are not in memory; None for exact fits to arrays.

    Arrays with a checkpoint are read in blocks.
    """
    if is_dask(X):
        return DaskRows.of(learner, X, y, sample_weight)
    if isinstance(X, Blocks):
        return BlockRows.of(learner, X, y, sample_weight)
    if getattr(learner, "checkpoint", None) is not None:
        return BlockRows.of(learner, Blocks.from_arrays(X, y, sample_weight=sample_weight), None, None)
    return ArrayRows.of(X, y, sample_weight) if learner.is_on_landmarks else None


def in_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that predicts for rows take blocks, whose answers are joined, and collections of Dask."""

    @functools.wraps(method)
    def predict(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(X, Blocks):
            return np.concatenate([method(self, named(block.X, X.columns), *arguments, **options) for block in X])
        return predicted(method, self, X) if is_dask(X) else method(self, X, *arguments, **options)

    return answers_parts(predict)
