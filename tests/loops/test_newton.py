"""Newton steps on the free weights of small problems."""

import numpy as np
import pytest
from sklearn.svm import SVC as LibSVC

from mercer import SVC
from mercer.loops.box import BoxWeights
from mercer.loops.newton import NewtonRoom, newton_step


def problem(q=9):
    rng = np.random.default_rng(2)
    A = rng.normal(size=(q, q))
    K, linear = A @ A.T + 0.1 * np.eye(q), rng.normal(size=q)
    beta = rng.uniform(-0.1, 0.1, q)
    beta[:2] = -1.0, 1.0
    return K, beta, linear - K @ beta


def step(K, beta, F, balanced, width=1.0, m=20, a=None):
    rooms = np.empty((m + 2, m + 3)), np.empty(m, np.int64), np.empty(m + 2)
    bound = np.full(len(beta), width)
    weights = BoxWeights(beta, -bound, bound, np.zeros_like(bound))
    return newton_step(K, F, weights, balanced, len(beta) if a is None else a, NewtonRoom(*rooms))


@pytest.mark.parametrize("balanced", [True, False])
def test_free_weights_that_stay_inside_have_equal_gradients(balanced):
    K, beta, F = problem()
    # A box that only the two weights at their bounds touch.
    lower, upper = np.full(9, -1e3), np.full(9, 1e3)
    lower[0], upper[1] = -1.0, 1.0
    before, linear = beta.copy(), F + K @ beta
    free = np.arange(2, 9)
    rooms = np.empty((22, 23)), np.empty(20, np.int64), np.empty(22)
    assert newton_step(K, F, BoxWeights(beta, lower, upper, np.zeros(9)), balanced, 9, NewtonRoom(*rooms))
    scale = np.abs(K).sum() * np.abs(beta).max() * np.linalg.cond(K) * np.finfo(float).eps
    np.testing.assert_array_equal(beta[:2], before[:2])
    np.testing.assert_allclose(F, linear - K @ beta, atol=scale)
    np.testing.assert_allclose(F[free], F[free].mean() if balanced else 0.0, atol=scale)
    if balanced:
        assert beta.sum() == pytest.approx(before.sum(), abs=scale)


def test_a_step_ends_at_the_first_bound_and_the_objective_rises():
    K, beta, F = problem()
    before, F_before = beta.copy(), F.copy()
    assert step(K, beta, F, True, width=1.0)
    change = beta - before
    assert change @ F_before - 0.5 * change @ K @ change > 0
    assert np.abs(beta).max() == 1.0
    assert np.count_nonzero(np.abs(beta) == 1.0) == 3


def test_what_has_no_step_is_left_as_it_is():
    K, beta, F = problem()
    for wrong in (-K, np.zeros_like(K), K * np.nan):
        new = beta.copy()
        assert not step(wrong, new, F.copy(), True)
        np.testing.assert_array_equal(new, beta)
    # Too many free weights for the room, and a single one whose sum is kept.
    assert not step(K, beta.copy(), F.copy(), True, m=3)
    assert not step(np.eye(1), np.zeros(1), np.ones(1), True)


def test_many_small_classes_are_exact_in_few_steps():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(20, 8))
    y = np.arange(1000) % 20
    X = centers[y] + rng.normal(size=(1000, 8))
    ours, peer = SVC(C=10.0, gamma=0.1).fit(X, y), LibSVC(C=10.0, gamma=0.1).fit(X, y)
    assert ours.certificate_.kkt_violation <= 1e-9
    # Without Newton steps the last digits take several times as many as the tolerance of 1e-3.
    assert ours.n_iter_.sum() < 2 * peer.n_iter_.sum()


@pytest.mark.parametrize("a", [0, 1, 4, 9])
def test_a_step_in_two_groups_keeps_both_sums(a):
    K, beta, F = problem()
    q, before = len(beta), beta.copy()
    assert step(K, beta, F, True, 1e3, a=a)
    # With every weight free the gradient is one number in each group, and the sums are as before.
    for part in (slice(0, a), slice(a, q)):
        if len(F[part]):
            assert np.ptp(F[part]) < 1e-9
            assert beta[part].sum() == pytest.approx(before[part].sum(), abs=1e-9)
    assert np.abs(beta - before).max() > 1e-3
