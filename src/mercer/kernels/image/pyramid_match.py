"""Sets of descriptors compared by their matches in grids of increasing width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.bags import Bags, member_vectors
from mercer.data.objects import Objects
from mercer.engine import memory
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import positive, whole
from mercer.loops.graphs import join_all

_MOST_LEVELS = 50
# Places of cells beyond this are not exact whole numbers.
_FARTHEST = 2.0**52
# Hash, count and level of a feature, the number of its vector, and its entry in the table of features.
_FEATURE_BYTES = 52


@dataclass(frozen=True, repr=False)
class PyramidMatch(FeatureKernel):
    """``k(A, B) = sum_i 2^-i (I_i - I_{i-1})`` with ``I_i = sum_c min(count_ic(A), count_ic(B))`` and ``I_{-1} = 0``.

    ``count_ic(A)`` is the number of vectors of the set A in the cell c of a grid whose cells have the side
    ``side * 2^i``, ``i = 0, ..., levels``. ``I_i`` is how many vectors can be matched on level i, and those that
    can be matched on no finer one count ``2^-i``. As a sum of intersections with weights above 0 it is positive
    semi-definite. A row is an array (vectors, d), or a list of vectors.

    Parameters
    ----------
    side : float, default=1.0
        Side of the finest cells, in the units of the vectors.
    levels : int, default=8
        The widest grid has the side ``side * 2^levels``.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``side`` is not above 0, or ``levels`` is out of its range.
    DataError
        When evaluated, if a row is not a set of vectors, or vectors are of different lengths or too far from 0.
    MemoryBudgetError
        When evaluated, if there are too many vectors and levels.

    Notes
    -----
    Grauman and Darrell (2007), "The pyramid match kernel: efficient learning with sets of features", equation 8, with
    grids that begin at 0. ``.normalized()`` removes the effect of the sizes of the sets. Cells are identified by hashes
    of 64 bits.

    Examples
    --------
    >>> k = PyramidMatch(1.0, levels=2)
    >>> k([[[0.5], [5.5]], [[0.6], [4.5]], [[3.5]]]).tolist()
    [[2.0, 1.5, 0.25], [1.5, 2.0, 0.25], [0.25, 0.25, 1.0]]
    """

    side: float = 1.0
    levels: int = 8

    rows_of: ClassVar[type[Objects]] = Bags

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "side", positive("PyramidMatch", "side", self.side, "a number above 0"))
        allowed = f"a whole number from 0 to {_MOST_LEVELS}"
        levels = whole("PyramidMatch", "levels", self.levels, allowed, low=0)
        if levels > _MOST_LEVELS:
            raise ParameterError(f"PyramidMatch: levels must be {allowed}, but is {levels}; raise side instead.")
        object.__setattr__(self, "levels", levels)

    def read_rows(self, X: Any) -> Bags:
        return Bags.of(X, members=_as_vectors)

    def _level_weights(self) -> Array:
        weights = 0.5 ** np.arange(self.levels + 1)
        # sum_i w_i (I_i - I_{i-1}), ordered by the intersections.
        return weights - np.append(weights[1:], 0.0)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        one, other = (_vectors(side.root.objects(Bags)) for side in (pairs.left, pairs.right))
        if one.shape[1] != other.shape[1]:
            raise DataError(
                f"PyramidMatch: the vectors of one side are of length {one.shape[1]}, and those of the other of "
                f"{other.shape[1]}."
            )
        super()._fill(pairs, out)

    def _features(self, objects: Any) -> Features:
        """One feature for the first vector in a cell, another for the second: the smaller count is shared."""
        vectors, starts = _vectors(objects), objects.starts
        size = len(vectors) * (self.levels + 1)
        memory.require(
            _FEATURE_BYTES * size,
            f"the cells of {len(vectors)} vectors on {self.levels + 1} levels",
            "Lower levels, use fewer vectors, or raise the budget with mercer.config(memory=...).",
        )
        with np.errstate(over="ignore"):
            cells = np.floor(vectors.astype(np.float64, copy=False) / self.side)
        if np.abs(cells).max() > _FARTHEST:
            raise DataError(
                f"a vector reaches {np.abs(vectors).max():g}, which is more than 2^52 cells of side {self.side:g} away "
                "from 0; scale the vectors, or choose a larger side."
            )
        owners = np.repeat(np.arange(len(objects), dtype=np.int64), np.diff(starts))
        whole_cells = cells.astype(np.int64)
        ids = np.empty((len(vectors), self.levels + 1), np.uint64)
        for level in range(self.levels + 1):
            ids[:, level] = _hashed(whole_cells >> level, level, owners)
        levels = np.tile(np.arange(self.levels + 1), len(vectors))
        return Features(ids.ravel(), np.ones(ids.size), starts * (self.levels + 1), levels)


def _hashed(cells: np.ndarray, level: int, owners: np.ndarray) -> np.ndarray:
    """A hash of the level, the cell of each vector and the number of earlier vectors of its set in that cell."""
    places = np.full(len(cells), level, np.uint64)
    for column in cells.T:
        places = join_all(places, np.ascontiguousarray(column).astype(np.uint64))
    order = np.lexsort((places, owners))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(places[order]) != 0) | (np.diff(owners[order]) != 0)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    before = np.empty(len(order), np.uint64)
    before[order] = np.arange(len(order)) - first
    return join_all(places, before)


def _vectors(bags: Any) -> np.ndarray:
    """The vectors of all bags."""
    vectors: Bags = bags.keep("vectors", lambda: bags.reread(_as_vectors))
    return vectors.rows


def _as_vectors(members: Any) -> np.ndarray:
    return members if isinstance(members, np.ndarray) else member_vectors(list(members))
