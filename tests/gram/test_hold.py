"""Where K is kept: by the budget, by what is needed beside it and by what is stored already, and the sentence."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

import mercer
from gram.naive_gram import NaiveGram
from mercer._errors import MemoryBudgetError
from mercer.engine import memory
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.hold import (
    REMEDY,
    capacity,
    evaluated,
    first_rows_in_single,
    fits,
    held_in_single,
    hold,
    hold_exact,
    hold_rows,
    is_small,
)
from mercer.gram.protocol import GramMatrix
from mercer.kernels import RBF

N = 64
X = np.random.default_rng(0).normal(size=(N, 2))
LAZY = Gram(RBF(1.0), X)
K = LAZY.dense()
WHOLE = 8 * N * N


@pytest.mark.parametrize(
    ("budget", "precision", "sentence"),
    [
        (2 * WHOLE, np.float64, "held whole in float64, 32.0 KiB of 64.0 KiB"),
        (2 * WHOLE - 1, np.float32, "held whole in float32, 16.0 KiB of 64.0 KiB"),
        (WHOLE // 2, np.float32, "held whole in float32, 16.0 KiB of 16.0 KiB"),
        (WHOLE // 2 - 1, None, "evaluated by tiles: 16.0 KiB would be too much of 16.0 KiB"),
    ],
)
def test_the_first_precision_that_fits_with_what_is_beside_it(budget: int, precision: type, sentence: str) -> None:
    with mercer.config(memory=budget), ExitStack() as stack:
        storage = hold(LAZY, stack, {np.float64: WHOLE, np.float32: 0})
        assert storage.sentence == sentence
        if precision is None:
            assert storage.array is None and storage.gram is LAZY
        else:
            assert storage.array is not None and storage.array.dtype == precision
            assert memory.budget() == budget - storage.array.nbytes
            np.testing.assert_allclose(storage.gram @ np.ones(N, precision), K.sum(axis=1), rtol=1e-5)
        stack.close()
        assert memory.budget() == budget


def test_what_is_required_is_refused_with_a_remedy() -> None:
    with mercer.config(memory=WHOLE - 1), ExitStack() as stack, pytest.raises(MemoryBudgetError, match="on fewer rows"):
        hold(LAZY, stack, {np.float64: 0}, required=REMEDY)


def test_a_given_matrix_is_used_where_it_lies_unless_a_copy_is_asked_for() -> None:
    given = PrecomputedGram(K)
    with mercer.config(memory=WHOLE), ExitStack() as stack:
        storage = hold(given, stack, {np.float64: 10 * WHOLE})
        assert storage.gram is given and memory.budget() == WHOLE
        assert storage.array is not None and np.shares_memory(storage.array, K)
        assert storage.sentence == "given whole in float64, 32.0 KiB"
        copy = hold(given, stack, {np.float64: 0}, copy=True).array
        assert copy is not None and not np.shares_memory(copy, K) and memory.budget() == 0


def test_exact_means_float64_and_by_rows() -> None:
    with mercer.config(memory=2 * WHOLE), ExitStack() as stack:
        own = hold_exact(PrecomputedGram(K), stack, beside=WHOLE).array
        assert own is not None and np.shares_memory(own, K)
        single = hold_exact(PrecomputedGram(K.astype(np.float32)), stack, beside=WHOLE).array
        assert single is not None and single.dtype == np.float64
        # One matrix is held by now, so that nothing fits beside another.
        crowded = hold_exact(PrecomputedGram(K), stack, beside=2 * WHOLE)
        assert crowded.array is None and "too little memory" in crowded.sentence


def test_questions_of_the_budget() -> None:
    with mercer.config(memory=WHOLE):
        assert fits(WHOLE) and not fits(WHOLE + 1)
        assert capacity(8, 1000) == 1000 and capacity(8 * N, 1000) == N and capacity(8 * N, 1000, parts=4) == N // 4
        assert capacity(2 * WHOLE, 10) == 0
        assert capacity(8, 1000, beside=WHOLE - 80) == 10 and capacity(8, 1000, beside=WHOLE + 1) == 0
        assert evaluated(LAZY) is LAZY and not is_small(LAZY, np.float64) and is_small(LAZY, np.float32)
    with mercer.config(memory=2 * WHOLE):
        assert isinstance(evaluated(LAZY), PrecomputedGram) and is_small(LAZY, np.float64)


@pytest.mark.parametrize("gram", [LAZY, PrecomputedGram(K), NaiveGram(K)], ids=["lazy", "given", "naive"])
def test_what_stands_for_a_matrix(gram: GramMatrix) -> None:
    assert isinstance(gram, GramMatrix) and not isinstance(K, GramMatrix)
    assert (gram.stored_array() is None) == (gram.stored() is None) == (gram.stored_as(np.float64) is None)
    assert (gram.stored_array() is None) == (not isinstance(gram, PrecomputedGram))
    part = np.array([5, 3, 60])
    np.testing.assert_allclose(gram.restrict(part, None).block(None, part), K[np.ix_(part, part)], rtol=1e-12)
    np.testing.assert_allclose(gram.block(part, slice(2, 9)), K[part, 2:9], rtol=1e-12)


def test_a_matrix_of_no_use_as_a_whole_stays_as_it_is() -> None:
    with ExitStack() as stack:
        storage = hold(LAZY, stack, {})
    assert storage.gram is LAZY and storage.array is None and storage.sentence == "evaluated by tiles"


@pytest.mark.parametrize(
    ("budget", "most", "entries"),
    [(WHOLE, 10**6, N * N - 9), (10 * WHOLE, 10**6, N * N), (WHOLE, 8 * N + 7, N), (8 * 9, 10**6, 0)],
)
def test_rows_get_what_is_left_beside_a_block(budget: int, most: int, entries: int) -> None:
    with mercer.config(memory=budget), ExitStack() as stack:
        room, sentence = hold_rows(LAZY, stack, most=most, beside=9)
        assert room.shape == (9 + entries,) and room.dtype == np.float64
        assert memory.budget() == budget - room.nbytes
        kept = f", with up to {memory.describe(room.nbytes)} of kept rows in float64" if entries else ""
        assert sentence == "evaluated by tiles" + kept
        stack.close()
        assert memory.budget() == budget
    with mercer.config(memory=8 * 9 - 1), ExitStack() as stack, pytest.raises(MemoryBudgetError, match="kernel block"):
        hold_rows(LAZY, stack, most=most, beside=9)


@pytest.mark.parametrize("stored", [False, True])
def test_values_in_single_precision_are_held_where_they_take_a_quarter(stored: bool) -> None:
    lazy = Gram(RBF(1.0), np.random.default_rng(0).normal(size=(50, 3)), np.zeros((4, 3)))
    gram: GramMatrix = PrecomputedGram(lazy.dense(), symmetric=False) if stored else lazy
    size = 4 * 50 * 4
    with mercer.config(memory=4 * size - 1), ExitStack() as stack:
        assert held_in_single(gram, stack) is None
    with mercer.config(memory=4 * size), ExitStack() as stack:
        held = held_in_single(gram, stack)
        assert held is not None and held.dtype == np.float32
        assert memory.budget() == 3 * size
    np.testing.assert_allclose(held.block(), lazy.dense(), rtol=1e-6)


@pytest.mark.parametrize(("budget", "rows"), [(63, 0), (64, 1), (64 * 10 + 63, 10), (64 * 50, 50), (10**6, 50)])
def test_as_many_first_rows_as_take_a_quarter_are_held(budget: int, rows: int) -> None:
    gram = Gram(RBF(1.0), np.random.default_rng(0).normal(size=(50, 40)), np.zeros((4, 40)), dtype=np.float32)
    with mercer.config(memory=budget), ExitStack() as stack:
        first = first_rows_in_single(gram, stack)
        assert first is not None and first.values.shape == (rows, 4) and first.values.dtype == np.float32
        assert memory.budget() == budget - first.values.nbytes
        stack.close()
        assert memory.budget() == budget


def test_first_rows_of_few_columns_are_computed_in_each_pass() -> None:
    gram = Gram(RBF(1.0), np.zeros((50, 3)), np.zeros((4, 3)), dtype=np.float32)
    with mercer.config(memory=10**6), ExitStack() as stack:
        assert first_rows_in_single(gram, stack) is None
        assert memory.budget() == 10**6
