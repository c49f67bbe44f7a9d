"""The loop over tiny pairs against the same problems solved one by one."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer._errors import NumericalError
from mercer.gram import PrecomputedGram
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm import pairwise, tiny_pairs
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.pair_answers import STATUSES, Certificates, PairLayout
from mercer.solvers.svm.pairwise import solve_pairs
from mercer.solvers.svm.smo import SMO
from svm_cases import iris

MACHINE = CSVC(SMO())


@dataclass(frozen=True)
class Single(CSVC):
    """The same machine, of which no pair goes through the loop."""

    def is_compiled(self, from_zero):
        return False


def one_by_one(gram, sizes, upper, machine):
    return solve_pairs(gram, sizes, upper, Single(machine.solver, machine.intercept))


def flowers():
    """K of the irises, a few rows in other numbers for each class."""
    X, y = iris()
    used = np.r_[0:7, 55:95, 110:147]
    return rbf_kernel(X[used], gamma=0.3), np.bincount(y[used])


def opposite_duplicates():
    X = np.repeat(np.random.default_rng(3).standard_normal((8, 2)), 4, axis=0)
    order = np.argsort(np.arange(32) % 4, kind="stable")
    return rbf_kernel(X[order], gamma=0.5), np.full(4, 8)


def made(k=12, largest=9):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, largest, k)
    X = np.repeat(rng.standard_normal((k, 3)), sizes, axis=0) + rng.standard_normal((sizes.sum(), 3))
    return rbf_kernel(X, gamma=0.4), sizes


def assert_same_answers(result, expected, atol=1e-8):
    for name in ("beta", "gradient", "state", "offsets"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), atol=atol, err_msg=name)
    for one, other in zip(result.certificates, expected.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-9, abs=1e-12)
        assert one.dual == pytest.approx(other.dual, rel=1e-9, abs=1e-12)
        assert (one.status, one.convex) == (other.status, other.convex)
        assert one.violations.keys() == other.violations.keys()
        assert one.kkt_violation <= 1e-10 and max(one.violations.values()) <= 1e-9


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("C", [0.3, 30.0])
@pytest.mark.parametrize("data", [flowers, made])
def test_answers_are_those_of_the_pairs_one_by_one(data, C, weighted, intercept):
    K, sizes = data()
    upper = C * (1.0 + np.arange(len(K)) % 3 if weighted else np.ones(len(K)))
    machine = CSVC(SMO(), intercept)
    solution = solve_pairs(PrecomputedGram(K), sizes, upper, machine)
    assert_same_answers(solution, one_by_one(PrecomputedGram(K), sizes, upper, machine))


@pytest.mark.parametrize("intercept", [True, False])
def test_opposite_duplicates_have_the_same_objectives_and_functions(intercept):
    K, sizes = opposite_duplicates()
    machine = CSVC(SMO(), intercept)
    results, expected = (solve(PrecomputedGram(K), sizes, np.ones(32), machine) for solve in (solve_pairs, one_by_one))
    np.testing.assert_allclose(results.gradient, expected.gradient, atol=1e-8)
    np.testing.assert_allclose(results.certificates.dual, expected.certificates.dual, atol=1e-9)
    assert results.certificates.kkt_violation.max() < 1e-10


def in_the_loop(monkeypatch):
    """The numbers of pairs that are left by each call of the loop."""
    left = []

    def spy(*args):
        solved = tiny_pairs.solve_tiny_pairs(*args)
        left.append(int((~solved).sum()))
        return solved

    monkeypatch.setattr(pairwise, "solve_tiny_pairs", spy)
    return left


def test_strips_and_classes_that_are_not_small(monkeypatch):
    K, sizes = made()
    # A matrix whose rows do not lie together is read by strips.
    K = np.asfortranarray(K)
    left = in_the_loop(monkeypatch)
    whole = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)
    monkeypatch.setattr(tiny_pairs, "_STRIP", 8 * len(K) * 10)
    strips = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)
    assert_same_answers(strips, whole, atol=0.0)
    # Now some classes are too large for the loop with some others, and one with all.
    monkeypatch.setattr(tiny_pairs, "MOST", 8)
    some = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)
    assert_same_answers(some, whole)
    rows = np.array([sizes[i] + sizes[j] for i, j in combinations(range(len(sizes)), 2)])
    assert left == [0, 0, (rows > 8).sum()] and 0 < left[-1] < len(rows)
    # With room for a few of the threads.
    with mercer.config(memory="6KiB", n_jobs=16):
        assert_same_answers(solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE), whole)
    assert left[-1] == len(rows)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stored_matrix_is_not_read_by_strips(monkeypatch, dtype, intercept):
    K, sizes = made()
    K = K.astype(dtype)
    machine = CSVC(SMO(), intercept)
    strips = solve_pairs(PrecomputedGram(np.asfortranarray(K)), sizes, np.ones(len(K)), machine)
    order = np.random.default_rng(5).permutation(len(K))
    shuffled = np.empty_like(K)
    shuffled[np.ix_(order, order)] = K

    def never(*_):
        raise AssertionError("a strip was made")

    monkeypatch.setattr(tiny_pairs._TinyPairs, "_solve_strip", never)
    stored = PrecomputedGram(shuffled).restrict(order, order)
    once = solve_pairs(stored, sizes, np.ones(len(K)), machine)
    assert_same_answers(once, strips)
    again = CSVC(SMO(n_jobs=2), intercept)
    answers = solve_pairs(stored, sizes, np.ones(len(K)), again, starts=once.beta.copy())
    assert_same_answers(answers, strips)


def test_starts_are_gone_on_from():
    K, sizes = made()
    upper = np.full(len(K), 5.0)
    cold = solve_pairs(PrecomputedGram(K), sizes, upper, MACHINE)
    warm = solve_pairs(PrecomputedGram(K), sizes, upper, MACHINE, starts=cold.beta)
    assert_same_answers(warm, cold)
    assert warm.certificates.iterations.sum() < 0.1 * cold.certificates.iterations.sum()


def test_stopping_by_the_gap_and_indefinite_kernels():
    K, sizes = made()
    tight = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), CSVC(SMO(stop="gap", tol=1e-13)))
    for part in tight.certificates:
        assert part.status is Status.stalled or part.relative_gap <= 1e-13
    loose = solve_pairs(PrecomputedGram(K - 0.5), sizes, np.ones(len(K)), MACHINE, convex=False)
    assert {part.status for part in loose.certificates} == {Status.stationary}
    assert not any(part.convex for part in loose.certificates)


def test_a_limit_of_steps_is_honoured(monkeypatch):
    K, sizes = made()
    left = in_the_loop(monkeypatch)
    limited = solve_pairs(PrecomputedGram(K), sizes, np.full(len(K), 10.0), CSVC(SMO(max_iter=3)))
    assert limited.certificates.iterations.max() == 3 and left[0] > 0
    assert Status.iteration_limit in {part.status for part in limited.certificates}


def test_values_that_are_not_finite_are_told():
    K, sizes = made()
    K[3, 5] = K[5, 3] = np.nan
    with pytest.raises(NumericalError, match="NaN or infinity"):
        solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)


def test_rounding_does_not_keep_large_weights_from_their_tolerance(monkeypatch):
    K, sizes = made()
    left = in_the_loop(monkeypatch)
    solution = solve_pairs(PrecomputedGram(K), sizes, np.full(len(K), 1e9), MACHINE)
    assert solution.certificates.kkt_violation.max() <= 1e-3 and left[0] < 5


def test_layout():
    layout = PairLayout(np.array([2, 1, 3, 2]))
    pairs = list(combinations(range(4), 2))
    numbers = np.arange(6.0)
    spread, parts = layout.spread(numbers), np.random.default_rng(0).random((3, 8))
    least = layout.least(parts)
    for number, pair in enumerate(pairs):
        assert layout.number(*pair) == number
        assert set(layout.take(spread, pair)) == {number}
        assert set(layout.take(least, pair)) == {layout.take(parts, pair).min()}
        np.testing.assert_array_equal(layout.take(np.tile(np.arange(8), (3, 1)), pair), layout.rows(pair))
    assert [layout.against_later(i) for i in range(4)] == [slice(0, 3), slice(3, 5), slice(5, 6), slice(6, 6)]


def test_certificates_are_a_sequence_of_what_was_put_in():
    parts = [
        Certificate(1.0, 0.5, 0.1, 3, 0.2, 80, Status.converged, {"sum": 0.0, "box": 1.0}),
        Certificate(np.inf, 0.5, 0.1, 4, 0.2, 80, Status.stationary, {"margin": 2.0}, False),
    ]
    certificates = Certificates.empty(2)
    for number, part in enumerate(parts):
        certificates.put(number, part)
    assert (
        list(certificates) == parts
        and certificates[-1] == parts[1]
        and certificates[1:] == parts[1:]
        and len(certificates) == 2
    )
    with pytest.raises(IndexError):
        certificates[2]
    with pytest.raises(ValueError, match="one length"):
        replace(certificates, seconds=np.zeros(3))
    with pytest.raises(ValueError, match="every status"):
        replace(certificates, status=np.array([0, len(STATUSES)], dtype=np.int8))
