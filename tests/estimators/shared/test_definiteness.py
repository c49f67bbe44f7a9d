"""Kernels that are not positive semi-definite: one rule, ``allow_indefinite``, for every learner."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from estimator_table import ALL, CASES, CLASSES, CLUSTERERS, NEIGHBORS, NUMBERS, TRANSFORMERS, X
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessOrdinalRegression,
    GaussianProcessRegressor,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
)
from mercer._errors import IndefiniteKernelError, IndefiniteKernelWarning, ParameterError
from mercer.kernels import NegativeDistance, Sigmoid, from_function

RANDOM = np.random.default_rng(1).normal(size=(90, 90))
# With eigenvalues from about -6 to 100.
MATRIX = X @ X.T - 0.25 * (RANDOM + RANDOM.T)
SIGMOID = Sigmoid(0.5, offset=-0.5)
PROCESSES = (GaussianProcessClassifier, GaussianProcessOrdinalRegression, GaussianProcessRegressor)


def _is_process(case: Any) -> bool:
    return isinstance(case.values[0], PROCESSES)


def _of_norms(case: Any) -> bool:
    """The machine whose penalty is another function of the norm, which means nothing here."""
    return "huber" in str(case.id)


minds = pytest.mark.parametrize(
    ("model", "y"),
    [case for case in [*CASES, *TRANSFORMERS, *CLUSTERERS] if not _is_process(case) and not _of_norms(case)],
)
processes = pytest.mark.parametrize(("model", "y"), [case for case in CASES if _is_process(case)])
inputs = pytest.mark.parametrize(("kernel", "rows"), [(SIGMOID, X), ("precomputed", MATRIX)], ids=["sigmoid", "matrix"])


def _values(model: Any, rows: np.ndarray) -> np.ndarray:
    names = ("decision_function", "predict_proba", "predict", "transform")
    return np.asarray(next(getattr(model, name) for name in names if hasattr(model, name))(rows), dtype=float)


def _with(model: Any, kernel: Any, allowed: Any = "warn") -> Any:
    return clone(model).set_params(kernel=kernel, allow_indefinite=allowed)


def test_the_matrix_is_indefinite() -> None:
    values = np.linalg.eigvalsh(MATRIX)
    assert values[0] < -5 and values[-1] > 80
    assert np.linalg.eigvalsh(SIGMOID(X))[0] < -1


@minds
@inputs
def test_a_warning_and_an_answer_that_says_what_it_is(model: Any, y: np.ndarray, kernel: Any, rows: Any) -> None:
    assert clone(model).allow_indefinite == "warn"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _with(model, kernel).fit(rows, y)
    matches = [w for w in caught if issubclass(w.category, IndefiniteKernelWarning)]
    assert len(matches) == 1
    for words in (type(model).__name__, "indefinite", "allow_indefinite=True to silence this", "False to raise"):
        assert words in str(matches[0].message)
    assert matches[0].filename == __file__
    assert np.isfinite(_values(fitted, rows)).all()
    certificate = getattr(fitted, "certificate_", None)
    if certificate is None or isinstance(model, KernelPCA):
        return
    assert not certificate.convex and "The kernel is indefinite" in certificate.explain()
    if certificate.status.name in ("iteration_limit", "stalled"):
        assert any(issubclass(w.category, ConvergenceWarning) for w in caught)


@minds
@inputs
def test_the_same_in_silence(model: Any, y: np.ndarray, kernel: Any, rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warned = _with(model, kernel).fit(rows, y)
        warnings.simplefilter("error", IndefiniteKernelWarning)
        silent = _with(model, kernel, True).fit(rows, y)
    np.testing.assert_array_equal(_values(silent, rows), _values(warned, rows))


@minds
@inputs
@pytest.mark.parametrize("allowed", [False, np.False_])
def test_errors_on_request(model: Any, y: np.ndarray, kernel: Any, rows: Any, allowed: Any) -> None:
    with pytest.raises(IndefiniteKernelError, match=r"indefinite.*allow_indefinite=True"):
        _with(model, kernel, allowed).fit(rows, y)


@processes
@pytest.mark.parametrize("allowed", ["warn", False])
def test_a_covariance_must_be_one_on_the_data(model: Any, y: np.ndarray, allowed: Any) -> None:
    with pytest.raises(IndefiniteKernelError, match=r"c'Kc = -.*covariance matrix.*allow_indefinite=True to raise the"):
        _with(model, "precomputed", allowed).fit(MATRIX, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        with pytest.raises(IndefiniteKernelError, match=r"indefinite.*allow_indefinite=True"):
            _with(model, SIGMOID, allowed).fit(X, y)


@processes
def test_a_kernel_that_is_a_covariance_on_the_data_is_taken(model: Any, y: np.ndarray) -> None:
    modest = from_function(lambda A, B: np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(-1)), definiteness="indefinite")
    with pytest.warns(IndefiniteKernelWarning, match="is indefinite. It serves as a covariance function as long as"):
        fitted = _with(model, modest).fit(X, y)
    assert fitted.score(X, y) > 0.7
    with pytest.raises(IndefiniteKernelError, match="needs a positive semi-definite kernel"):
        _with(model, modest, False).fit(X, y)


@processes
@inputs
def test_on_request_the_diagonal_is_raised(model: Any, y: np.ndarray, kernel: Any, rows: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = _with(model, kernel, True).fit(rows, y)
    latent = fitted.latent if isinstance(model, GaussianProcessOrdinalRegression) else fitted.predict
    assert len(latent(rows)) == 90


@pytest.mark.parametrize(
    ("model", "gain"),
    [
        (GaussianProcessClassifier(), "raise the diagonal of the matrix as far as needed"),
        (KernelPCA(2), "get the components of its positive part"),
        (KernelPerceptron(), "use it without a guarantee"),
        (SVC(), "get a stationary point without a guarantee"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_the_error_says_what_permission_gives(model: Any, gain: str) -> None:
    with pytest.raises(IndefiniteKernelError, match=f"pass allow_indefinite=True to {gain}\\."):
        _with(model, SIGMOID, False).fit(X, CLASSES)


@pytest.mark.parametrize(("model", "y"), NEIGHBORS)
@inputs
@pytest.mark.parametrize("allowed", ["warn", True, False])
def test_neighbours_never_ask(model: Any, y: np.ndarray, kernel: Any, rows: Any, allowed: Any) -> None:
    # Equal weights, since a matrix does not hold k(x, x) of new rows for others.
    model = clone(model).set_params(weights="uniform")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.shape(_with(model, kernel, allowed).fit(rows, y).predict(rows)) == (90,)


@pytest.mark.parametrize(("model", "y"), ALL)
def test_other_values_are_refused(model: Any, y: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="allow_indefinite must be 'warn', True or False, but is 'maybe'"):
        clone(model).set_params(allow_indefinite="maybe").fit(X, y)


@pytest.mark.filterwarnings("ignore::mercer._errors.IndefiniteKernelWarning")
@inputs
def test_stationary_points_by_their_definition(kernel: Any, rows: np.ndarray) -> None:
    K = MATRIX if kernel == "precomputed" else SIGMOID(X)
    ridge = KernelRidge(0.7, kernel=kernel).fit(rows, NUMBERS)
    np.testing.assert_allclose(K @ ridge.dual_coef_ + 0.7 * ridge.dual_coef_, NUMBERS, atol=1e-9)
    assert ridge.certificate_.status.name == "stationary"
    # No weight of a support vector machine may be moved within its box so that the objective falls at first.
    machine = SVC(kernel=kernel, C=1.5, tol=1e-6).fit(rows, CLASSES)
    sign = np.where(machine.classes_[1] == CLASSES, 1.0, -1.0)
    alpha = np.zeros(90)
    alpha[machine.support_] = machine.dual_coef_[0] * sign[machine.support_]
    margin = sign * (K @ (alpha * sign) + machine.intercept_[0]) - 1.0
    assert (margin[alpha < 1e-9] > -1e-5).all() and (margin[alpha > 1.5 - 1e-9] < 1e-5).all()
    assert (np.abs(margin[(alpha > 1e-9) & (alpha < 1.5 - 1e-9)]) < 1e-5).all()
    tube = SVR(kernel=kernel, epsilon=0.2, tol=1e-6).fit(rows, NUMBERS)
    beta = np.zeros(90)
    beta[tube.support_] = tube.dual_coef_[0]
    error = NUMBERS - K @ beta - tube.intercept_[0]
    assert (np.abs(error[beta == 0]) < 0.2 + 1e-5).all()
    inside = (beta != 0) & (np.abs(beta) < 1.0 - 1e-9)
    np.testing.assert_allclose(error[inside], 0.2 * np.sign(beta[inside]), atol=1e-5)
    smooth = KernelMachine("squared", kernel=kernel, alpha=0.5).fit(rows, NUMBERS)
    c = np.zeros(90)
    c[smooth.support_] = smooth.dual_coef_[0]
    np.testing.assert_allclose(0.5 * c, NUMBERS - K @ c, atol=1e-8)


@pytest.mark.parametrize("alpha", ["loo", "gcv", "evidence"])
def test_leaving_one_out_of_an_indefinite_system(alpha: str) -> None:
    with pytest.warns(IndefiniteKernelWarning):
        model = KernelRidge(alpha, kernel="precomputed", alphas=[3.0, 10.0, 30.0]).fit(MATRIX, NUMBERS)
    assert not model.certificate_.convex
    for row in (0, 44):
        others = np.delete(np.arange(90), row)
        system = MATRIX[np.ix_(others, others)] + model.alpha_ * np.eye(89)
        expected = MATRIX[row, others] @ np.linalg.solve(system, NUMBERS[others])
        assert model.loo_predictions_[row] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_conditionally_positive_kernels_warn_where_nothing_balances_the_weights() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC(kernel=NegativeDistance()).fit(X, CLASSES)
        KernelPCA(2, kernel=NegativeDistance()).fit(X)
    with pytest.warns(IndefiniteKernelWarning, match=r"only conditionally positive.*kernel\.centered\(X\) makes it"):
        SVC(kernel=NegativeDistance(), fit_intercept=False).fit(X, CLASSES)
    with pytest.warns(IndefiniteKernelWarning, match=r"c'Kc = -.*stationary point"):
        SVC(kernel="precomputed", fit_intercept=False).fit(NegativeDistance()(X), CLASSES)


def test_a_precomputed_matrix_that_is_positive_is_examined_and_convex() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (SVC(kernel="precomputed"), KernelMachine("logistic", kernel="precomputed")):
            assert model.fit(X @ X.T, CLASSES).certificate_.convex
        assert KernelRidge(kernel="precomputed").fit(X @ X.T, NUMBERS).certificate_.convex
