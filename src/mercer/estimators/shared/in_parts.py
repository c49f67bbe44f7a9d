"""Rows that come in parts, in files or on a cluster: what a learner over landmarks makes of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.estimators.shared.on_blocks import BlockFit, named
from mercer.estimators.shared.on_dask import DaskFit, predicted


def start(learner: Any, X: Any, y: Any, sample_weight: Any) -> BlockFit | DaskFit | None:
    """Begin a fit to rows in parts, and to arrays if there is a checkpoint; None for other fits to arrays."""
    if is_dask(X):
        return DaskFit.of(learner, X, y, sample_weight)
    if isinstance(X, Blocks):
        return BlockFit.of(learner, X, y, sample_weight)
    if learner.checkpoint is not None:
        return BlockFit.of(learner, Blocks.from_arrays(X, y, sample_weight=sample_weight), None, None)
    return None


def in_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that predicts for rows take blocks, whose answers are joined, and collections of Dask."""

    @functools.wraps(method)
    def predict(self: Any, X: Any) -> Any:
        if isinstance(X, Blocks):
            return np.concatenate([method(self, named(block.X, X.columns)) for block in X])
        return predicted(method, self, X) if is_dask(X) else method(self, X)

    return predict
