"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Threads of OpenBLAS wait for more work by counting, for 20 ms, and take that time from the tests beside them.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Workers on many cores share them; two threads are left to each, so that those who limit them have something to limit.
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    share = (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(2, share)))

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "everyday", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# Looks further than the everyday suite: HYPOTHESIS_PROFILE=explore pytest tests/kernels
settings.register_profile("explore", settings.get_profile("everyday"), max_examples=500, derandomize=False)
# Examples chosen by --hypothesis-seed, which has no effect on a derandomised profile; used by tests/sweep.py.
settings.register_profile("seeded", settings.get_profile("everyday"), derandomize=False, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# A shell that starts the suite in the background has it ignore Ctrl-C, and so would every process that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-case", action="store_true", help="the first case of each test alone")
    parser.addoption("--quick", action="store_true", help="the same, without tests that start processes or are long")
    parser.addoption("--half", type=int, choices=(0, 1), help="every second test, from this one on")


def _first_cases(config: pytest.Config) -> bool:
    return bool(config.getoption("--quick") or config.getoption("--first-case"))


# Folders and files whose tests start processes or are long by what they look for.
_LEFT_OUT = {
    "cli",
    "fuzz",
    "hostile",
    "reference",
    "test_drafts.py",
    "test_extending.py",
    "test_import.py",
    "test_interruption.py",
    "test_container.py",
    "test_tables.py",
    "test_private_names.py",
}


def pytest_configure(config: pytest.Config) -> None:
    if _first_cases(config):
        settings.register_profile("quick", settings.get_profile("everyday"), max_examples=5)
        settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, which would go through all tests so far again and again, and then, too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # None leaves it to the other rules.
    return True if config.getoption("--quick") and collection_path.name in _LEFT_OUT else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the tests with the right marks keep every second one, or the first case of each."""
    half = config.getoption("--half")
    if half is not None:
        config.hook.pytest_deselected(items=items[1 - half :: 2])
        items[:] = items[half::2]
    if not _first_cases(config):
        return
    names: set[tuple[str, str]] = set()
    selected, left = [], []
    for item in items:
        name = (str(item.path), getattr(item, "originalname", item.name))
        quick = name not in names and not item.get_closest_marker("slow")
        if quick:
            names.add(name)
        (selected if quick else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = selected


_states: dict[tuple[str, str], dict[str, Any]] = {}


@pytest.fixture(autouse=True)
def _numbers_of_its_own(request: pytest.FixtureRequest) -> None:
    """Each test finds the generators of its module as they were once it was imported, in any order of the tests."""
    for name, value in vars(request.module).items() if getattr(request, "module", None) else ():
        if isinstance(value, np.random.Generator):
            state = _states.setdefault((request.module.__name__, name), value.bit_generator.state)
            value.bit_generator.state = state


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250701)
