"""New arrays for entries that were reserved; apart from the budget, which messages of the command line read too."""

from __future__ import annotations

import contextlib
import math
import mmap
import sys

import numpy as np
from numpy.typing import DTypeLike

from mercer._types import AnyArray
from mercer.engine import settings

# Arrays from this many bytes on are mapped where there is a budget.
_MAPPED = 2**20


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> AnyArray:
    """Return a new array for entries that were reserved; with a budget, one that the system gets back when it is freed.

    The C library's allocator keeps freed arrays of up to 32 MiB for later ones, for each thread, and the process would
    grow beyond the budget. New pages take about half a millisecond for 4 MiB, so without a budget they are left to it.

    >>> with settings.config(memory=2**24):
    ...     empty((2, 3), np.float32).shape, type(empty((1024, 512), np.float32).base).__name__
    ((2, 3), 'mmap')
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _MAPPED or settings.current().memory is None:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer=_mapped(size))


def _mapped(size: int) -> mmap.mmap:
    if sys.platform != "linux":
        return mmap.mmap(-1, size)
    # The system gives large pages to private memory alone, which are new in less than half of the time.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(AttributeError, OSError):
        # Python and the kernel may be built without them.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
