"""Where K is stored while a problem is solved: the one decision on memory for it, and the sentence for certificates.

A solver lists the precisions in which it can use all of K, the best one first, and the bytes that it needs in addition.
K is then stored whole in the first precision that fits the memory budget, or stays lazy. A matrix that is stored
already is used in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import MemoryBudgetError, NumericalError
from mercer._types import Array
from mercer.engine import arrays, memory, tiles
from mercer.engine.strips import FirstRows
from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.protocol import GramMatrix

REMEDY = "Raise the budget with mercer.config(memory=...), or fit on fewer rows."
# Matrices of up to this many bytes are computed as a whole without a request.
_SMALL = 2**25
# A copy in float32 that only saves time takes at most one of this many parts of the free memory.
HELD_SHARE = 4
# From so many numbers of a row on, computing a value takes much longer than reading it.
WIDE = 32
# Precisions in which all of K is useful, the best one first, with the bytes needed in addition to it.
Precisions = Mapping[Any, int]


@dataclass(frozen=True, eq=False)
class Storage:
    """K as a solver uses it.

    Attributes
    ----------
    gram : GramMatrix
        The matrix, for products and submatrices.
    array : ndarray of shape (n, m) or None
        All entries, if they are stored; write to it only if a copy was requested.
    sentence : str
        Where the entries are stored, for :class:`mercer.solvers.solution.Certificate`.
    """

    gram: GramMatrix
    array: Array | None
    sentence: str


def hold(
    gram: GramMatrix, stack: ExitStack, precisions: Precisions, *, copy: bool = False, required: str = ""
) -> Storage:
    """Store K whole in the first precision that fits the memory budget; otherwise leave it as it is.

    Parameters
    ----------
    gram : GramMatrix
    stack : ExitStack
        Keeps the memory reserved until it is closed.
    precisions : dict of dtype to int
        Precisions in which the solver can use all of K, the best one first, with the further bytes that must be free.
    copy : bool, default=False
        Whether a stored matrix is copied: either to have it C-ordered in one of the precisions, or to write to it.
    required : str, default=""
        Nonempty if the solver cannot work without K whole: the advice of the error if it does not fit.

    Raises
    ------
    MemoryBudgetError
        If it is required and does not fit; raised before anything is allocated.

    Examples
    --------
    >>> with ExitStack() as stack:
    ...     print(hold(PrecomputedGram(np.eye(2)), stack, {np.float64: 0}, copy=True).sentence)
    ...     print(hold(PrecomputedGram(np.eye(2)), stack, {np.float64: 0}).sentence)
    held whole in float64, 32 bytes
    given whole in float64, 32 bytes
    """
    whole = None if copy else gram.stored_array()
    if whole is not None:
        return Storage(gram, whole, as_it_is(gram))
    dtype, sentence = reserve_whole(gram.shape, stack, precisions, required=required)
    if dtype is None:
        return Storage(gram, None, sentence)
    array = whole_matrix(gram, dtype)
    return Storage(PrecomputedGram(array), array, sentence)


def as_it_is(gram: GramMatrix) -> str:
    """Return the sentence for a matrix that a solver uses as it is.

    >>> as_it_is(PrecomputedGram(np.eye(2)))
    'given whole in float64, 32 bytes'
    """
    array = gram.stored_array()
    return "evaluated by tiles" if array is None else f"given whole in {array.dtype}, {memory.describe(array.nbytes)}"


def held_whole(array: Array) -> str:
    """Return the sentence for an array of all entries that serves several solves.

    >>> held_whole(np.eye(2))
    'held whole in float64, 32 bytes'
    """
    return f"held whole in {array.dtype}, {memory.describe(array.nbytes)}"


def hold_exact(gram: GramMatrix, stack: ExitStack, *, beside: int, required: str = "") -> Storage:
    """Store K whole in float64, C-ordered, if it and the further bytes fit; use a given matrix of this kind in place.

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
    """Reserve memory for a whole matrix; return the precision, or None if none fits, and the sentence.

    Parameters are those of :func:`hold`; ``what`` replaces "the n x m kernel matrix in float64" in the message.
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
            # It does not fit, or another thread has reserved the memory in the meantime.
            if required:
                raise
            continue
        return dtype, f"held whole in {dtype}, {_of(size, free)}"
    if not precisions:
        return None, "evaluated by tiles"
    return None, f"evaluated by tiles: {memory.describe(most)} would be too much of {memory.describe(free)}"


def _of(size: int, free: float) -> str:
    return memory.describe(size) + (f" of {memory.describe(free)}" if free < np.inf else "")


def reserve_square(stack: ExitStack, n: int, bytes_per_entry: int, what: str) -> str:
    """Reserve memory until ``stack`` is closed for an n x n array that a solver requires; return the sentence.

    Raises
    ------
    MemoryBudgetError
        If it does not fit; raised before it is allocated.
    """
    size = bytes_per_entry * n * n
    free = memory.room(size)
    stack.enter_context(memory.reserve(size, f"{what} ({n} x {n})", REMEDY))
    return f"{what} held whole, {_of(size, free)}"


def capacity(each: int, most: int, parts: int = 1, beside: int = 0) -> int:
    """Return how many items of ``each`` bytes, at most ``most``, fit one of ``parts`` equal parts of the free memory.

    ``beside`` bytes of that memory are needed for something else.

    >>> capacity(8, 1000)
    1000
    """
    free = memory.room(parts * each * most + beside) - beside
    return int(min(most, max(free, 0) / (parts * each)))


def hold_rows(gram: GramMatrix, stack: ExitStack, *, most: int, beside: int) -> tuple[Array, str]:
    """Allocate memory for rows of K (see :class:`mercer.gram.row_store.RowStore`), as far as it fits; and the sentence.

    Parameters
    ----------
    gram : GramMatrix
        K, (n, n).
    stack : ExitStack
        Keeps the memory reserved until it is closed.
    most : int
        The most bytes for rows.
    beside : int
        Entries that the solver requires in front of the rows, in the same array.

    Returns
    -------
    array : ndarray of shape (beside + m,)
        Of the precision of K; m is 0 if no row fits, and at most n * n.
    sentence : str
        Where K is, for the certificate.

    Raises
    ------
    MemoryBudgetError
        If what the solver requires does not fit; raised before anything is allocated.

    Examples
    --------
    >>> with ExitStack() as stack:
    ...     rows, sentence = hold_rows(PrecomputedGram(np.eye(4)), stack, most=1000, beside=9)
    >>> len(rows), sentence
    (25, 'evaluated by tiles, with up to 200 bytes of kept rows in float64')
    """
    dtype = np.dtype(gram.dtype)
    entries = min(gram.shape[0] * gram.shape[1], most // dtype.itemsize)
    size = (beside + capacity(dtype.itemsize, entries, beside=beside * dtype.itemsize)) * dtype.itemsize
    stack.enter_context(memory.reserve(size, "a kernel block and kept kernel rows"))
    sentence = f"evaluated by tiles, with up to {memory.describe(size)} of kept rows in {dtype}"
    if size == beside * dtype.itemsize:
        sentence = "evaluated by tiles"
    return arrays.empty((size // dtype.itemsize,), dtype), sentence


def is_small(gram: GramMatrix, dtype: Any) -> bool:
    """Whether to compute all of K once for several passes: if it takes at most 32 MiB and half of the budget."""
    size = gram.shape[0] ** 2 * np.dtype(dtype).itemsize
    return size <= _SMALL and fits(2 * size)


def evaluated(gram: Gram) -> Gram | PrecomputedGram:
    """Return the matrix with every entry computed once, or the lazy one if it takes over half of the memory budget.

    Learners also store a copy of the matrix or a factor of it.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> type(evaluated(Gram(Subsequence(2), ["gram", "ram"]))).__name__
    'PrecomputedGram'
    """
    if not fits(2 * gram.nbytes):
        return gram
    dense = PrecomputedGram(gram.dense(), symmetric=gram.symmetric)
    dense.n_jobs = gram.n_jobs
    return dense


def held_bytes(shape: tuple[int, int]) -> int:
    """Memory of a matrix in float32, in bytes.

    >>> held_bytes((1000, 100))
    400000
    """
    return shape[0] * shape[1] * np.dtype(np.float32).itemsize


def held_in_single(gram: GramMatrix, stack: ExitStack) -> PrecomputedGram | None:
    """Return the matrix in float32 with every entry computed once; None if it takes over a quarter of the free memory.

    Where entries are stored in float64, passes over the copy take half of the time; entries out of the range of float32
    become infinite. The memory is reserved until the stack is closed.

    >>> with ExitStack() as stack:
    ...     held_in_single(PrecomputedGram(np.eye(2)), stack).block().dtype
    dtype('float32')
    """
    single = np.dtype(np.float32)
    if reserve_whole(gram.shape, stack, {single: (HELD_SHARE - 1) * held_bytes(gram.shape)})[0] is None:
        return None
    return evaluated_in_single(gram)


def first_rows_in_single(gram: GramMatrix, stack: ExitStack) -> FirstRows | None:
    """Return a matrix in float32 as many of whose first rows as take a quarter of the free memory are evaluated once.

    None if its values take little longer to compute than to read. The memory is reserved until the stack is closed.

    >>> from mercer.kernels import RBF
    >>> gram = Gram(RBF(1.0), np.arange(80.0).reshape(2, 40), dtype=np.float32)
    >>> with ExitStack() as stack:
    ...     first_rows_in_single(gram, stack).values.shape
    (2, 2)
    """
    if not (gram.expensive or gram.width >= WIDE):
        return None
    n, m = gram.shape
    count = capacity(held_bytes((1, m)), n, HELD_SHARE)
    try:
        stack.enter_context(memory.reserve(held_bytes((count, m)), f"the kernel values of {count:,} rows"))
    except MemoryBudgetError:
        # Another thread has reserved the memory in the meantime.
        return None
    return FirstRows(gram.fill, arrays.empty((count, m), np.float32))


def evaluated_in_single(gram: GramMatrix) -> PrecomputedGram:
    """Return the matrix in float32 with every entry computed once, in memory that the caller has reserved.

    >>> evaluated_in_single(PrecomputedGram(np.eye(2))).dtype
    dtype('float32')
    """
    single, stored = np.dtype(np.float32), gram.stored_array()
    if stored is not None:
        return PrecomputedGram(tiles.converted(stored, single), symmetric=False)
    with np.errstate(over="ignore", invalid="ignore"):
        return PrecomputedGram(whole_matrix(gram, single), symmetric=False)


def fits(nbytes: int) -> bool:
    """Whether a number of bytes is free in the memory budget now.

    >>> fits(1000)
    True
    """
    return nbytes <= memory.room(nbytes)


def whole_matrix(gram: GramMatrix, dtype: Any) -> Array:
    """Return all of K in memory that the caller has reserved: without ``out``, a block would reserve it again."""
    return gram.astype(dtype).block(None, None, out=arrays.empty(gram.shape, dtype))


def check_finite(matrix: Array) -> None:
    """Raise an error if an entry is NaN or infinite; the sum shows it, unless it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise NumericalError(
            f"the kernel matrix has {matrix[i, j]} at [{i}, {j}]. Check the kernel for values that overflow, and "
            "scale the columns of X (sklearn.preprocessing.StandardScaler)."
        )
