"""Where K is while a problem is solved: the one decision on memory for it, and the sentence for certificates.

A solver says in which precisions it can use all of K, the best one first, and how many bytes it needs beside it. K is
then kept whole in the first precision that fits the memory budget, or stays lazy. A matrix that is stored already is
used where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import MemoryBudgetError, NumericalError
from mercer._types import Array
from mercer.engine import memory
from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.protocol import GramMatrix

REMEDY = "Raise the budget with mercer.config(memory=...), or fit on fewer rows."
# Bytes of a matrix that is made as a whole, half of it by symmetry, without being asked for.
_SMALL = 2**25
# Precisions in which all of K is of use, the best one first, with the bytes that are needed beside it.
Precisions = Mapping[Any, int]


@dataclass(frozen=True, eq=False)
class Storage:
    """K as a solver uses it.

    Attributes
    ----------
    gram : GramMatrix
        To multiply by and to take parts of.
    array : ndarray of shape (n, m) or None
        All entries, if they are stored; not to be written to unless ``hold`` was asked for a copy.
    sentence : str
        Where the entries are, for :class:`mercer.solvers.solution.Certificate`.
    """

    gram: GramMatrix
    array: Array | None
    sentence: str


def hold(
    gram: GramMatrix, stack: ExitStack, precisions: Precisions, *, copy: bool = False, required: str = ""
) -> Storage:
    """Keep K whole in the first precision that fits the memory budget; else it stays as it is.

    Parameters
    ----------
    gram : GramMatrix
    stack : ExitStack
        Keeps the memory reserved until it is closed.
    precisions : dict of dtype to int
        Precisions in which all of K is of use, the best one first, with the bytes that must be free beside it.
    copy : bool, default=False
        Whether a stored matrix is copied: to have it in one of the precisions and C-ordered, or to write to it.
    required : str, default=""
        Given if the solver can do nothing without it: what to do if it does not fit, for the error.

    Raises
    ------
    MemoryBudgetError
        If it is required, and does not fit; raised before anything is allocated.

    Examples
    --------
    >>> with ExitStack() as stack:
    ...     print(hold(PrecomputedGram(np.eye(2)), stack, {np.float64: 0}, copy=True).sentence)
    ...     print(hold(PrecomputedGram(np.eye(2)), stack, {np.float64: 0}).sentence)
    held whole in float64, 32 bytes
    given whole in float64, 32 bytes
    """
    given = None if copy else gram.stored_array()
    if given is not None:
        return Storage(gram, given, as_it_is(gram))
    dtype, sentence = reserve_whole(gram.shape, stack, precisions, required=required)
    if dtype is None:
        return Storage(gram, None, sentence)
    array = whole_matrix(gram, dtype)
    return Storage(PrecomputedGram(array), array, sentence)


def as_it_is(gram: GramMatrix) -> str:
    """The sentence for a matrix that a solver uses as it is given.

    >>> as_it_is(PrecomputedGram(np.eye(2)))
    'given whole in float64, 32 bytes'
    """
    given = gram.stored_array()
    return "evaluated by tiles" if given is None else f"given whole in {given.dtype}, {memory.describe(given.nbytes)}"


def held_whole(array: Array) -> str:
    """The sentence for an array of all entries that serves several solves.

    >>> held_whole(np.eye(2))
    'held whole in float64, 32 bytes'
    """
    return f"held whole in {array.dtype}, {memory.describe(array.nbytes)}"


def hold_exact(gram: GramMatrix, stack: ExitStack, *, beside: int, required: str = "") -> Storage:
    """Keep K whole in float64 and C-ordered if that and so many bytes beside it fit; a given matrix that is, as it is.

    Parameters are those of :func:`hold`.
    """
    if gram.stored_as(np.float64) is None:
        return hold(gram, stack, {np.float64: beside}, copy=True, required=required)
    if required or fits(beside):
        return hold(gram, stack, {})
    return Storage(
        gram, None, f"given whole in float64, with too little memory for {memory.describe(beside)} beside it"
    )


def reserve_whole(
    shape: tuple[int, int], stack: ExitStack, precisions: Precisions, *, required: str = "", what: str = ""
) -> tuple[np.dtype | None, str]:
    """Reserve memory for a whole matrix: in which precision, or None if it fits in none, and the sentence.

    Parameters are those of :func:`hold`; ``what`` is said in the place of "the n x m kernel matrix in float64".
    """
    most, free = 0, 0.0
    for kind, beside in precisions.items():
        dtype = np.dtype(kind)
        size = shape[0] * shape[1] * dtype.itemsize
        most, free = size + beside, memory.room(size + beside)
        if most > free and not required:
            continue
        try:
            name = what or f"the {shape[0]} x {shape[1]} kernel matrix in {dtype}"
            stack.enter_context(memory.reserve(size, name, required))
        except MemoryBudgetError:
            # It does not fit, or another thread took the memory meanwhile.
            if required:
                raise
            continue
        return dtype, f"held whole in {dtype}, {_of(size, free)}"
    return None, f"evaluated by tiles: {memory.describe(most)} would be too much of {memory.describe(free)}"


def _of(size: int, free: float) -> str:
    return memory.describe(size) + (f" of {memory.describe(free)}" if free < np.inf else "")


def reserve_square(stack: ExitStack, n: int, bytes_per_entry: int, what: str) -> str:
    """Reserve memory for an n x n array that a solver cannot do without, until ``stack`` is closed; the sentence.

    Raises
    ------
    MemoryBudgetError
        If it does not fit; raised before it is allocated.
    """
    size = bytes_per_entry * n * n
    free = memory.room(size)
    stack.enter_context(memory.reserve(size, f"{what} ({n} x {n})", REMEDY))
    return f"{what} held whole, {_of(size, free)}"


def capacity(each: int, most: int, parts: int = 1) -> int:
    """How many items of ``each`` bytes fit one of so many equal parts of the memory budget now, at most ``most``.

    >>> capacity(8, 1000)
    1000
    """
    return int(min(most, memory.room(parts * each * most) / (parts * each)))


def is_small(gram: GramMatrix, dtype: Any) -> bool:
    """Whether several passes had better make all of K once: up to 32 MiB, and half of the memory budget."""
    size = gram.shape[0] ** 2 * np.dtype(dtype).itemsize
    return size <= _SMALL and fits(2 * size)


def evaluated(gram: Gram) -> Gram | PrecomputedGram:
    """The same matrix with every entry computed once; the lazy one where that takes over half of the memory budget.

    Learners hold a copy of the matrix, or a factor of it, beside it.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> type(evaluated(Gram(Subsequence(2), ["gram", "ram"]))).__name__
    'PrecomputedGram'
    """
    if not fits(2 * gram.nbytes):
        return gram
    kept = PrecomputedGram(gram.dense(), symmetric=gram.symmetric)
    kept.n_jobs = gram.n_jobs
    return kept


def fits(nbytes: int) -> bool:
    """Whether so many bytes are free in the memory budget now.

    >>> fits(1000)
    True
    """
    return nbytes <= memory.room(nbytes)


def whole_matrix(gram: GramMatrix, dtype: Any) -> Array:
    """All of K, whose memory the caller has reserved: without a place to go to, a block asks for it once more."""
    return gram.astype(dtype).block(None, None, out=np.empty(gram.shape, dtype))


def check_finite(matrix: Array) -> None:
    """Raise if an entry is NaN or infinite; the sum tells, unless it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise NumericalError(
            f"the kernel matrix has {matrix[i, j]} at [{i}, {j}]. Check the kernel for values that overflow, and "
            "scale the columns of X (sklearn.preprocessing.StandardScaler)."
        )
