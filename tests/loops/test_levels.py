"""Loops are compiled for the level of the processor, and the functions of others as Numba does."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mercer.loops._jit import jit
from mercer.loops.levels import _V2, _V3, _V4, level_of, own_level


@pytest.mark.parametrize(
    ("triple", "features", "level"),
    [
        ("x86_64-unknown-linux-gnu", _V2, "x86-64-v2"),
        ("x86_64-unknown-linux-gnu", _V2 | _V3, "x86-64-v3"),
        ("x86_64-pc-windows-msvc", _V2 | _V3 | _V4 | {"avx512vnni"}, "x86-64-v4"),
        # A virtual machine may hide some of the features of a level.
        ("x86_64-unknown-linux-gnu", _V2 | _V3 | _V4 - {"avx512dq"}, "x86-64-v3"),
        ("x86_64-unknown-linux-gnu", _V3, None),
        ("aarch64-unknown-linux-gnu", {"neon", "sve"}, "generic"),
        ("arm64-apple-darwin24.1.0", {"neon"}, "apple-m1"),
        ("ppc64le-unknown-linux-gnu", set(), None),
    ],
)
def test_the_level_is_the_highest_that_has_all_its_features(triple, features, level) -> None:
    assert level_of(triple, dict.fromkeys(features, True) | {"absent": False}) == level


@pytest.mark.parametrize(("option", "value"), [("CPU_NAME", "nehalem"), ("CPU_FEATURES", "")])
def test_an_option_of_numba_decides_instead(monkeypatch: pytest.MonkeyPatch, option: str, value: str) -> None:
    monkeypatch.setattr(numba.config, option, value)
    assert own_level() is None
    loop = jit(lambda x: x + 1)
    assert loop(1) == 2
    (result,) = loop.overloads.values()
    # Numba reads the name when it is asked, and the features when it starts.
    assert option != "CPU_NAME" or result.library.codegen.magic_tuple()[1] == value


def test_only_loops_are_compiled_for_the_level() -> None:
    if own_level() is None:
        pytest.skip("options of Numba, or an unknown processor")
    own = jit(lambda x: x.sum() + 1)
    x = np.arange(4.0)
    assert own(x) == 7

    # A user-defined function that calls a loop, and the same function of Numba.
    @numba.njit
    def foreign(x):
        return x.sum() + own(x)

    assert foreign(x) == 13
    cpus = [[r.library.codegen.magic_tuple()[1:] for r in f.overloads.values()] for f in (own, foreign)]
    assert cpus[0] == [(own_level(), "")]
    context = foreign.targetctx
    assert cpus[1] == [(context.codegen()._get_host_cpu_name(), context.codegen()._tm_features)]
    assert type(context.codegen()) is numba.core.codegen.JITCPUCodegen
