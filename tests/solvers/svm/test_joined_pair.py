"""Pairs of a few hundred rows by steps on joined rows, against the solver that takes them one by one."""

import numpy as np
import pytest

from mercer import Gram, kernels
from mercer.solvers.svm import pairwise
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.joined_pair import JoinedPair
from mercer.solvers.svm.pairwise import solve_pairs
from mercer.solvers.svm.smo import SMO

SIZES = np.array([350, 300, 260])


@pytest.fixture
def problem(rng):
    centres = np.repeat(np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]]), SIZES, axis=0)
    X = centres + 0.8 * rng.standard_normal(centres.shape)
    return Gram(kernels.RBF(0.7), X), rng.uniform(0.5, 3.0, len(X))


def _machine(intercept=True, **options):
    return CSVC(SMO(**{"cache_bytes": 2**26, "n_jobs": 2} | options), intercept)


def _spy(monkeypatch):
    """Whether each pair was solved."""
    went, solve = [], JoinedPair.solve

    def spy(self, *args):
        answer = solve(self, *args)
        went.append(answer is not None)
        return answer

    monkeypatch.setattr(JoinedPair, "solve", spy)
    return went


def _one_by_one(monkeypatch, *args):
    with monkeypatch.context() as patched:
        patched.setattr(pairwise._Pairs, "share_own_blocks", lambda *args: None)
        return solve_pairs(*args)


@pytest.mark.parametrize("stop", ["kkt", "gap"])
def test_answers_are_those_of_the_general_solver(problem, monkeypatch, stop):
    gram, upper = problem
    machine = _machine(tol=1e-4, stop=stop)
    expected = _one_by_one(monkeypatch, gram, SIZES, upper, machine)
    went = _spy(monkeypatch)
    answers = solve_pairs(gram, SIZES, upper, machine)
    assert len(went) == 3
    assert stop == "gap" or all(went)
    np.testing.assert_allclose(answers.offsets, expected.offsets, atol=1e-3)
    np.testing.assert_allclose(answers.gradient, expected.gradient, atol=1e-3)
    for mine, other in zip(answers.certificates, expected.certificates):
        assert mine.dual == pytest.approx(other.dual, rel=1e-6)
        assert mine.primal >= mine.dual
        assert mine.kkt_violation <= 1e-4
        assert mine.violations.keys() == other.violations.keys()
        assert stop == "kkt" or mine.gap <= 1e-4 * abs(mine.primal)


def test_the_certificate_is_that_of_the_weights(problem):
    gram, upper = problem
    answers = solve_pairs(gram, SIZES, upper, _machine())
    layout = answers.layout
    for number, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = layout.rows(pair)
        y = np.repeat([1.0, -1.0], SIZES[list(pair)])
        beta, K = layout.take(answers.beta, pair), gram.block(rows, rows)
        F = y - K @ beta
        np.testing.assert_allclose(layout.take(answers.gradient, pair), F, atol=1e-12)
        certificate = answers.certificates[number]
        losses = np.maximum(0, 1 - y * (K @ beta + answers.offsets[number]))
        assert certificate.primal == pytest.approx(0.5 * beta @ K @ beta + upper[rows] @ losses, rel=1e-12)
        assert certificate.dual == pytest.approx(y @ beta - 0.5 * beta @ K @ beta, rel=1e-12)


def test_what_steps_do_not_solve_is_left_to_the_general_solver(problem, monkeypatch):
    """Which goes on from the weights that steps have reached."""
    gram, upper = problem
    went, starts, general = _spy(monkeypatch), [], SMO.solve

    def spy(self, problem, start):
        starts.append(start.beta)
        return general(self, problem, start)

    monkeypatch.setattr(SMO, "solve", spy)
    answers = solve_pairs(gram, SIZES, 1e5 * upper, _machine())
    assert not all(went)
    assert len(starts) == went.count(False)
    assert all(np.any(start) for start in starts)
    assert max(c.kkt_violation for c in answers.certificates) <= 1e-3


def test_bits_do_not_depend_on_the_number_of_threads(problem):
    gram, upper = problem
    one, two = (solve_pairs(gram, SIZES, upper, _machine(n_jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_array_equal(one.beta, two.beta)
    np.testing.assert_array_equal(one.gradient, two.gradient)


@pytest.mark.parametrize("options", [{"max_iter": 5}, {"intercept": False}])
def test_limits_and_homogeneous_problems_go_to_the_general_solver(problem, monkeypatch, options):
    gram, upper = problem
    went = _spy(monkeypatch)
    answers = solve_pairs(gram, SIZES, upper, _machine(**options))
    assert not went
    assert "max_iter" not in options or max(c.iterations for c in answers.certificates) <= 5
