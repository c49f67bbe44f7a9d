"""Support vector machines with learned weights of kernels: against grids of weights, and as plain machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import SVC, SVR, MultipleKernelSVC, MultipleKernelSVR
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, Linear, Sigmoid, Spectrum
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 2))
BINARY = np.abs(X[:, 1]) + 0.4 * X[:, 0] + 0.2 * RNG.normal(size=100) > 0.7
THREE = np.digitize(X[:, 0] + np.cos(2 * X[:, 1]), [-0.4, 0.6])
NUMBERS = X[:, 0] + np.cos(2 * X[:, 1])
COLUMNS = RBF(1.0).on([0]) + RBF(1.0).on([1])
CASES = [
    pytest.param(MultipleKernelSVC(kernel=COLUMNS, C=2.0), SVC, BINARY, id="two classes"),
    pytest.param(MultipleKernelSVC(kernel=COLUMNS, C=2.0, fit_intercept=False), SVC, BINARY, id="no offset"),
    pytest.param(MultipleKernelSVC(kernel=COLUMNS, C=2.0), SVC, THREE, id="three classes"),
    pytest.param(MultipleKernelSVR(kernel=COLUMNS, C=2.0), SVR, NUMBERS, id="numbers"),
]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "kind", "y"), CASES)
def test_no_weights_of_a_grid_are_better(model: Any, kind: type, y: np.ndarray, weighted: bool) -> None:
    weight = RNG.uniform(0.2, 3.0, 100) if weighted else None
    fitted = clone(model).set_params(tol=1e-4).fit(X, y, weight)
    certificate = fitted.certificate_
    assert certificate.relative_gap <= 1.2e-4
    assert fitted.weights_.sum() == pytest.approx(1.0) and fitted.n_machines_ > 1
    parameters = {name: value for name, value in model.get_params().items() if name in ("C", "fit_intercept")}
    for share in np.linspace(0.0, 1.0, 21):
        kernel = (share + 1e-12) * RBF(1.0).on([0]) + (1.0 - share + 1e-12) * RBF(1.0).on([1])
        other = kind(kernel=kernel, **parameters).fit(X, y, weight).certificate_
        # The lower bound is one for all weights.
        assert other.primal >= certificate.dual - 1e-9
        assert other.primal >= certificate.primal * (1.0 - 2e-4)


@pytest.mark.parametrize(("model", "kind", "y"), CASES)
def test_it_is_the_machine_of_the_weighted_sum(model: Any, kind: type, y: np.ndarray, tmp_path: Any) -> None:
    fitted = clone(model).fit(X, y)
    parameters = {name: value for name, value in model.get_params().items() if name in ("C", "fit_intercept")}
    same = kind(kernel=fitted.kernel_, **parameters).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), same.predict(X))
    np.testing.assert_array_equal(fitted.support_, same.support_)
    mercer.save(fitted, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.weights_, fitted.weights_)
    # A second fit starts anew.
    np.testing.assert_array_equal(fitted.fit(X, y).weights_, again.weights_)


def test_terms_are_compared_by_their_diagonals() -> None:
    one = MultipleKernelSVC(kernel=COLUMNS, C=2.0).fit(X, BINARY)
    scaled = MultipleKernelSVC(kernel=100.0 * RBF(1.0).on([0]) + RBF(1.0).on([1]), C=2.0).fit(X, BINARY)
    np.testing.assert_allclose(one.weights_, scaled.weights_, atol=1e-6)
    assert scaled.term_scales_.tolist() == [100.0, 1.0]


def test_a_term_that_tells_nothing_goes_to_zero() -> None:
    y = np.abs(X[:, 1]) > 0.7
    model = MultipleKernelSVC(kernel=COLUMNS, C=10.0).fit(X, y)
    assert model.weights_[0] < 0.1 and model.score(X, y) > 0.95


def test_one_term_is_a_plain_machine() -> None:
    for kind, plain, y in ((MultipleKernelSVC, SVC, BINARY), (MultipleKernelSVR, SVR, NUMBERS)):
        model, same = kind(kernel="rbf").fit(X, y), plain(kernel="rbf").fit(X, y)
        assert model.weights_.tolist() == [1.0] and model.n_machines_ == 0
        np.testing.assert_array_equal(model.dual_coef_, same.dual_coef_)
        K = RBF(1.0)(X)
        np.testing.assert_array_equal(
            kind(kernel="precomputed").fit(K, y).dual_coef_, plain(kernel="precomputed").fit(K, y).dual_coef_
        )


def test_tables_of_several_kinds_and_paths() -> None:
    words = ["".join(RNG.choice(list("ab"), 8)) for _ in range(60)]
    table = pd.DataFrame({"text": words, "number": RNG.normal(size=60)})
    y = np.array([word.count("ab") > 1 for word in words])
    kernel = Spectrum(2).normalized().on(["text"]) + RBF(1.0).on(["number"])
    model = MultipleKernelSVC(kernel=kernel, C=10.0).fit(table, y)
    assert model.weights_[0] > 0.9 and model.score(table, y) > 0.95
    path = mercer.svm_path(X, BINARY, [0.1, 10.0], estimator=MultipleKernelSVC(kernel=COLUMNS))
    assert path[0].weights_.tolist() != path[1].weights_.tolist()
    alone = MultipleKernelSVC(kernel=COLUMNS, C=10.0).fit(X, BINARY)
    np.testing.assert_array_equal(path[1].weights_, alone.weights_)


def test_rows_of_weight_zero_have_no_effect() -> None:
    weight = np.ones(100)
    weight[:30] = 0.0
    for model, y in ((MultipleKernelSVC(kernel=COLUMNS), BINARY), (MultipleKernelSVR(kernel=COLUMNS), NUMBERS)):
        one = clone(model).fit(X, y, weight)
        two = clone(model).fit(X[30:], y[30:])
        np.testing.assert_allclose(one.weights_, two.weights_, atol=1e-9)
        np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-6, atol=1e-8)


def test_hostile_inputs() -> None:
    with pytest.raises(DataError):
        MultipleKernelSVC(kernel=COLUMNS).fit(X, np.zeros(100))
    with pytest.raises(ParameterError, match="C must be"):
        MultipleKernelSVC(kernel=COLUMNS, C=-1.0).fit(X, BINARY)
    with pytest.raises(ParameterError, match="epsilon must be"):
        MultipleKernelSVR(kernel=COLUMNS, epsilon=-1.0).fit(X, NUMBERS)
    with pytest.raises(ParameterError, match="approximation must be None"):
        MultipleKernelSVR(kernel=COLUMNS, approximation="nystroem").fit(X, NUMBERS)
    with mercer.config(memory=100_000), pytest.raises(MemoryBudgetError, match="terms"):
        MultipleKernelSVC(kernel=RBF(1.0) + Linear()).fit(X, BINARY)


def test_an_indefinite_term_is_reported_once() -> None:
    model = MultipleKernelSVC(kernel=RBF(1.0) + Sigmoid(1.0, offset=-1.0))
    with pytest.warns(MercerWarning) as caught:
        model.fit(X, BINARY)
    assert len([w for w in caught if "positive semi-definite" in str(w.message)]) <= 2
    assert not model.certificate_.convex and model.weights_.sum() == pytest.approx(1.0)
    with pytest.raises(IndefiniteKernelError):
        model.set_params(allow_indefinite=False).fit(X, BINARY)


@pytest.mark.slow
def test_a_search_has_the_scores_of_scikit_learns() -> None:
    grid = {"C": [0.1, 10.0], "kernel": [COLUMNS, RBF(1.0) + Linear()]}
    ours = mercer.GridSearchCV(MultipleKernelSVC(), grid, cv=3).fit(X, BINARY)
    theirs = GridSearchCV(MultipleKernelSVC(), grid, cv=3).fit(X, BINARY)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def test_weights_without_digits_have_not_converged() -> None:
    rows = np.random.default_rng(0).normal(size=(120, 2))
    labels = rows[:, 0] + rows[:, 1] ** 2 > 0.5
    model = MultipleKernelSVC(kernel=RBF(1.0) + RBF(0.3) + Linear())
    with pytest.warns(ConvergenceWarning, match="could be as low as|have a relative duality gap of"):
        model.fit(rows, labels, np.full(120, 1e15))
    certificate = model.certificate_
    assert certificate.relative_gap > 1e-2 and certificate.status is Status.stalled and model.fit_status_ == 1
    assert model.fit(rows, labels).certificate_.status is Status.converged and model.fit_status_ == 0
