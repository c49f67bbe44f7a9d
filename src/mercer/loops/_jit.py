"""The decorator for compiled loops, and one for those that must not be reordered.

``jit`` releases the GIL, caches on disk, follows NumPy's rules for division, and allows the compiler to reorder
sums but never to assume that NaN and infinities do not occur: a NaN in the data must stay a NaN.

Every loop is inlined where another loop calls it. Otherwise each caller has a compiled copy of its own, sums in two
copies may be reordered in two ways, and all callers use the copy that the process loads first. Results would differ
between a run that compiles and one that reads the cache, and with what else ran before.
"""

from __future__ import annotations

import numba
from numba import types
from numba.extending import intrinsic

from mercer.loops.compilation import listen

# No loop is a callback of C code, and each wrapper would be one more copy of the inlined code.
_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True}
jit = numba.njit(fastmath={"reassoc", "contract", "arcp", "nsz", "afn"}, **_OPTIONS)
# For what only holds if sums are taken in the order that is written.
jit_in_order = numba.njit(fastmath={"contract"}, **_OPTIONS)

# LLVM uses half of the width of AVX-512 on Intel's processors unless a function asks for more.
_WIDE = '"prefer-vector-width"="512"'


@intrinsic
def prefer_wide_vectors(typing_context):
    """Ask for the widest vectors of the processor in the loop that calls this; it has no effect on what it computes."""

    def generate(context, builder, signature, arguments):
        attributes = builder.function.attributes
        # llvmlite prints what the set holds, but its own ``add`` lets in only the attributes of a list.
        if isinstance(attributes, set):
            set.add(attributes, _WIDE)
        return context.get_dummy_value()

    return types.none(), generate


listen()
