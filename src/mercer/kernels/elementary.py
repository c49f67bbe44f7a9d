"""Functions that the formulas of several kernels share."""

from __future__ import annotations

import functools

import numpy as np

from mercer._types import Array
from mercer.loops.exponential import exponential_float32, exponential_float64, exponential_works

# Whether the compiled function for a precision works on this processor: asked once, at the first use.
compiled_works = functools.cache(exponential_works)


def exponential(t: Array) -> Array:
    """``t = exp(t)`` in place; returns ``t``. Overflowing values become infinite, and subnormal ones may become 0."""
    if not t.flags.c_contiguous or t.dtype not in (np.float32, np.float64) or not compiled_works(t.dtype):
        # An overflow shows as an infinity, for which learners raise an error with a message of their own.
        with np.errstate(over="ignore"):
            return np.exp(t, out=t)
    if t.dtype == np.float32:
        exponential_float32(t)
    else:
        exponential_float64(t)
    return t
