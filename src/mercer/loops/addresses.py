"""Memory by its address, for loops that many threads share and that take arrays of any number."""

from __future__ import annotations

import ctypes
import sys

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_WORD = ir.IntType(64)
# A pause of a thread that waits for others: they may need its core. In microseconds, or to the next in turn.
_PAUSE, _MICROSECONDS = "mercer_pause", 0 if sys.platform == "win32" else 20


def _array(context, builder, kind, address, shape):
    """An array of a kind, side by side in memory that something else keeps."""
    item = context.get_data_type(kind.dtype)
    size = cgutils.sizeof(builder, item.as_pointer())
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(address, item.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


@intrinsic
def vector_at(typing_context, address, n, like):
    """The ``n`` numbers at an address, of the precision of an array; nothing checks that they are there."""
    kind = types.Array(like.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        return _array(context, builder, kind, arguments[0], [arguments[1]])

    return kind(types.int64, types.int64, like), generate


@intrinsic
def matrix_at(typing_context, address, n, d, like):
    """The same as an array of shape ``(n, d)``."""
    kind = types.Array(like.dtype, 2, "C")

    def generate(context, builder, signature, arguments):
        return _array(context, builder, kind, arguments[0], arguments[1:3])

    return kind(types.int64, types.int64, types.int64, like), generate


def _reader(kind, item):
    @intrinsic
    def read(typing_context, address):
        def generate(context, builder, signature, arguments):
            return builder.load(builder.inttoptr(arguments[0], item.as_pointer()))

        return kind(types.int64), generate

    return read


# The number at an address.
read_int, read_double, read_single = (
    _reader(types.int64, _WORD),
    _reader(types.float64, ir.DoubleType()),
    _reader(types.float32, ir.FloatType()),
)


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


def _pause_function():
    """The function of the system's library that pauses a thread."""
    return ctypes.WinDLL("kernel32").Sleep if sys.platform == "win32" else ctypes.CDLL(None).usleep


# Compiled loops, also those that are read from files, find it by its name.
llvmlite.binding.add_symbol(_PAUSE, ctypes.cast(_pause_function(), ctypes.c_void_p).value)


@intrinsic
def rest(typing_context):
    """Pause this thread for a moment."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        pause = cgutils.get_or_insert_function(builder.module, kind, _PAUSE)
        builder.call(pause, [ir.Constant(ir.IntType(32), _MICROSECONDS)])
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def call_at(typing_context, address, arguments):
    """Call the loop at an address, compiled for exactly these arguments; return 0 unless it raised an error."""
    kinds = tuple(arguments.types)

    def generate(context, builder, signature, values):
        convention, packer = context.call_conv, context.get_arg_packer(kinds)
        kind = convention.get_function_type(types.none, kinds)
        # Where results and errors would be written.
        others = kind.args[: len(kind.args) - len(packer.argument_types)]
        results = [cgutils.alloca_once(builder, pointer.pointee) for pointer in others]
        items = packer.as_arguments(builder, cgutils.unpack_tuple(builder, values[1], len(kinds)))
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), [*results, *items])

    return types.int32(types.int64, arguments), generate
