"""The sweep over settings of other machines: which a processor can run, that a failure is noticed; halves of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sweep

ROOT = Path(__file__).parents[1]

AVX2 = {"sse4.2": True, "avx2": True, "fma": True}
AVX512 = {**AVX2, **dict.fromkeys(("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"), True)}


@pytest.mark.parametrize(
    ("features", "possible", "other"),
    [
        ({}, [], ""),
        ({"sse4.2": True}, ["Nehalem"], ""),
        (AVX2, ["Nehalem", "Haswell", "Zen"], "Nehalem"),
        # The first processors with AVX-512 had no more than its foundation: SkylakeX would not run there.
        ({**AVX2, "avx512f": True}, ["Nehalem", "Haswell", "Zen"], "Nehalem"),
        (AVX512, ["Nehalem", "Haswell", "Zen", "SkylakeX"], "Haswell"),
    ],
)
def test_core_types_follow_from_the_features_of_the_processor(
    features: dict[str, bool], possible: list[str], other: str
) -> None:
    assert sweep.core_types(features) == possible and sweep.other_core_type(features) == other
    assert other not in possible[-1:]


def test_each_setting_differs_in_one_thing() -> None:
    settings = sweep.settings(AVX512, 10)
    assert len({s.name for s in settings}) == len(settings) == 4 + 1 + 3 + 10
    assert [s.seed for s in settings if s.seed is not None] == list(range(1, 11))
    for setting in settings:
        changed = (
            "OPENBLAS_CORETYPE" in setting.environment,
            "NUMBA_CPU_NAME" in setting.environment,
            setting.threads is not None,
            setting.seed is not None,
            setting.plugin is not None,
        )
        assert sum(changed) == 1


@pytest.mark.slow
def test_a_failure_under_a_setting_is_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = tmp_path / "test_processors.py"
    tests.write_text(
        "import os, pytest\n"
        "def test_one_processor():\n    assert len(os.sched_getaffinity(0)) == 1\n"
        "def test_one_blas_thread():\n    assert os.environ['OPENBLAS_NUM_THREADS'] == '1'\n"
        "def test_never():\n    assert False\n"
        "def test_sixteen_threads():\n"
        "    from mercer.engine import settings\n    assert settings.resolve_jobs() == 16\n"
    )
    arguments = ["--seeds", "1", "--workers", "1", "--only", "1 thread", "16 threads", "order 1", "--", str(tests)]
    assert sweep.main(arguments) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:4] == ["16", "threads", "1", "3"]
    assert lines[2].split()[:4] == ["1", "thread", "2", "2"]
    assert sum("test_never" in line for line in lines) == 3


@pytest.mark.slow
def test_two_halves_are_all_of_the_slow_tests() -> None:
    def collected(*options: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-m", "slow", "tests/engine"]
        result = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
        return [line for line in result.stdout.splitlines() if "::" in line]

    first, second, both = collected("--half", "0"), collected("--half", "1"), collected()
    assert sorted(first + second) == sorted(both) and len(set(both)) == len(both) > 2
    assert abs(len(first) - len(second)) <= 1
