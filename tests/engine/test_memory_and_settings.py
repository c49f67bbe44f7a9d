"""The memory budget, the settings, and progress."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import kernels
from mercer._errors import MemoryBudgetError, ParameterError
from mercer.engine import memory, progress, settings
from mercer.gram import Gram


def test_the_budget_is_what_is_left() -> None:
    with mercer.config(memory=1000):
        assert memory.budget() == 1000
        with memory.reserve(600, "a block"):
            assert memory.budget() == 400
            with memory.reserve(400, "another"):
                assert memory.budget() == 0
            third = memory.reserve(401, "a third")
            words = r"a third would take 401 bytes, and .* 400 bytes left; .* would have to be at least 1001 bytes\."
            with pytest.raises(MemoryBudgetError, match=words):
                third.__enter__()
            assert memory.budget() == 400
        assert memory.budget() == 1000
        with pytest.raises(ZeroDivisionError), memory.reserve(600, "a block"):
            1 // 0  # noqa: B018
        assert memory.budget() == 1000


@pytest.mark.parametrize("nbytes", [1025, 104_858, 2**20 + 1, 3 * 2**30 - 1])
def test_the_least_budget_that_is_told_is_enough(nbytes: int) -> None:
    with mercer.config(memory=1000), memory.reserve(999, "a block"), pytest.raises(MemoryBudgetError) as caught:
        memory.require(nbytes, "another")
    told = re.search(r"at least ([\d.]+ [a-zA-Z]+)\. ", str(caught.value))
    assert told is not None
    with mercer.config(memory=told[1]):
        assert nbytes + 999 <= memory.budget() <= 1.11 * (nbytes + 999)


def test_blocks_are_as_large_as_fits() -> None:
    with mercer.config(memory=1000):
        assert memory.fitting(lambda rows: 10 * rows, 64) == 64
        assert memory.fitting(lambda rows: 10 * rows, 128) == 64
        assert memory.fitting(lambda rows: 10 * rows**2, 100, 3) == 6
        # The one who asks reserves it, and is refused.
        assert memory.fitting(lambda rows: 2000 * rows, 100, 3) == 3


def test_without_a_budget_a_few_bytes_are_given_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with memory.reserve(2**20, "a small block"), memory.track():
        pass
    with pytest.raises(MemoryBudgetError, match="a large block"):
        memory.require(2**24, "a large block")
    with mercer.config(memory=1000), pytest.raises(MemoryBudgetError, match="a small block"):
        memory.require(2**20, "a small block")


def test_the_budget_is_half_of_what_is_there_by_default() -> None:
    assert settings.current().memory is None
    assert memory.budget() == pytest.approx(memory.available() / 2, rel=0.2)
    assert memory.available() > 2**20


def test_a_way_out_is_told() -> None:
    with mercer.config(memory="1 KiB"):
        with pytest.raises(MemoryBudgetError, match=r"mercer.config\(memory=...\)"):
            memory.require(2000, "a block")
        with pytest.raises(MemoryBudgetError, match=r"Use less\.$"):
            memory.require(2000, "a block", "Use less.")
        memory.require(1024, "a block that just fits")


def test_peaks_of_nested_blocks() -> None:
    with memory.track() as outer, memory.reserve(10, "one"):
        with memory.track() as inner:
            assert inner.peak == 0
        with memory.track() as inner, memory.reserve(5, "two"), memory.reserve(7, "three"):
            pass
        with memory.reserve(3, "four"):
            pass
    assert (outer.peak, outer.held) == (22, 0)
    assert (inner.peak, inner.held) == (12, 0)


def test_two_threads_cannot_reserve_the_same_bytes() -> None:
    refused: list[int] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        try:
            with memory.reserve(400, "a share"):
                barrier.wait(timeout=10)
        except MemoryBudgetError:
            refused.append(1)
            barrier.wait(timeout=10)

    with mercer.config(memory=1000):
        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(refused) == 6
        assert memory.budget() == 1000


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (2**31, "2.0 GiB"),
        (2**52, "4096.0 TiB"),
    ],
)
def test_bytes_in_words(nbytes: int, words: str) -> None:
    assert memory.describe(nbytes) == words


def test_a_gram_matrix_that_does_not_fit_is_refused_and_can_be_multiplied() -> None:
    X = np.random.default_rng(0).normal(size=(700, 2))
    gram = Gram(kernels.RBF(), X)
    with mercer.config(memory="1MB"):
        with pytest.raises(MemoryBudgetError, match=r"700 x 700 kernel matrix in float64 .*3.7 MiB.*@ v"):
            gram.dense()
        with pytest.raises(MemoryBudgetError, match="300 x 700"):
            gram.rows(np.arange(300))
        assert gram.rows([1, 2]).shape == (2, 700)
        assert (gram @ X).shape == (700, 2)


# ---- settings


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


# ---- progress


def test_the_hook_hears_of_every_strip() -> None:
    heard: list[tuple[str, int, int]] = []
    gram = Gram(kernels.RBF(), np.random.default_rng(0).normal(size=(1100, 2)), n_jobs=2)
    with mercer.on_progress(lambda *what: heard.append(what)):
        gram.dense()
        gram @ np.ones(1100)
    assert heard == [("Gram matrix", i, 3) for i in (1, 2, 3)] + [("kernel product", i, 3) for i in (1, 2, 3)]
    gram.dense()
    assert len(heard) == 6


def test_a_hook_may_cancel() -> None:
    def hook(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    gram = Gram(kernels.RBF(), np.ones((1100, 2)), n_jobs=2)
    with mercer.on_progress(hook), pytest.raises(KeyboardInterrupt):
        gram.dense()
    assert gram.dense().all()


def test_short_work_is_silent_and_long_work_says_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    quiet, loud = progress.Progress(4, "fit"), progress.Progress(4, "fit", verbose=True)
    for elapsed in (1.0, 3.0, 3.1, 9.0):
        now[0] = elapsed
        quiet.advance()
        loud.advance()
    said = capsys.readouterr().err.splitlines()
    assert said == ["mercer: fit: 2/4, about 3 s left", "mercer: fit: 4/4, about 0 s left"]


def test_a_note_stands_after_the_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now, seen = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    work = progress.Progress(None, "evidence", verbose=True)
    now[0] = 3.0
    with progress.watched(lambda it: seen.append((it.what, it.count))):
        work.advance(note="evaluations, highest -3.5")
        work.advance(2)
    assert seen == [("evidence", "1 evaluations, highest -3.5"), ("evidence", "3")]
    assert capsys.readouterr().err == "mercer: evidence: 1 evaluations, highest -3.5 in 3 s\n"
    work.advance()
    assert len(seen) == 2
