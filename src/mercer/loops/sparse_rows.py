"""Rows of a sparse matrix as loops take them."""

from typing import NamedTuple

from mercer._types import AnyArray, Integers


class SparseRows(NamedTuple):
    """A matrix in compressed form: those of row i stand from ``starts[i]`` to ``starts[i + 1]``."""

    starts: Integers
    columns: Integers
    values: AnyArray


class SparseSide(NamedTuple):
    """Some rows of a sparse matrix: one side of a block of inner products."""

    matrix: SparseRows
    index: Integers
    """Which rows are meant."""
