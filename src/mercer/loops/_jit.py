"""The decorator for compiled loops, and one for those that must not be reordered.

``jit`` releases the GIL, caches on disk where a folder can be written, follows NumPy's rules for division, and allows
the compiler to reorder sums but never to assume that NaN and infinities do not occur: a NaN must stay a NaN.

Every loop is inlined where another loop calls it. Otherwise each caller has a compiled copy of its own, sums in two
copies may be reordered in two ways, and all callers use the copy that the process loads first. Results would differ
between a run that compiles and one that reads the cache, and with what else ran before.

By itself, Numba optimises a loop that another one calls, emits machine code and a wrapper for Python, and stores them;
then it inlines the loop and optimises the whole again. Here a loop is only translated for its callers, and optimised as
a part of each. What Python calls is a second copy, compiled when Python first calls it.

Loops that make no arrays are compiled without the counting of references to arrays, which would take much code. What a
loop calls is translated in the same way: to drop a reference that was never counted would free the array of the caller.

An array is copied by a loop, not by an assignment to a slice: for the message of its error, Numba compiles the
formatting of texts, two seconds in each process that compiles.

A loop is compiled, or read from the cache, when it is first called. Ctrl-C in the middle of that would leave LLVM's
lock locked, and the next loop would wait for it for ever, so the main thread has it done by another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.targetconfig import ConfigStack
from numba.extending import intrinsic

from mercer.loops.cache import LoopCache
from mercer.loops.compilation import listen, note_unusable_cache
from mercer.loops.levels import for_level
from mercer.loops.outcome import call_apart

# No loop is a callback of C code, and each wrapper would be one more copy of the inlined code.
_OPTIONS = {"nogil": True, "error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True}
_REORDERING = {"reassoc", "contract", "arcp", "nsz", "afn"}

# What makes arrays. A loop that makes one by other means is compiled again where Numba finds it.
_MAKERS = {"array", "arange", "ascontiguousarray", "concatenate", "copy", "empty", "full", "ones", "zeros"}

# LLVM uses half of the width of AVX-512 on Intel's processors unless a function asks for more.
_WIDE = '"prefer-vector-width"="512"'


def jit(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums may be taken in any order."""
    return _cached(numba.njit(fastmath=_REORDERING, **_OPTIONS)(function))


def jit_in_order(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums must be taken in the order that is written."""
    return _cached(numba.njit(fastmath={"contract"}, **_OPTIONS)(function))


def vector_jit(function: Callable[..., Any]) -> Any:
    """Compile a simple loop as :func:`jit` does, but make vector code of it before it is inlined.

    LLVM finds less of it among the code of the callers: many small pairs of classes took a third longer to solve.
    """
    return _cached(numba.njit(fastmath=_REORDERING, **_OPTIONS)(function), _Vectorisation)


def _cached(loop: Any, compiler: type[Compiler] | None = None) -> Any:
    _inline(loop, compiler or _Translation)
    loop._cache = LoopCache(loop.py_func)
    compile_for_model = loop.compile

    def compile_counting(signature: Any, counts: bool) -> Any:
        loop.targetoptions["_nrt"] = counts
        compiled = compile_for_model(signature)
        if not counts and "array(" in str(next(reversed(loop.overloads.values())).signature.return_type):
            # Python would receive the whole array in the place of a part of it.
            raise TypeError(f"{loop.__qualname__} returns arrays that it did not make: let it fill an argument.")
        return compiled

    def compile_here(signature: Any) -> Any:
        with for_level(loop.targetctx):
            if _makes_arrays(loop):
                return compile_counting(signature, counts=True)
            try:
                return compile_counting(signature, counts=False)
            except NumbaError:
                # Numba raises the error again for types that it has failed with.
                loop._compiler._failed_cache.clear()
                return compile_counting(signature, counts=True)

    def compile_anyhow(signature: Any) -> Any:
        try:
            return compile_here(signature)
        except OSError as error:
            # The disk is full, or a file belongs to another user. If the loop is compiled already, the second call
            # finds it in memory.
            note_unusable_cache(loop, error)
            loop._cache.disable()
            return compile_here(signature)

    def compile(signature: Any) -> Any:
        # Within the compilation of another loop, this thread has numba's lock already.
        if threading.current_thread() is not threading.main_thread() or global_compiler_lock.is_locked():
            return compile_anyhow(signature)
        return call_apart(lambda: compile_anyhow(signature), name="mercer-compiler")

    loop.compile = compile
    return loop


def _makes_arrays(loop: Any) -> bool:
    """Whether a loop names what makes arrays, or another loop that does."""
    names, known = loop.py_func.__code__.co_names, loop.py_func.__globals__
    # A loop may have the name of what it calls in another module.
    others = (other for name in names if (other := known.get(name)) is not loop)
    return not _MAKERS.isdisjoint(names) or any(isinstance(o, Dispatcher) and _makes_arrays(o) for o in others)


def _inline(loop: Any, compiler: type[Compiler]) -> None:
    """Give the callers of a loop its code as this compiler makes it."""

    @cache
    def inlined(counts: bool) -> Any:
        options = {**loop.targetoptions, "no_cpython_wrapper": True, "_nrt": counts}
        options.pop("nopython", None)
        inlined = numba.njit(pipeline_class=compiler, **options)(loop.py_func)
        inlined._cache = _CacheOfCallers(loop)
        return inlined

    def for_caller() -> Any:
        return inlined(ConfigStack().top().nrt)

    # What the types of a caller are inferred from, and what it is linked with. Few processes compile callers.
    loop.get_call_template = lambda args, kws: for_caller().get_call_template(args, kws)
    loop.get_overload = lambda signature: for_caller().get_overload(signature)


class _Translation(Compiler):
    """Numba's compiler, up to LLVM's code before its optimisation."""

    def __init__(self, typing_context: Any, target_context: Any, _: Any, *rest: Any) -> None:
        library = self.make_library(target_context.codegen())
        super().__init__(typing_context, target_context, library, *rest)

    def make_library(self, codegen: Any) -> JITCodeLibrary:
        return _Plain(codegen, "inlined")


class _Vectorisation(_Translation):
    """The same with LLVM's optimisation."""

    def make_library(self, codegen: Any) -> JITCodeLibrary:
        return _Optimised(codegen, "inlined")


class _Optimised(JITCodeLibrary):
    """Code that other code is linked with, but that has no address itself."""

    @property
    def codegen(self) -> Any:
        return _WithoutAddresses(self._codegen)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _Plain(_Optimised):
    """The same, to be optimised with the callers alone."""

    def _optimize_final_module(self) -> None:
        pass


class _WithoutAddresses:
    """A generator of code that keeps no environments, which only functions that Python calls have."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _CacheOfCallers(NullCache):
    """Nothing is stored beside the callers. Has the folder of the loop, for the notice of compilations."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop

    @property
    def cache_path(self) -> Any:
        return self._loop.stats.cache_path


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
