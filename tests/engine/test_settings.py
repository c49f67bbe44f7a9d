"""Settings: sizes and numbers of threads that are accepted, and nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mercer
from mercer import kernels
from mercer._errors import ParameterError
from mercer.engine import settings
from mercer.gram import Gram


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        (1000, 1000),
        (2.5e3, 2500),
        ("1000", 1000),
        ("4GiB", 4 * 2**30),
        ("500 MB", 5 * 10**8),
        (" 1.5 kib ", 1536),
        ("0.5TB", 5 * 10**11),
        ("1e3 B", 1000),
        (".5KB", 500),
        (np.int64(7), 7),
    ],
)
def test_sizes(size: Any, nbytes: int) -> None:
    assert settings.parse_bytes(size) == nbytes
    with mercer.config(memory=size) as applied:
        assert applied.memory == nbytes


@pytest.mark.parametrize(
    "size", ["", "much", "4 GiBs", "-1", "1,5 GB", "nan", 0, -5, float("nan"), float("inf"), True, [1], "0 MB"]
)
def test_sizes_that_are_none(size: Any) -> None:
    before = settings.current()
    with pytest.raises(ParameterError, match=r"memory=.*; write for example '4GiB'"):
        mercer.config(memory=size)
    assert settings.current() == before


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True, float("nan"), [2]])
def test_numbers_of_threads_that_are_none(n_jobs: Any) -> None:
    with pytest.raises(ParameterError, match="is not a number of threads; use a whole number, -1 for all cores"):
        mercer.config(n_jobs=n_jobs)
    with pytest.raises(ParameterError, match="is not a number of threads"):
        Gram(kernels.RBF(), np.ones((2, 1)), n_jobs=n_jobs).dense()


def test_numbers_of_threads() -> None:
    cores = settings.resolve_jobs(None)
    assert cores >= 1
    assert settings.resolve_jobs(-1) == cores
    assert settings.resolve_jobs(-1000) == 1
    assert settings.resolve_jobs(np.int64(3)) == 3
    with mercer.config(n_jobs=1):
        assert settings.resolve_jobs(None) == 1
        assert settings.resolve_jobs(4) == 4


def test_settings_nest_and_come_back_after_an_error() -> None:
    before = settings.current()
    with mercer.config(memory="1 MB"):
        with mercer.config(n_jobs=1) as inner:
            assert (inner.memory, inner.n_jobs) == (10**6, 1)
            with mercer.config(memory="2 MB"):
                assert (settings.current().memory, settings.current().n_jobs) == (2 * 10**6, 1)
            assert settings.current().memory == 10**6
        assert settings.current().n_jobs == before.n_jobs
        with pytest.raises(ZeroDivisionError), mercer.config(n_jobs=3):
            1 // 0  # noqa: B018
        assert settings.current().n_jobs == before.n_jobs
    assert settings.current() == before


def test_settings_may_be_made_for_good() -> None:
    before = settings.current()
    applied = mercer.config(n_jobs=1)
    try:
        assert settings.current().n_jobs == 1
    finally:
        applied.__exit__(None, None, None)
    assert settings.current() == before
