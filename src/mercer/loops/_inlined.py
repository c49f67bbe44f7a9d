"""The decorators of compiled loops that other loops call.

By itself, Numba optimises a loop that another one calls, emits machine code and a wrapper for Python, and stores them;
then it inlines the loop and optimises the whole again. Here a loop is only translated for its callers, and optimised as
a part of each. What Python calls is a second copy, compiled when Python first calls it. Results therefore do not depend
on which copies a process has compiled or read before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from mercer.loops import _jit


def jit(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums may be taken in any order, also within the loops that call it."""
    return _for_callers(_jit.jit(function))


def jit_in_order(function: Callable[..., Any]) -> Any:
    """Compile a loop whose sums must be taken in the order that is written, also within the loops that call it."""
    return _for_callers(_jit.jit_in_order(function))


def vector_jit(function: Callable[..., Any]) -> Any:
    """Compile a simple loop as :func:`jit` does, but make vector code of it before it is inlined.

    LLVM finds less of it among the code of the callers: many small pairs of classes took a third longer to solve.
    """
    return _for_callers(_jit.jit(function), _Vectorisation)


def _for_callers(loop: Any, compiler: type[Compiler] | None = None) -> Any:
    options = {**loop.targetoptions, "no_cpython_wrapper": True}
    options.pop("nopython", None)
    inlined = numba.njit(pipeline_class=compiler or _Translation, **options)(loop.py_func)
    inlined._cache = _CacheOfCallers(loop)
    # What the types of a caller are inferred from, and what it is linked with.
    loop.get_call_template = inlined.get_call_template
    loop.get_overload = inlined.get_overload
    return loop


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
