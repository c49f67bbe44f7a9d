"""Memory by its address, for loops that many threads share and that take arrays of any number."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def pointer(typing_context, address):
    """What ``carray`` makes an array of; the memory must stay, and nothing checks that it is there."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


def _word(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def add_shared(typing_context, array, position, amount):
    """Add to ``array[position]`` of 64-bit whole numbers, which other threads add to as well; return what it was."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", _word(context, builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def read_shared(typing_context, array, position):
    """``array[position]`` of 64-bit whole numbers that other threads write."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_word(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.int64), generate
