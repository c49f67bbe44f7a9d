"""A matrix that is evaluated once, under a memory budget that other threads use too."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.engine import memory
from mercer.gram import Gram, evaluated
from mercer.kernels import RBF

K = RBF(1.0)
X = np.random.default_rng(0).normal(size=(60, 3))
SINGLE, DOUBLE = 4 * 60**2, 8 * 60**2


@pytest.mark.parametrize(
    ("budget", "stored"),
    [(DOUBLE + SINGLE, ("f8", "f4")), (DOUBLE, ("f4",)), (SINGLE - 1, ())],
    ids=["both", "float32", "neither"],
)
def test_stored_in_what_fits(budget: int, stored: tuple[str, ...]) -> None:
    with mercer.config(memory=3 * budget // 2 if len(stored) == 2 else budget), ExitStack() as stack:
        gram = evaluated.EvaluatedGram.evaluate(Gram(K, X), stack)
        assert (gram is not None) == bool(stored)
        if gram is not None:
            assert [t for t in ("f8", "f4") if gram.stored_as(np.dtype(t)) is not None] == list(stored)


def test_memory_that_another_thread_reserves_in_the_meantime(monkeypatch: pytest.MonkeyPatch) -> None:
    check = evaluated.check_finite
    with ExitStack() as others, ExitStack() as stack:

        def check_late(entries: Any) -> None:
            others.enter_context(memory.reserve(6 * 60**2, "a matrix of another thread"))
            check(entries)

        monkeypatch.setattr(evaluated, "check_finite", check_late)
        with mercer.config(memory=14 * 60**2 + SINGLE // 2):
            gram = evaluated.EvaluatedGram.evaluate(Gram(K, X), stack)
        assert gram is not None and gram.stored_as(np.dtype("f8")) is not None
        assert gram.stored_as(np.dtype("f4")) is None
        np.testing.assert_allclose(gram.astype(np.float32) @ np.ones(60), K(X) @ np.ones(60), rtol=1e-5)


def both_and_single(stack: ExitStack) -> tuple[evaluated.EvaluatedGram, evaluated.EvaluatedGram]:
    """The same matrix, stored in both precisions, and in float32 alone."""
    grams = []
    for budget in (14 * 60**2, DOUBLE):
        with mercer.config(memory=budget + memory._process.reserved):
            gram = evaluated.EvaluatedGram.evaluate(Gram(K, X), stack)
        assert gram is not None
        grams.append(gram)
    return grams[0], grams[1]


def test_float32_entries_do_not_depend_on_the_budget() -> None:
    with ExitStack() as stack:
        both, single = both_and_single(stack)
        assert both.stored_as(np.float64) is not None and single.stored_as(np.float64) is None
        np.testing.assert_array_equal(single.stored_as(np.float32), both.stored_as(np.float32))


def test_a_part_is_compact_whichever_precision_is_stored() -> None:
    rows = np.arange(0, 60, 2)
    with ExitStack() as stack:
        for gram in both_and_single(stack):
            part = evaluated.compact(gram.restrict(rows, rows), stack)
            np.testing.assert_array_equal(part.stored_as(np.float32), gram.astype(np.float32).block(rows, rows))
