"""Limits of containers and batch systems, in folders that are like those of Linux."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import mercer
from mercer.engine import control_groups, memory, settings


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty tree; ``process`` in it says which groups the process is in."""
    monkeypatch.setattr(control_groups, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(control_groups, "_OF_PROCESS", tmp_path / "process")
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    control_groups.processors.cache_clear()
    control_groups._memory_groups.cache_clear()


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.parametrize(
    ("files", "processors", "free"),
    [
        ({}, None, math.inf),
        ({"process": "0::/\n"}, None, math.inf),
        ({"process": "0::/\n", "groups/cpu.max": "max 100000\n", "groups/memory.max": "max\n"}, None, math.inf),
        # A container: half a processor's time is one thread's.
        ({"process": "0::/\n", "groups/cpu.max": "50000 100000\n"}, 1, math.inf),
        ({"process": "0::/\n", "groups/cpu.max": "250000 100000\n"}, 3, math.inf),
        (
            {
                "process": "0::/../job\n",
                "groups/memory.max": "1000\n",
                "groups/memory.current": "900\n",
                "groups/memory.stat": "anon 300\ninactive_file 500\nactive_file 100\n",
            },
            None,
            600.0,
        ),
        # A batch system: the limit of a group holds in those inside it.
        (
            {
                "process": "0::/slurm/job/step\n",
                "groups/slurm/job/memory.max": "1000\n",
                "groups/slurm/job/memory.current": "1200\n",
                "groups/slurm/job/cpu.max": "400000 100000\n",
                "groups/slurm/job/step/cpu.max": "max 100000\n",
            },
            4,
            0.0,
        ),
        # Version 1: a tree for each resource.
        (
            {
                "process": "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/\n",
                "groups/cpu/cpu.cfs_quota_us": "200000\n",
                "groups/cpu/cpu.cfs_period_us": "100000\n",
                "groups/memory/docker/a/memory.limit_in_bytes": "1000\n",
                "groups/memory/docker/a/memory.usage_in_bytes": "800\n",
                "groups/memory/docker/a/memory.stat": "total_inactive_file 100\n",
                "groups/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "groups/memory/memory.usage_in_bytes": "5000\n",
            },
            2,
            300.0,
        ),
        ({"process": "4:cpu:/\n", "groups/cpu/cpu.cfs_quota_us": "-1\n"}, None, math.inf),
        # Both versions at once, and a tree of two resources.
        (
            {
                "process": "5:cpu,cpuacct:/\n0::/a\n",
                "groups/cpu,cpuacct/cpu.cfs_quota_us": "100000\n",
                "groups/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "groups/unified/a/memory.high": "500\n",
                "groups/unified/a/memory.max": "1000\n",
                "groups/unified/a/memory.current": "100\n",
            },
            1,
            400.0,
        ),
        # Whatever is there, nothing fails.
        ({"process": "0::/\n", "groups/cpu.max": "many\n", "groups/memory.max": "much\n"}, None, math.inf),
        ({"process": "0::/\n", "groups/cpu.max": "100000 0\n", "groups/memory.max": "nan\n"}, None, math.inf),
        ({"process": "\n0:\n0::/\u0085\x0b\n0::/" + "a" * 300 + "\n", "groups/cpu.max": "1 1 1\n"}, None, math.inf),
        (
            {
                "process": "0::/\n",
                "groups/memory.max": "1000\n",
                "groups/memory.current": "nan\n",
                "groups/memory.stat": "inactive_file\n\n",
            },
            None,
            math.inf,
        ),
    ],
)
def test_limits_are_those_of_the_groups(
    system: Path, files: dict[str, str], processors: int | None, free: float
) -> None:
    _write(system, files)
    assert control_groups.processors() == processors
    assert control_groups.free_memory() == free


def test_a_path_may_have_any_bytes(system: Path) -> None:
    (system / "process").write_bytes(b"0::/a\xff\n")
    _write(system, {"groups/cpu.max": "200000 100000\n"})
    assert control_groups.processors() == 2


def test_threads_and_budget_follow_them(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert settings.resolve_jobs() == 64
    _write(
        system,
        {
            "process": "0::/\n",
            "groups/cpu.max": "300000 100000\n",
            "groups/memory.max": f"{2**26}\n",
            "groups/memory.current": f"{2**24}\n",
        },
    )
    _forget()
    assert settings.resolve_jobs() == settings.resolve_jobs(-1) == 3
    # What a user asks for is given.
    assert settings.resolve_jobs(8) == 8
    with mercer.config(n_jobs=5):
        assert settings.resolve_jobs() == 5
    assert memory.budget() == (2**26 - 2**24) // 2
