"""Any loss over landmarks: against dense minimisation on explicit features, exact learners, and its own gap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, xlogy
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, KernelLogisticRegression, KernelMachine, config
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, OwnLoss, Quantile, SquaredHinge
from mercer.solvers.restricted.criteria import Envelope, Smooth, SoftmaxCriterion
from mercer.solvers.restricted.newton import RestrictedNewton, RestrictedRisk
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Status

KERNEL = RBF(1.5)


def rows_of(y, m=40, seed=0):
    rng = np.random.default_rng(seed)
    n = len(y)
    X = rng.normal(size=(n, 3))
    weights = rng.uniform(0.3, 2.0, n)
    Z = X[:m]
    return X, StoredRows(Gram(KERNEL, X, Z), y, weights), Whitening.of(KERNEL(Z))


def signs(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return np.where(X[:, :1] * X[:, 1:2] + 0.3 * rng.normal(size=(n, 1)) > 0, 1.0, -1.0)


def numbers(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return 5.0 + np.sin(2 * X).sum(axis=1, keepdims=True) + 0.2 * rng.normal(size=(n, 1))


def least(problem, loss):
    """The least objective, by quasi-Newton steps on explicit features."""
    rows, white = problem.rows, problem.white
    features = white.features(np.array(rows.gram.block(), dtype=float, order="C"))
    if problem.intercept:
        features = np.column_stack([features, np.ones(len(features))])
    y, w, penalties = rows.targets[:, 0], rows.weights, problem.penalties[:, 0]

    def objective(g):
        f = features @ g
        value = w @ loss.value(y, f) + 0.5 * (penalties * g) @ g
        return value, features.T @ (w * loss.gradient(y, f)) + penalties * g

    found = minimize(objective, np.zeros(features.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.fun


@pytest.mark.parametrize("alpha, intercept", [(1e-3, True), (0.1, False), (10.0, True), (10.0, False)])
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Huber(0.5)])
def test_smooth_losses(loss, alpha, intercept):
    y = numbers() if loss.targets == "numbers" else signs()
    _, rows, white = rows_of(y)
    criterion = Envelope(loss, 32.0) if isinstance(loss, Huber) else Smooth(loss)
    problem = RestrictedRisk(rows, white, criterion, alpha, intercept=intercept)
    solution = RestrictedNewton(1e-8).solve(problem)
    best = least(problem, loss)
    assert solution.status is Status.converged
    assert solution.certificate.primal == pytest.approx(best, rel=1e-6)
    # The sum of the multipliers is 0 up to rounding, so that the dual value is a bound.
    assert solution.certificate.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "loss, width", [(Hinge(), 4.0), (EpsilonInsensitive(0.1), 16.0), (Quantile(0.8), 64.0), (Quantile(0.5), 32.0)]
)
def test_piecewise_linear_losses(loss, width, intercept):
    y = signs() if loss.targets == "signs" else numbers()
    _, rows, white = rows_of(y)
    problem = RestrictedRisk(rows, white, Envelope(loss, width), 0.5, intercept=intercept)
    solution = RestrictedNewton(1e-5).solve(problem)
    certificate = solution.certificate
    assert solution.status is Status.converged and 0 <= certificate.relative_gap <= 1e-5
    # Of a linear program's kind: the bound from below, against what many subgradient-free steps reach from above.
    assert certificate.primal <= least(replace_criterion(problem), loss) * (1 + 1e-5)


def replace_criterion(problem):
    return RestrictedRisk(problem.rows, problem.white, problem.criterion, problem.alpha, 1, problem.intercept)


def test_classes_by_softmax():
    rng = np.random.default_rng(0)
    n, k, m = 400, 3, 30
    X = rng.normal(size=(n, 3))
    labels = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.5])
    y = np.eye(k)[labels]
    rows = StoredRows(Gram(KERNEL, X, X[:m]), y, np.ones(n))
    white = Whitening.of(KERNEL(X[:m]))
    problem = RestrictedRisk(rows, white, SoftmaxCriterion(), 0.3, outputs=k)
    solution = RestrictedNewton(1e-8).solve(problem)
    features = np.column_stack([white.features(KERNEL(X, X[:m])), np.ones(n)])

    def objective(g):
        G = g.reshape(m + 1, k)
        F = features @ G
        p = np.exp(F - logsumexp(F, axis=1, keepdims=True))
        value = (logsumexp(F, axis=1) - (y * F).sum(axis=1)).sum() + 0.15 * (G[:m] ** 2).sum()
        slope = features.T @ (p - y)
        slope[:m] += 0.3 * G[:m]
        return value, slope.ravel()

    found = minimize(objective, np.zeros((m + 1) * k), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert solution.certificate.primal == pytest.approx(found.fun, rel=1e-6)


def test_with_all_rows_as_landmarks_it_is_the_support_vector_machine():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    K = KERNEL(X)
    rows = StoredRows(Gram(KERNEL, X, X), y[:, None], np.ones(150))
    problem = RestrictedRisk(rows, Whitening.of(K), Envelope(Hinge(), 4.0), 1 / 10.0)
    solution = RestrictedNewton(1e-4).solve(problem)
    exact = SVC(C=10.0, kernel=KERNEL, tol=1e-6).fit(X, y)
    values = K @ solution.value[:-1, 0] + solution.value[-1, 0]
    assert np.mean(np.sign(values) == exact.predict(X)) > 0.99
    assert solution.certificate.primal * 10 == pytest.approx(exact.certificate_.primal, rel=1e-3)
    targets = np.sin(X).sum(axis=1)
    rows = StoredRows(Gram(KERNEL, X, X), targets[:, None], np.ones(150))
    problem = RestrictedRisk(rows, Whitening.of(K), Envelope(EpsilonInsensitive(0.1), 4.0), 1.0)
    solution = RestrictedNewton(1e-4).solve(problem)
    exact = SVR(C=1.0, epsilon=0.1, kernel=KERNEL, tol=1e-6).fit(X, targets)
    assert solution.certificate.primal == pytest.approx(exact.certificate_.primal, rel=1e-3)


def test_the_bits_do_not_depend_on_threads():
    _, rows, white = rows_of(signs(2000), 60)
    values = []
    for jobs in (1, 3):
        with config(n_jobs=jobs):
            problem = RestrictedRisk(rows, white, Smooth(Logistic()), 0.1)
            values.append(RestrictedNewton().solve(problem).value)
    np.testing.assert_array_equal(values[0], values[1])


def test_a_pass_limit_is_kept_and_said():
    _, rows, white = rows_of(signs())
    solution = RestrictedNewton(1e-12, 5).solve(RestrictedRisk(rows, white, Smooth(Logistic()), 1e-4))
    assert solution.status is Status.iteration_limit and solution.certificate.iterations <= 5 + 2


class WithoutState:
    """Rows for which nothing is kept from pass to pass."""

    def __init__(self, rows):
        self.rows, self.shape = rows, rows.shape

    def sweep(self, *arguments):
        return self.rows.sweep(*arguments)

    def single(self):
        return None

    def sample(self, count, random):
        return self.rows.sample(count, random)


@pytest.mark.parametrize(
    "loss, weight, most", [(Hinge(), 1.0, 30), (Hinge(), 100.0, 70), (EpsilonInsensitive(0.1), 1.0, 45)]
)
def test_multipliers_save_passes_and_are_not_needed(loss, weight, most):
    n, m = 1500, 100
    y = signs(n) if loss.targets == "signs" else numbers(n) - 5.0
    _, rows, white = rows_of(y, m)
    rows = StoredRows(rows.gram, y, np.full(n, weight))
    with_state = RestrictedRisk(rows, white, Envelope(loss, 8.0), 1.0)
    solution = RestrictedNewton(1e-3).solve(with_state)
    assert solution.status is Status.converged and solution.certificate.iterations <= most
    without = RestrictedRisk(WithoutState(rows), white, Envelope(loss, 8.0), 1.0)
    other = RestrictedNewton(1e-3).solve(without)
    assert other.status is Status.converged
    assert other.certificate.primal == pytest.approx(solution.certificate.primal, rel=2e-3)
    assert other.certificate.iterations > solution.certificate.iterations


def test_where_no_row_has_a_curvature_the_offset_stays_within_reach():
    y = np.ones((50, 1))
    y[0] = -1.0
    _, rows, white = rows_of(y, 10)
    problem = RestrictedRisk(StoredRows(rows.gram, y, np.ones(50)), white, Envelope(Hinge(), 1e-3), 1.0)
    solution = RestrictedNewton(1e-4).solve(problem)
    assert solution.status is Status.converged and abs(solution.value[-1, 0]) < 10


def least_log_loss(x, labels, C):
    """The least objective of functions over one landmark of a linear kernel, whose offsets take up the mean of x."""
    y, centred = np.eye(labels.max() + 1)[labels], x - x.mean()
    k = y.shape[1]

    def objective(g):
        F = centred * g[:k] + g[k:]
        slopes = C * (np.exp(F - logsumexp(F, axis=1, keepdims=True)) - y)
        value = C * (logsumexp(F, axis=1) - (y * F).sum(axis=1)).sum() + 0.5 * (g[:k] ** 2).sum()
        return value, np.concatenate([(centred * slopes).sum(axis=0) + g[:k], slopes.sum(axis=0)])

    return minimize(objective, np.zeros(2 * k), jac=True, method="BFGS", options={"gtol": 1e-4}).fun


@pytest.mark.parametrize(
    "labels, tol", [([0, 1] + [2] * 18, 0.1), ([0, 1] + [2] * 18, 1e-3), ([0, 1, 1, 2, 3] + [4] * 15, 0.1)]
)
def test_no_dual_value_is_above_the_optimum_where_classes_are_rare(labels, tol):
    labels = np.array(labels)
    for seed in (1, 3):
        x = 100.0 + np.random.default_rng(seed).normal(size=(20, 1))
        options = {"approximation": "nystroem", "landmarks": x[:1], "max_iter": 100}
        model = KernelLogisticRegression(C=100.0, kernel="linear", tol=tol, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            certificate = model.fit(x, labels).certificate_
        best = least_log_loss(x, labels, 100.0)
        assert certificate.dual <= best * (1 + 1e-9) and certificate.primal >= best * (1 - 1e-6)
        assert certificate.status is not Status.converged or certificate.primal <= best * (1 + tol)


class Lowered:
    """Squares of residuals, less a constant: the least value of each row is below 0."""

    def __init__(self, by):
        self.by = by

    def value(self, y, f):
        return (f - y) ** 2 - self.by

    def gradient(self, y, f):
        return 2.0 * (f - y)

    def curvature(self, y, f):
        return np.full_like(f, 2.0)


@pytest.mark.parametrize("landmarks", [20, 60])
def test_a_loss_below_zero_has_the_solution_of_the_same_loss_above(landmarks):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 3.0
    options = {
        "alpha": 0.1,
        "kernel": "rbf",
        "fit_intercept": True,
        "approximation": "nystroem",
        "landmarks": X[:landmarks],
    }
    above, below = (KernelMachine(Lowered(by), **options).fit(X, y) for by in (0.0, 5.0))
    np.testing.assert_allclose(below.predict(X), above.predict(X), atol=1e-2)
    certificate = below.certificate_
    assert certificate.status is Status.converged
    assert certificate.primal == pytest.approx(above.certificate_.primal - 300.0, rel=1e-4)
    assert -1e-9 <= certificate.gap <= 1e-2


@pytest.mark.parametrize("criterion, k", [(SoftmaxCriterion(), 4), (Smooth(OwnLoss(Lowered(5.0))), 1)])
def test_balanced_multipliers_are_feasible_and_their_conjugates_are_bounded(criterion, k):
    rng = np.random.default_rng(1)
    n = 50
    labels = np.minimum(rng.integers(0, 3 * k, n), k - 1)
    y = np.eye(k)[labels] if k > 1 else rng.normal(size=(n, 1))
    weights = rng.uniform(0.5, 2.0, n)
    slopes = criterion.slopes(y, 2.0 * rng.normal(size=(n, k)))
    parts, terms = criterion.parts(y, slopes)
    np.testing.assert_allclose(parts.sum(axis=1), slopes.slopes)
    balanced = criterion.balanced(np.einsum("s,spk->pk", weights, parts), np.einsum("s,stk->tk", weights, terms))
    u = np.einsum("spk,pkj->sj", parts, balanced.mixing)
    assert np.abs(weights @ u).max() < 1e-12 * np.abs(weights @ np.abs(u)).max()
    if k > 1:
        p = u + y
        assert p.min() >= 0.0
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
        conjugate = weights @ xlogy(p, p).sum(axis=1)
    else:
        conjugate = weights @ (u * y + u**2 / 4 + 5.0).sum(axis=1)
    assert conjugate <= balanced.conjugate + 1e-9 * abs(conjugate)


@pytest.mark.parametrize("learner", [KernelLogisticRegression, SVC])
def test_jitter_is_no_part_of_the_objective(learner):
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    y = np.sign(np.sin(9.0 * X[:, 0]))
    kernel, Z = RBF(1.0), X[:20]
    model = learner(C=1.0, kernel=kernel, tol=1e-2, approximation="nystroem", landmarks=Z).fit(X, y)
    beta = model.dual_coef_.ravel()
    f = kernel(X, Z) @ beta + model.intercept_
    loss = np.logaddexp(0.0, -y * f) if learner is KernelLogisticRegression else np.maximum(1.0 - y * f, 0.0)
    certificate = model.certificate_
    # Coefficients are so large that beta' K beta itself has few digits.
    assert certificate.primal == pytest.approx(loss.sum() + 0.5 * beta @ kernel(Z) @ beta, rel=1e-4)
    assert certificate.status is Status.converged and 0 <= certificate.relative_gap <= 1e-2
