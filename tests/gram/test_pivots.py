"""Randomly pivoted Cholesky: the distribution of the pivots, and a factor that is what it says for any matrix."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mercer
from gram.naive_gram import NaiveGram
from mercer._errors import MemoryBudgetError, NumericalError
from mercer.engine import memory
from mercer.engine.progress import on_progress
from mercer.gram import Gram, PrecomputedGram, pivots
from mercer.gram.pivots import PivotedCholesky, randomly_pivoted_cholesky
from mercer.gram.protocol import GramMatrix
from mercer.kernels import RBF

EPS = float(np.finfo(float).eps)


def factored(K: Any, most: int, seed: Any = 0, **options: Any) -> PivotedCholesky:
    gram: GramMatrix = PrecomputedGram(K) if isinstance(K, np.ndarray) else K
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    with ExitStack() as stack:
        return randomly_pivoted_cholesky(gram, most, random, stack, **options)


def one_at_a_time(K: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """What the simple algorithm leaves of K."""
    rest = K.copy()
    for _ in range(m):
        left = np.maximum(rest.diagonal(), 0.0)
        s = rng.choice(len(K), p=left / left.sum())
        rest = rest - np.outer(rest[s], rest[s]) / rest[s, s]
    return rest


def probability(K: np.ndarray, chosen: tuple[int, ...], weight: np.ndarray) -> float:
    """That the simple algorithm draws these pivots in this order."""
    rest, result = K.copy(), 1.0
    for s in chosen:
        left = weight * rest.diagonal()
        result *= left[s] / left.sum()
        rest = rest - np.outer(rest[s], rest[s]) / rest[s, s]
        rest[s, s] = 0.0
    return float(result)


def random_matrix(n: int, rank: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(n, rank))
    return A @ A.T


@pytest.mark.parametrize("fewest", [3, 16])
@pytest.mark.parametrize("weight", [None, [1.0, 0.0, 3.0, 0.5, 2.0]], ids=["rows", "weighted"])
def test_pivots_have_the_distribution_of_those_drawn_one_at_a_time(
    fewest: int, weight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pivots, "_FEWEST", fewest)
    # After one of the first three rows, proposals of the other two are accepted with probability 0.36.
    K = np.diag([1.0, 1.0, 1.0, 1.2, 0.8])
    K[:3, :3] += 0.8 * (1.0 - np.eye(3))
    weights = None if weight is None else np.array(weight)
    usable = range(5) if weights is None else np.flatnonzero(weights).tolist()
    sequences = list(itertools.permutations(usable, 2))
    expected = np.array([probability(K, s, np.ones(5) if weights is None else weights) for s in sequences])
    np.testing.assert_allclose(expected.sum(), 1.0)
    draws, random = 500, np.random.RandomState(0)
    drawn = [tuple(factored(K, 2, random, weight=weights).pivots.tolist()) for _ in range(draws)]
    observed = [drawn.count(s) for s in sequences]
    assert sum(observed) == draws
    assert stats.chisquare(observed, draws * expected).pvalue > 0.001


def test_errors_are_as_large_as_one_at_a_time(rng: np.random.Generator) -> None:
    K = RBF(1.0)(rng.normal(size=(80, 3)))
    ours = [factored(K, 20, seed).residual_trace for seed in range(60)]
    simple = [np.trace(one_at_a_time(K, 20, rng)) for _ in range(60)]
    error = np.hypot(np.std(ours), np.std(simple)) / np.sqrt(60)
    assert abs(np.mean(ours) - np.mean(simple)) < 4 * error
    # That the test can tell something: a fifth more would be seen.
    assert 4 * error < 0.2 * np.mean(simple)


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300, 3e-200])
def test_a_factor_and_what_it_leaves(scale: float, rng: np.random.Generator) -> None:
    K = RBF(1.0)(rng.normal(size=(70, 3)))
    part = factored(scale * K, 25)
    assert part.factor.shape == (70, 25) and len(set(part.pivots.tolist())) == 25
    F = part.factor / np.sqrt(scale)
    rest = K - F @ F.T
    np.testing.assert_allclose(rest[part.pivots], 0.0, atol=1e-12)
    np.testing.assert_allclose(part.residual / scale, rest.diagonal(), atol=1e-13)
    np.testing.assert_allclose(part.residual_trace / scale, np.trace(rest), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(F[part.pivots], 1).round(13), 0.0)
    np.testing.assert_array_equal(part.pivots, factored(K, 25).pivots)


def test_all_pivots_give_the_matrix() -> None:
    K = random_matrix(40, 60)
    part = factored(K, 1000)
    assert sorted(part.pivots.tolist()) == list(range(40))
    np.testing.assert_allclose(part.factor @ part.factor.T, K, rtol=0, atol=100 * EPS * K.max())
    np.testing.assert_array_equal(part.residual, 0.0)


def test_the_factor_ends_at_the_rank() -> None:
    K = random_matrix(60, 10)
    for scaled in (K, 1e300 * K / K.max(), np.float32(1) * K.astype(np.float32)):
        part = factored(scaled, 60)
        eps = float(np.finfo(scaled.dtype).eps)
        assert part.factor.shape == (60, 10) and part.factor.dtype == np.float64
        F = part.factor / np.sqrt(scaled.max())
        np.testing.assert_allclose(F @ F.T, scaled / scaled.max(), rtol=0, atol=200 * eps)


def test_rows_of_unlike_size_count_each_by_its_own() -> None:
    size = np.array([1e150, 1.0, 1e-50, 1e120, 1e-3, 1.0])
    K = random_matrix(6, 6)
    part = factored(size[:, None] * K * size, 6)
    assert sorted(part.pivots.tolist()) == list(range(6))
    F = part.factor / size[:, None]
    np.testing.assert_allclose(F @ F.T, K, rtol=0, atol=100 * EPS * K.max())


def test_repeated_rows_are_pivots_once(rng: np.random.Generator) -> None:
    X = rng.normal(size=(8, 2))
    which = rng.integers(0, 8, 200)
    part = factored(Gram(RBF(1.0), X[which]), 200)
    assert sorted(which[part.pivots].tolist()) == sorted(set(which.tolist()))
    assert abs(part.residual_trace) < 1e-10


def test_small_cases() -> None:
    one = factored(np.array([[4.0]]), 3)
    assert one.factor.tolist() == [[2.0]] and one.pivots.tolist() == [0] and one.residual_trace == 0.0
    zero = factored(np.zeros((4, 4)), 3)
    assert zero.factor.shape == (4, 0) and zero.residual.tolist() == [0.0] * 4
    some = factored(np.diag([0.0, 2.0, 0.0]), 3)
    assert some.pivots.tolist() == [1] and some.factor.ravel().tolist() == pytest.approx([0.0, np.sqrt(2.0), 0.0])
    none = factored(np.eye(3), 3, weight=np.array([0.0, 1.0, 0.0]))
    assert none.pivots.tolist() == [1] and none.residual.tolist() == [1.0, 0.0, 1.0]


def test_a_matrix_that_is_not_positive_has_a_residual_below_zero(rng: np.random.Generator) -> None:
    A = rng.normal(size=(30, 30))
    for K in (A + A.T, -np.eye(3), np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])):
        part = factored(K, len(K))
        np.testing.assert_allclose(part.residual, (K - part.factor @ part.factor.T).diagonal(), atol=1e-10)
        assert part.residual.min() < -0.5


def test_any_gram_matrix_will_do_and_the_bits_are_those_of_any_number_of_threads(rng: np.random.Generator) -> None:
    X = rng.normal(size=(2500, 3))
    gram = Gram(RBF(1.0), X)
    with mercer.config(n_jobs=1):
        one = factored(gram, 120)
    with mercer.config(n_jobs=2):
        two = factored(gram, 120)
    np.testing.assert_array_equal(one.factor, two.factor)
    np.testing.assert_array_equal(one.pivots, two.pivots)
    K = gram.dense()
    for other in (PrecomputedGram(K), NaiveGram(K)):
        np.testing.assert_allclose(factored(other, 120).factor, one.factor, atol=1e-9)
    single = factored(PrecomputedGram(K).astype(np.float32), 120)
    assert np.abs(single.factor @ single.factor.T - one.factor @ one.factor.T)[one.pivots[:5]].max() < 1e-4


def test_memory_and_progress(rng: np.random.Generator) -> None:
    K = PrecomputedGram(random_matrix(100, 100))
    with mercer.config(memory="70KiB"), pytest.raises(MemoryBudgetError, match="100 columns of the Cholesky factor of"):
        factored(K, 100)
    steps: list[tuple[str, int, int | None]] = []
    with mercer.config(memory="1MiB"), on_progress(lambda *step: steps.append(step)), ExitStack() as stack:
        before = memory.budget()
        randomly_pivoted_cholesky(K, 50, np.random.RandomState(0), stack)
        assert before - memory.budget() == 8 * 100 * 50
    own = [step for step in steps if step[0] == "pivots"]
    assert own[-1] == ("pivots", 50, 50) and len(own) > 2


def test_ctrl_c_ends_the_work_and_gives_the_memory_back() -> None:
    def interrupt(*step: Any) -> None:
        raise KeyboardInterrupt

    with mercer.config(memory="1MiB"):
        with pytest.raises(KeyboardInterrupt), on_progress(interrupt):
            factored(random_matrix(100, 100), 50)
        assert memory.budget() == 2**20


def test_entries_that_are_not_finite() -> None:
    K = np.eye(3)
    K[1, 2] = K[2, 1] = np.nan
    for broken in (K, np.diag([1.0, np.inf, 1.0])):
        with pytest.raises(NumericalError, match=r"kernel values of row [12] are NaN or infinite"):
            factored(NaiveGram(broken), 3)


def test_it_ends_when_there_are_enough() -> None:
    K = Gram(RBF(1.0), np.random.default_rng(0).normal(size=(300, 2))).dense()
    asked: list[tuple[int, float]] = []

    def enough(rank: int, fall: float) -> bool:
        asked.append((rank, fall))
        return rank >= 40

    result = factored(K, 200, enough=enough)
    ranks, falls = [rank for rank, _ in asked], [fall for _, fall in asked]
    assert ranks[-1] == len(result.pivots) and ranks[-1] >= 40 > ranks[-2]
    # The falls add up to what the trace has lost, and become smaller as the spectrum decays.
    lost = float(np.diff([0, *ranks]) @ falls)
    np.testing.assert_allclose(lost, K.trace() - result.residual_trace, rtol=1e-9)
    assert falls[-1] < falls[0] / 10


def test_the_fall_of_the_trace_is_near_the_largest_eigenvalue_left() -> None:
    K = Gram(RBF(1.0), np.random.default_rng(0).normal(size=(400, 3))).dense()
    falls: list[float] = []
    result = factored(K, 120, enough=lambda rank, fall: bool(falls.append(fall)))
    largest = float(np.linalg.eigvalsh(K - result.factor @ result.factor.T)[-1])
    assert largest / 10 <= falls[-1] <= 2 * largest
