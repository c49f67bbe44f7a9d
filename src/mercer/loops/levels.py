"""Compiled loops are made for the level of a processor, such as x86-64-v3, so that they run on every machine of that
level: a container built on one machine has them compiled on the next.

Numba compiles for the model of the processor. While one of our loops is compiled or loaded, under Numba's lock, its
context has a code generator for the level; the functions of others are compiled as before. Functions of Numba that both
call are shared as intermediate code, which is valid for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding
from numba.core import config
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock

_V2 = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf"}
_V3 = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_other_level = ""


def level_of(triple: str, features: Mapping[str, bool]) -> str | None:
    """Return the highest level whose code a processor can run, by LLVM's name; None for an unknown one.

    >>> level_of("x86_64-unknown-linux-gnu", dict.fromkeys(_V2 | _V3, True))
    'x86-64-v3'
    """
    if triple.startswith(("aarch64", "arm64")):
        return "apple-m1" if "apple" in triple else "generic"
    if not triple.startswith("x86_64"):
        return None
    available = {name for name, has in features.items() if has}
    return next(
        (f"x86-64-v{n}" for n, needs in ((4, _V2 | _V3 | _V4), (3, _V2 | _V3), (2, _V2)) if needs <= available), None
    )


def own_level() -> str | None:
    """Return the level that loops are compiled for; None if Numba's options or the processor leave it to Numba."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return None
    try:
        features = dict(llvmlite.binding.get_host_cpu_features())
    except RuntimeError:
        features = {}
    if not config.ENABLE_AVX:
        features = {name: has and not name.startswith("avx") for name, has in features.items()}
    return level_of(llvmlite.binding.get_process_triple(), features)


def compile_for(level: str) -> None:
    """Compile the loops of this process for another level. The compiled loops are stored, but must not be called."""
    global _other_level
    _other_level = level


class _LevelCodegen(JITCPUCodegen):
    """Numba's generator of code in memory, for a level."""

    def __init__(self, level: str) -> None:
        self._level = level
        # Functions that Numba compiles for itself belong to one generator.
        self.internal_functions: dict[Any, Any] = {}
        super().__init__("mercer.exec")

    def _get_host_cpu_name(self) -> str:
        return self._level

    def _get_host_cpu_features(self) -> str:
        return ""


_codegen = lru_cache(_LevelCodegen)


@contextmanager
def for_level(context: Any) -> Iterator[None]:
    """Let Numba's context compile and load for the level of the processor."""
    with global_compiler_lock:
        level = _other_level or own_level()
        before = context._internal_codegen
        if level is None or isinstance(before, _LevelCodegen):
            yield
            return
        functions = context.cached_internal_func
        context._internal_codegen = _codegen(level)
        context.cached_internal_func = context._internal_codegen.internal_functions
        try:
            yield
        finally:
            context._internal_codegen, context.cached_internal_func = before, functions
