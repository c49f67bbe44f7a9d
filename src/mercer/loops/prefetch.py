"""A hint to the processor that entries of an array are about to be read."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_INT = ir.IntType(32)
_POINTER = ir.IntType(8).as_pointer()


@intrinsic
def prefetch(typing_context, array, position):
    """Ask for the cache line of ``array[position]``; it is not checked whether there is such an entry."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), _POINTER)
        kind = ir.FunctionType(ir.VoidType(), [_POINTER, _INT, _INT, _INT])
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # To read, to keep in all caches, as data.
        builder.call(hint, [place, ir.Constant(_INT, 0), ir.Constant(_INT, 3), ir.Constant(_INT, 1)])
        return context.get_dummy_value()

    return types.void(array, position), generate
