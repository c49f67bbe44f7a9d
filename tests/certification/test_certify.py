"""Certificates of given coefficients, beside objectives that are computed naively."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_ridge
import sklearn.svm
from scipy.special import entr, expit, log_softmax, softmax
from sklearn.base import BaseEstimator, clone

from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelMachine,
    KernelRidge,
    NuSVC,
    OneClassSVM,
    certify,
    losses,
)
from mercer._errors import DataError, ParameterError
from mercer.estimators.shared.given_coefficients import CertifiesCoefficients
from mercer.kernels import RBF, Linear, Sigmoid
from mercer.solvers.solution import Certificate, Status

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=60)
TWO = np.where(X[:, 0] + 0.4 * RNG.normal(size=60) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.4 * RNG.normal(size=60), [-0.5, 0.5])
WEIGHT = RNG.uniform(0.5, 2.0, size=60)
K = RBF(1.0)(X)


def over_all(model: Any) -> np.ndarray:
    """The coefficients of all rows, (outputs, n)."""
    A = model.dual_coef_
    if not hasattr(model, "support_"):
        return np.atleast_2d(A)
    whole = np.zeros((len(A), 60))
    whole[:, model.support_] = A
    return whole


def hinge_values(a: np.ndarray, b: float, signs: np.ndarray, C: np.ndarray, matrix: Any = K) -> tuple[float, float]:
    """Primal and dual objective of a support vector machine of two classes."""
    square = sum(a[i] * a[j] * matrix[i, j] for i in range(len(a)) for j in range(len(a)))
    f = matrix @ a + b
    return 0.5 * square + sum(C * np.maximum(0.0, 1.0 - signs * f)), np.abs(a).sum() - 0.5 * square


MODELS = [
    pytest.param(SVC(C=2.0, kernel=RBF(1.0), tol=1e-8), TWO, id="SVC"),
    pytest.param(SVC(C=2.0, kernel=RBF(1.0), tol=1e-8, class_weight={0: 3.0}), THREE, id="SVC, three classes"),
    pytest.param(SVC(C=2.0, kernel=RBF(1.0), tol=1e-8, fit_intercept=False), TWO, id="SVC, no offset"),
    pytest.param(SVR(C=2.0, kernel=RBF(1.0), tol=1e-8), Y, id="SVR"),
    pytest.param(SVR(kernel=RBF(1.0), tol=1e-8, fit_intercept=False), Y, id="SVR, no offset"),
    pytest.param(OneClassSVM(nu=0.3, kernel=RBF(1.0), tol=1e-8), None, id="OneClassSVM"),
    pytest.param(KernelRidge(0.5, kernel=RBF(1.0)), Y, id="KernelRidge"),
    pytest.param(KernelRidge([0.5, 2.0], kernel=RBF(1.0)), np.column_stack([Y, X[:, 1]]), id="KernelRidge, two"),
    pytest.param(KernelLogisticRegression(C=2.0, kernel=RBF(1.0)), TWO, id="KernelLogisticRegression"),
    pytest.param(KernelLogisticRegression(C=2.0, kernel=RBF(1.0)), THREE, id="KernelLogisticRegression, three"),
    pytest.param(
        KernelLogisticRegression(kernel=RBF(1.0), fit_intercept=False), THREE, id="KernelLogisticRegression, no offset"
    ),
    pytest.param(KernelMachine("hinge", alpha=0.5, kernel=RBF(1.0)), TWO, id="hinge"),
    pytest.param(KernelMachine("logistic", alpha=0.5, kernel=RBF(1.0), fit_intercept=True), THREE, id="logistic"),
    pytest.param(KernelMachine("huber", "norm", kernel=RBF(1.0), fit_intercept=True), Y, id="huber, norm"),
    pytest.param(KernelMachine("squared", losses.NormPower(3.0), kernel=RBF(1.0)), Y, id="squared, power"),
    pytest.param(KernelMachine("squared", losses.Ball(1.5), kernel=RBF(1.0)), Y, id="squared, ball"),
]
every_model = pytest.mark.parametrize(("model", "y"), MODELS)
every_weight = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])


@every_model
@every_weight
def test_a_converged_fit(model: Any, y: Any, weight: Any) -> None:
    fitted = clone(model).fit(X, y, sample_weight=weight)
    certificate, own = certify(fitted, X, y, sample_weight=weight), fitted.certificate_
    size = max(abs(own.primal), 1.0)
    assert certificate.status is Status.given and certificate.convex
    # The one-class machine lowers rho by up to its tolerance for each row.
    assert abs(certificate.primal - own.primal) <= 1e-6 * size and abs(certificate.dual - own.dual) <= 1e-5 * size
    assert -1e-12 * size <= certificate.gap <= own.gap + 1e-6 * size
    # The same as coefficients for the parameters alone.
    given = {"dual_coef": fitted.dual_coef_, "support": getattr(fitted, "support_", None)}
    alone = certify(clone(model), X, y, intercept=getattr(fitted, "intercept_", None), sample_weight=weight, **given)
    assert (alone.primal, alone.dual) == (certificate.primal, certificate.dual)
    # No offset is better than the best one.
    best = certify(clone(model), X, y, sample_weight=weight, **given)
    assert best.primal <= certificate.primal + 1e-12 * size and best.primal >= own.dual - 1e-9 * size


@every_model
def test_no_forged_coefficients_have_a_small_gap(model: Any, y: Any) -> None:
    fitted = clone(model).fit(X, y)
    own, true = fitted.certificate_, fitted.dual_coef_
    for forged in (np.zeros_like(true), 3.0 * true, -true, np.roll(true, 1, axis=-1 if true.ndim > 1 else 0)):
        certificate = certify(clone(model), X, y, dual_coef=forged, support=getattr(fitted, "support_", None))
        # The bounds hold whatever is given, and the true distance is within its bound.
        assert certificate.dual <= own.primal * (1 + 1e-9) + 1e-9
        assert certificate.primal >= own.dual * (1 - 1e-9) - 1e-9
        assert certificate.gap > 1e3 * max(own.gap, 1e-9)
        if "distance" in certificate.violations and not isinstance(model, KernelRidge):
            D = over_all(fitted).copy()
            D[:, fitted.support_ if hasattr(fitted, "support_") else np.arange(60)] -= np.atleast_2d(forged)
            if len(D) == 1:
                assert np.sqrt(D[0] @ K @ D[0]) <= certificate.violations["distance"] * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_naive_objectives_of_two_classes(scale: float) -> None:
    fitted = SVC(C=2.0, kernel=RBF(1.0)).fit(X, TWO, sample_weight=WEIGHT)
    a, b, signs = scale * over_all(fitted)[0], float(fitted.intercept_[0]), np.where(TWO == "yes", 1.0, -1.0)
    primal, dual = hinge_values(a, b, signs, 2.0 * WEIGHT)
    certificate = certify(fitted, X, TWO, dual_coef=a, intercept=b, sample_weight=WEIGHT)
    np.testing.assert_allclose([certificate.primal, certificate.dual], [primal, dual], rtol=1e-9)
    # The offset that is taken where none is given has the least objective of a grid.
    least = min(hinge_values(a, c, signs, 2.0 * WEIGHT)[0] for c in np.linspace(b - 1.0, b + 1.0, 101))
    assert certify(fitted, X, TWO, dual_coef=a, intercept=None, sample_weight=WEIGHT).primal <= primal + 1e-12
    best = certify(SVC(C=2.0, kernel=RBF(1.0)), X, TWO, dual_coef=a, sample_weight=WEIGHT)
    assert best.primal <= least + 1e-9


def test_naive_objectives_of_pairs() -> None:
    fitted = SVC(C=1.0, kernel=RBF(1.0)).fit(X, THREE)
    A, primal, dual = over_all(fitted), 0.0, 0.0
    for number, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.flatnonzero((i == THREE) | (j == THREE))
        a = np.array([A[j - 1, r] if THREE[r] == i else A[i, r] for r in rows])
        signs = np.where(THREE[rows] == i, 1.0, -1.0)
        p, d = hinge_values(a, fitted.intercept_[number], signs, np.ones(len(rows)), K[np.ix_(rows, rows)])
        primal, dual = primal + p, dual + d
    certificate = certify(fitted, X, THREE)
    np.testing.assert_allclose([certificate.primal, certificate.dual], [primal, dual], rtol=1e-9)


def test_naive_objectives_of_a_tube_and_of_one_class() -> None:
    fitted = SVR(C=2.0, kernel=RBF(1.0), epsilon=0.2).fit(X, Y)
    a, b = 0.9 * over_all(fitted)[0], 0.1
    f = K @ a + b
    certificate = certify(fitted, X, Y, dual_coef=a, intercept=b)
    primal = 0.5 * a @ K @ a + 2.0 * np.maximum(np.abs(Y - f) - 0.2, 0.0).sum()
    np.testing.assert_allclose(certificate.primal, primal, rtol=1e-9)
    np.testing.assert_allclose(certificate.dual, Y @ a - 0.2 * np.abs(a).sum() - 0.5 * a @ K @ a, rtol=1e-9)
    one = OneClassSVM(nu=0.3, kernel=RBF(1.0)).fit(X)
    a, rho = over_all(one)[0], float(one.offset_[0])
    primal = 0.5 * a @ K @ a + np.maximum(rho - K @ a, 0.0).sum() - rho * 0.3 * 60
    certificate = certify(one, X)
    np.testing.assert_allclose([certificate.primal, certificate.dual], [primal, -0.5 * a @ K @ a], rtol=1e-9)


def test_naive_objectives_of_ridge() -> None:
    model, c = KernelRidge(0.5, kernel=RBF(1.0)), RNG.normal(size=60)
    certificate = certify(model, X, Y, dual_coef=c, sample_weight=WEIGHT)

    def objective(c: np.ndarray) -> float:
        return float(WEIGHT @ (Y - K @ c) ** 2 + 0.5 * c @ K @ c)

    best = np.linalg.solve(K + 0.5 * np.diag(1.0 / WEIGHT), Y)
    residual = np.sqrt(WEIGHT) * (Y - K @ c - 0.5 * c / WEIGHT)
    np.testing.assert_allclose(certificate.primal, objective(c), rtol=1e-9)
    np.testing.assert_allclose(certificate.gap, residual @ residual, rtol=1e-6)
    assert certificate.dual <= objective(best) <= certificate.primal
    distance = np.sqrt((c - best) @ K @ (c - best))
    np.testing.assert_allclose(
        certificate.kkt_violation, np.linalg.norm(residual) / np.linalg.norm(np.sqrt(WEIGHT) * Y)
    )
    assert (
        distance <= certificate.violations["distance"] == pytest.approx(np.linalg.norm(residual) / (2 * np.sqrt(0.5)))
    )


def test_naive_objectives_of_log_loss() -> None:
    A, b = 0.1 * RNG.normal(size=(3, 60)), np.array([0.3, 0.0, -0.1])
    model = KernelLogisticRegression(C=2.0, kernel=RBF(1.0), fit_intercept=False)
    F = K @ A.T
    primal = -2.0 * log_softmax(F, axis=1)[np.arange(60), THREE].sum() + 0.5 * np.einsum("ki,ij,kj->", A, K, A)
    p = softmax(F, axis=1)
    G = 2.0 * (np.eye(3)[THREE] - p)
    dual = 2.0 * entr(p).sum() - 0.5 * np.einsum("ik,ij,jk->", G, K, G)
    certificate = certify(model, X, THREE, dual_coef=A)
    np.testing.assert_allclose([certificate.primal, certificate.dual], [primal, dual], rtol=1e-9)
    assert certificate.violations["sum"] == pytest.approx(np.abs(A.sum(axis=0)).max())
    with_offset = certify(model.set_params(fit_intercept=True), X, THREE, dual_coef=A, intercept=b)
    primal = -2.0 * log_softmax(F + b, axis=1)[np.arange(60), THREE].sum() + 0.5 * np.einsum("ki,ij,kj->", A, K, A)
    np.testing.assert_allclose(with_offset.primal, primal, rtol=1e-9)


def test_naive_objectives_of_a_machine() -> None:
    c, signs = RNG.normal(size=60), np.where(TWO == "yes", 1.0, -1.0)
    certificate = certify(KernelMachine("logistic", alpha=0.5, kernel=RBF(1.0)), X, TWO, dual_coef=c)
    f = K @ c
    np.testing.assert_allclose(certificate.primal, np.logaddexp(0.0, -signs * f).sum() + 0.25 * c @ K @ c, rtol=1e-9)
    p = expit(-signs * f)
    u = -signs * p
    assert certificate.dual >= (entr(p) + entr(1.0 - p)).sum() - u @ K @ u / (2 * 0.5) - 1e-9


@pytest.mark.parametrize(
    ("peer", "y"),
    [
        (sklearn.svm.SVC(C=2.0, tol=1e-6), TWO),
        (sklearn.svm.SVC(kernel="poly", degree=2, tol=1e-6), THREE),
        (sklearn.svm.SVC(kernel="linear", class_weight="balanced", tol=1e-6), THREE),
        (sklearn.svm.SVR(tol=1e-6), Y),
        (sklearn.svm.OneClassSVM(nu=0.2, tol=1e-6), None),
        (sklearn.kernel_ridge.KernelRidge(0.1, kernel="rbf"), Y),
    ],
)
def test_models_of_scikit_learn(peer: Any, y: Any) -> None:
    fitted = clone(peer).fit(X, y)
    certificate = certify(fitted, X, y)
    assert certificate.gap <= 1e-4 * abs(certificate.primal) and certificate.violations.get("box", 0.0) <= 1e-12
    if isinstance(peer, sklearn.svm.SVC | sklearn.svm.SVR):
        sparse = clone(peer).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(certify(sparse, sp.csr_matrix(X), y).primal, certificate.primal, rtol=1e-4)
        short = clone(peer).set_params(max_iter=10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            early = short.fit(X, y)
        assert certify(early, X, y).gap > 100 * certificate.gap


def test_coefficients_that_are_not_feasible() -> None:
    a = np.where(TWO == "yes", 1.5, -1.0)
    certificate = certify(SVC(C=1.0, kernel=RBF(1.0)), X, TWO, dual_coef=a)
    assert certificate.violations["box"] == 0.5
    assert certificate.violations["sum"] == abs(a.sum()) and certificate.kkt_violation >= certificate.violations["sum"]
    best = SVC(C=1.0, kernel=RBF(1.0)).fit(X, TWO).certificate_
    assert certificate.dual <= best.primal and certificate.primal >= best.dual
    assert "given" in certificate.explain() and "still be gained" in certificate.explain()


def test_an_indefinite_kernel_has_no_bound() -> None:
    model = SVC(kernel=Sigmoid(1.0), allow_indefinite=True).fit(X, TWO)
    assert not certify(model, X, TWO).convex


def test_the_model_is_not_changed() -> None:
    model = KernelRidge("loo", kernel="rbf").fit(X, Y)
    before = dict(vars(model))
    assert certify(model, X, Y).kkt_violation < 1e-9
    assert vars(model).keys() == before.keys() and model.alpha == "loo"
    with pytest.raises(ParameterError, match=r"alpha='loo'.*pass the number"):
        certify(clone(model), X, Y, dual_coef=np.zeros(60))


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (SVC(), {}, ParameterError, r"no coefficients to certify.*not fitted"),
        (SVC(), {"dual_coef": np.zeros(59)}, DataError, r"shape \(1, 60\).*has the shape \(1, 59\).*Pass support"),
        (SVC(), {"dual_coef": np.zeros((2, 60))}, DataError, r"has the shape \(2, 60\)"),
        (SVC(), {"dual_coef": np.full(60, np.nan)}, DataError, r"must be finite.*row 0, column 0 is nan"),
        (SVC(), {"dual_coef": ["a"] * 60}, DataError, "dual_coef must be numbers"),
        (SVC(), {"dual_coef": [1.0], "support": [60]}, DataError, "names row 60, but X has only the rows 0 to 59"),
        (SVC(), {"dual_coef": [1.0], "support": [-1]}, DataError, "names row -1"),
        (SVC(), {"dual_coef": [1.0, 1.0], "support": [4, 4]}, DataError, "names a row twice"),
        (SVC(), {"dual_coef": [1.0], "support": [0.5]}, DataError, "whole numbers"),
        (SVC(), {"support": [0]}, ParameterError, "dual_coef is missing"),
        (SVC(), {"dual_coef": np.zeros(60), "intercept": np.inf}, DataError, "1 finite number"),
        (SVC(), {"dual_coef": np.zeros(60), "intercept": [0.0, 1.0]}, DataError, "1 finite number"),
        (SVC(fit_intercept=False), {"dual_coef": np.zeros(60), "intercept": 1.0}, ParameterError, "no offset"),
        (SVC(C=np.inf), {"dual_coef": np.zeros(60)}, ParameterError, "pass a finite C"),
        (SVC(), {"dual_coef": np.ones(60), "sample_weight": np.r_[0.0, np.ones(59)]}, DataError, "row 0 has"),
        (
            NuSVC(),
            {"dual_coef": np.zeros(60)},
            TypeError,
            r"takes a KernelLog.*, SVC, SVR, or .*scikit-learn.*got NuSVC\(\)",
        ),
        (GaussianProcessRegressor(), {}, TypeError, "certificate_"),
        (SVC, {}, TypeError, "the class SVC"),
        (None, {}, TypeError, "got None"),
        (sklearn.svm.NuSVC(), {}, TypeError, "got NuSVC"),
    ],
)
def test_what_cannot_be_certified(model: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        certify(model, X, TWO, **options)


def test_precomputed_matrices_and_objects() -> None:
    model = SVC(kernel=RBF(1.0), tol=1e-8).fit(X, TWO)
    given = SVC(kernel="precomputed", tol=1e-8).fit(K, TWO)
    np.testing.assert_allclose(certify(given, K, TWO).primal, certify(model, X, TWO).primal, rtol=1e-6)
    rows = X.astype(np.float32)
    single = KernelRidge(0.5, kernel=Linear()).fit(rows, Y)
    assert certify(single, rows, Y).kkt_violation < 1e-6


class OwnLearner(BaseEstimator):
    """A user-defined learner, which evaluates ridge regression at given coefficients."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def certificate_of(self, coefficients: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        return KernelRidge(kernel=RBF(1.0)).certificate_of(coefficients, X, y, sample_weight)


def test_any_learner_with_the_method_is_certified() -> None:
    assert isinstance(OwnLearner(), CertifiesCoefficients) and isinstance(SVC(), CertifiesCoefficients)
    numbers = X[:, 0]
    c = KernelRidge(kernel=RBF(1.0)).fit(X, numbers).dual_coef_
    own, ours = (certify(model, X, numbers, dual_coef=c) for model in (OwnLearner(), KernelRidge(kernel=RBF(1.0))))
    assert (own.primal, own.dual) == (ours.primal, ours.dual) and own.relative_gap < 1e-12
