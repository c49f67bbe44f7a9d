"""Coordinate descent in the space of explicit features: the solution of the dual problem over the kernel matrix."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from mercer import SVC, SVR, OneClassSVM
from mercer.gram import Gram, operator
from mercer.gram.features import FEATURES_STORAGE
from mercer.kernels import Linear, Polynomial, Spectrum
from mercer.solvers.solution import Status
from mercer.solvers.svm import smo
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.coordinates import CoordinateDescent
from mercer.solvers.svm.smo import SMO

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Y = np.sign(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * RNG.normal(size=N) + 0.4)
DEGENERATE = np.column_stack([X, np.full(N, 2.0), np.zeros(N)])
SPARSE = sp.random_array((N, 60), density=0.1, rng=np.random.default_rng(1), format="csr")
WEIGHTS = RNG.integers(1, 4, N).astype(float)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be solved as many are."""
    monkeypatch.setattr(smo, "WHOLE", 32)
    monkeypatch.setattr(smo, "EXACT", 32)


def descended(problem: BoxQP, tol: float):
    """The answer by explicit features, and the exact one."""
    exact = SMO(tol=1e-9).solve(problem)
    solver = smo._Solver(problem, SMO(tol=tol), smo.Start())
    point = smo.Iterate.begin(problem, None)
    assert solver._by_features(point, tol) and solver.storage == FEATURES_STORAGE
    return point, exact


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("bounds", [np.full(N, 0.5), 0.5 * WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "rows",
    [X, X.astype(np.float32), DEGENERATE, SPARSE, sp.csc_array(SPARSE), np.vstack([X[:150], X[:150]])],
    ids=["dense", "float32", "degenerate", "csr", "csc", "duplicates"],
)
def test_is_the_solution_over_the_kernel_matrix(rows, bounds, intercept, few_rows) -> None:
    labels = Y if rows.shape[0] != 2 * 150 or rows.shape[1] != 5 else np.r_[Y[:150], Y[:150]]
    problem = BoxQP.classification(Gram(Linear(), rows, dtype=np.float64), labels, bounds, intercept=intercept)
    point, exact = descended(problem, 1e-6)
    assert point.violation() <= 1e-6
    assert not intercept or abs(point.beta.sum()) < 1e-9
    assert ((point.beta >= problem.lower) & (point.beta <= problem.upper)).all()
    assert point.dual() == pytest.approx(exact.certificate.dual, rel=1e-8)
    np.testing.assert_allclose(point.F, exact.value.gradient, atol=2e-4)
    if intercept:
        assert point.offsets()[0] == pytest.approx(exact.value.offset, abs=1e-4)


def test_a_tube_and_a_sum_that_is_not_zero(few_rows) -> None:
    gram = Gram(Linear(), X)
    regression = BoxQP(gram, X[:, 0] + 0.1 * Y, np.full(N, -0.5), np.full(N, 0.5), tube=0.05)
    one_class = BoxQP(gram, np.zeros(N), np.zeros(N), np.ones(N), totals=(60.0,))
    for problem in (regression, one_class):
        point, exact = descended(problem, 1e-3)
        assert point.violation() <= 1e-3 and point.beta.sum() == pytest.approx(problem.totals[0], abs=1e-8)
        assert point.dual() == pytest.approx(exact.certificate.dual, rel=1e-3)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_every_pair_of_classes_of_many_rows(is_sparse, monkeypatch: pytest.MonkeyPatch) -> None:
    centers = np.repeat([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]], 1600, axis=0)
    rows = centers + 0.8 * RNG.normal(size=centers.shape)
    rows, labels = sp.csr_array(rows) if is_sparse else rows, np.repeat(["a", "b", "c"], 1600)
    by_features = SVC(kernel="linear", C=0.1, tol=1e-4).fit(rows, labels)
    assert all(certificate.storage == FEATURES_STORAGE for certificate in by_features.certificates_)
    monkeypatch.setattr(smo._Solver, "_by_features", lambda *_: False)
    by_matrix = SVC(kernel="linear", C=0.1, tol=1e-4).fit(rows, labels)
    np.testing.assert_allclose(by_features.decision_function(rows), by_matrix.decision_function(rows), atol=2e-3)
    assert by_features.certificate_.primal == pytest.approx(by_matrix.certificate_.primal, rel=1e-5)


