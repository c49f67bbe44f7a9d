"""The memory budget: what is left of it, who may reserve, and what errors say."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import mercer
from mercer import kernels
from mercer._errors import MemoryBudgetError
from mercer.engine import memory, settings
from mercer.gram import Gram


def test_the_budget_is_what_is_left() -> None:
    with mercer.config(memory=1000):
        assert memory.budget() == 1000
        with memory.reserve(600, "a block"):
            assert memory.budget() == 400
            with memory.reserve(400, "another"):
                assert memory.budget() == 0
            third = memory.reserve(401, "a third")
            words = r"a third would take 401 bytes, but .* 400 bytes left; .* would have to be at least 1001 bytes\."
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
    match = re.search(r"at least ([\d.]+ [a-zA-Z]+)\. ", str(caught.value))
    assert match is not None
    with mercer.config(memory=match[1]):
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
    assert (outer.peak, outer.reserved) == (22, 0)
    assert (inner.peak, inner.reserved) == (12, 0)


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


def test_threads_are_as_many_as_have_room() -> None:
    with mercer.config(memory=1000):
        assert [memory.workers(each, 8) for each in (0, 1, 125, 126, 500, 501, 10**30)] == [8, 8, 8, 7, 2, 1, 1]
        with memory.reserve(1000, "all of it"):
            assert memory.workers(0, 8) == 8 and memory.workers(1, 8) == 1