def test_many_rows_of_text_are_solved_in_their_columns_as_by_liblinear() -> None:
    rows = sp.random_array((2500, 50), density=0.1, rng=np.random.default_rng(2), format="csr")
    labels = np.where(rows @ RNG.normal(size=50) + 0.2 * RNG.normal(size=2500) > 0, 1, -1)
    model = SVC(kernel="linear", tol=1e-4).fit(rows, labels)
    assert model.certificate_.storage == FEATURES_STORAGE and model.certificate_.status is Status.converged
    other = LinearSVC(loss="hinge", tol=1e-6, max_iter=20_000, intercept_scaling=100.0, random_state=0).fit(
        rows, labels
    )

    def objective(w, b):
        return 0.5 * w @ w + np.maximum(0.0, 1.0 - labels * (rows @ w + b)).sum()

    ours = objective(model.coef_.toarray().ravel(), model.intercept_[0])
    assert ours == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert ours <= objective(other.coef_.ravel(), other.intercept_[0]) * (1.0 + 1e-5)


def test_other_machines_and_counted_features_of_many_rows() -> None:
    rows = RNG.normal(size=(2200, 4))
    svr = SVR(kernel="linear", tol=1e-4).fit(rows, rows[:, 0])
    assert svr.certificate_.storage == FEATURES_STORAGE and svr.certificate_.kkt_violation <= 1e-4
    np.testing.assert_allclose(svr.coef_.ravel(), [0.9, 0.0, 0.0, 0.0], atol=0.12)
    assert OneClassSVM(kernel="linear", nu=0.3).fit(rows).certificate_.kkt_violation <= 1e-3
    words = ["".join(RNG.choice(list("ab"), 6)) for _ in range(3200)]
    strings = SVC(kernel=Spectrum(2), C=0.1).fit(words, [word.count("a") > 3 for word in words])
    assert strings.score(words, [word.count("a") > 3 for word in words]) > 0.9


def test_steps_after_the_last_pass_go_on_over_the_kernel_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A descent that does not reach the tolerance hands its weights on."""
    monkeypatch.setattr("mercer.solvers.svm.coordinates._MOST_PASSES", 2)
    rows = RNG.normal(size=(2200, 3))
    labels = np.where(rows[:, 0] + 0.3 * RNG.normal(size=2200) > 0, 1, -1)
    model = SVC(kernel="linear", tol=1e-5).fit(rows, labels)
    assert model.certificate_.storage != FEATURES_STORAGE
    assert model.certificate_.status is Status.converged and model.certificate_.kkt_violation <= 1e-5


def test_features_are_not_held_by_the_steps_after_the_descent(few_rows, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def features_of_rows(*arguments):
        features = features_of(*arguments)
        made.append(weakref.ref(features))
        return features

    features_of = operator.features_of_rows
    monkeypatch.setattr(operator, "features_of_rows", features_of_rows)
    problem = BoxQP.classification(Gram(2.0 * Linear(), X), Y, np.full(N, 0.5))
    solver, point = smo._Solver(problem, SMO(tol=1e-6), smo.Start()), smo.Iterate.begin(problem, None)
    assert solver._by_features(point, 1e-6)
    gc.collect()
    assert len(made) == 1 and made[0]() is None


def test_more_dense_features_than_pay_are_not_made(few_rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def features(*_: object) -> None:
        raise AssertionError("an array that is not used")

    monkeypatch.setattr("mercer.kernels.vector.dot.polynomial_features", features)
    problem = BoxQP.classification(Gram(Polynomial(3), X), Y, np.full(N, 0.5))
    solver, point = smo._Solver(problem, SMO(), smo.Start()), smo.Iterate.begin(problem, None)
    # 56 monomials: more than an eighth of 300 rows, and fewer than these.
    assert not solver._by_features(point, 1e-3)


def test_the_descent_starts_from_weights(few_rows) -> None:
    problem = BoxQP.classification(Gram(Linear(), X), Y, np.full(N, 0.5))
    exact = SMO(tol=1e-9).solve(problem)
    point = smo.Iterate.begin(problem, exact.value.beta)
    point.F = exact.value.gradient.copy()
    features = problem.gram.explicit_features(N)
    CoordinateDescent(features, 1e-5, smo.Progress(None, "passes")).solve(point, np.zeros(1))
    assert point.steps <= 3 * N and point.violation() <= 1e-5
