"""``probability=True``: Platt's sigmoids from internal folds, and the coupling of the pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

from mercer import SVC, NuSVC, load, save, svm_path
from mercer._errors import ParameterError
from mercer.estimators.svm.left_out import FOLDS, balanced, deal_folds, values_of_rows_left_out
from mercer.estimators.svm.pair_probabilities import DEPRECATED, couple, fit_sigmoid
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Spectrum

X, TWO = make_classification(400, 5, flip_y=0.15, random_state=0)
NEW, NEW_TWO = make_classification(400, 5, flip_y=0.15, random_state=0, shuffle=False)
IRIS, THREE = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter|Attribute `prob", FutureWarning)
        yield


@pytest.mark.parametrize("kind", ["SVC", "NuSVC"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_probabilities_are_as_good_as_those_of_sklearn(kind: str, data: str) -> None:
    rows, labels = (X, TWO) if data == "two" else (IRIS[::2], THREE[::2])
    new, truth = (NEW, NEW_TWO) if data == "two" else (IRIS[1::2], THREE[1::2])
    options = {"probability": True, "random_state": 0, "gamma": 0.3}
    ours = {"SVC": SVC, "NuSVC": NuSVC}[kind](**options).fit(rows, labels)
    theirs = getattr(svm, kind)(**options).fit(rows, labels)
    p = ours.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    # The folds are dealt otherwise, which alone moves the loss by some percent.
    assert log_loss(truth, p) < 1.1 * log_loss(truth, theirs.predict_proba(new))
    np.testing.assert_array_equal(np.log(p), ours.predict_log_proba(new))
    assert ours.probA_.shape == ours.probB_.shape == theirs.probA_.shape
    assert (ours.probA_ < 0).all() and (theirs.probA_ < 0).all()


@pytest.mark.parametrize("machine", [SVC(), SVC(C=100.0), NuSVC(nu=0.3), SVC(kernel="linear", fit_intercept=False)])
def test_the_more_probable_of_two_classes_is_predicted(machine: Any) -> None:
    # Unequal classes, where the threshold of the sigmoid alone is not that of the classifier.
    rows = np.r_[np.flatnonzero(TWO == 0), np.flatnonzero(TWO == 1)[:60]]
    names = np.array(["no", "yes"])[TWO[rows]]
    model = clone(machine).set_params(probability=True, random_state=1).fit(X[rows], names)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert (p.max(axis=1) > 0.5).all()


def test_with_class_weights_the_sigmoid_alone_decides() -> None:
    model = SVC(class_weight={1: 8.0}, probability=True, random_state=0).fit(X, TWO)
    f = -model.decision_function(X)
    A, B = model.probA_[0], model.probB_[0]
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], 1.0 / (1.0 + np.exp(A * f + B)), atol=1e-12)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] != model.predict(X)).any()


def test_a_seed_decides_the_folds_alone() -> None:
    models = [SVC(probability=True, random_state=seed).fit(IRIS, THREE) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(models[0].probA_, models[1].probA_)
    np.testing.assert_array_equal(models[0].predict_proba(IRIS), models[1].predict_proba(IRIS))
    assert (models[0].probA_ != models[2].probA_).any()
    np.testing.assert_array_equal(models[0].dual_coef_, models[2].dual_coef_)
    one = SVC(probability=True, random_state=3, n_jobs=1).fit(IRIS, THREE)
    np.testing.assert_array_equal(one.predict_proba(IRIS), models[0].predict_proba(IRIS))


@pytest.mark.parametrize("machine", [SVC(C=3.0), NuSVC(nu=0.1), SVC(C=np.inf, gamma=5.0)])
def test_values_of_rows_left_out_are_those_of_fits_without_them(machine: Any) -> None:
    rows = np.argsort(THREE, kind="stable")[20:]
    data, labels = IRIS[rows], THREE[rows]
    kernel = RBF(1.0 if machine.get_params().get("C") != np.inf else 0.2)
    model = clone(machine).set_params(kernel=kernel, random_state=0)
    folds = deal_folds(labels, np.random.RandomState(0))
    calls = {}

    class Spy(type(machine)):  # type: ignore[misc]
        def _learn_probabilities(self, gram: Any, codes: Any, weight: Any, solve: Any) -> None:
            calls["values"] = values_of_rows_left_out(gram, codes, folds, solve).values

    Spy(**model.get_params(deep=False) | {"probability": True}).fit(data, labels)
    for fold in range(FOLDS):
        out = folds == fold
        part = model.set_params(decision_function_shape="ovo").fit(data[~out], labels[~out])
        of_pairs = part.decision_function(data[out])
        for code, numbers in enumerate(([0, 1], [0, 2], [1, 2])):
            mine = labels[out] == code
            np.testing.assert_allclose(calls["values"][:, out][:, mine].T, of_pairs[mine][:, numbers], atol=1e-6)


def test_the_fit_and_the_folds_of_small_pairs_share_one_evaluated_matrix() -> None:
    arrays: dict[str, list[Any]] = {"fit": [], "folds": []}

    class Spy(SVC):
        def _solve(self, gram: Any, *others: Any) -> Any:
            arrays["fit"].append(gram)
            return super()._solve(gram, *others)

        def _learn_probabilities(self, gram: Any, *others: Any) -> None:
            arrays["folds"].append(gram)
            super()._learn_probabilities(gram, *others)

    # Rows that repeat are merged for the fit alone.
    rows = IRIS + 0.01 * np.random.default_rng(0).normal(size=IRIS.shape)
    model = Spy(probability=True, random_state=0).fit(rows, THREE)
    assert arrays["fit"] == arrays["folds"] and isinstance(arrays["fit"][0], PrecomputedGram)
    np.testing.assert_allclose(
        arrays["fit"][0].matrix, model.kernel_(rows[np.argsort(THREE, kind="stable")]), rtol=1e-12
    )
    # Large problems read few of the rows, and folds of two classes are most often such.
    Spy(probability=True, random_state=0).fit(X, TWO)
    Spy().fit(rows, THREE)
    assert not any(isinstance(gram, PrecomputedGram) for gram in arrays["fit"][1:])


def test_a_class_of_one_row_is_decided_for_the_others() -> None:
    data, labels = np.r_[IRIS[:6], IRIS[50:56], IRIS[149:]], np.r_[np.zeros(6), np.ones(6), 2.0]
    model = SVC(probability=True, random_state=0).fit(data, labels)
    assert np.isfinite(model.predict_proba(data)).all()
    assert model.predict_proba(data)[0].argmax() == 0
    alone = SVC(probability=True, random_state=0).fit(data[[0, 12]], [0, 1])
    np.testing.assert_allclose(alone.predict_proba(data[[0, 12]]).sum(axis=1), 1.0)
    weighted = NuSVC(nu=0.1, class_weight={1.0: 3.0}, probability=True, random_state=0).fit(data, labels)
    assert np.isfinite(weighted.predict_proba(data)).all()


def test_methods_appear_and_disappear_with_the_parameter() -> None:
    for missing in (False, "deprecated"):
        model = SVC(probability=missing).fit(X, TWO)
        assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
        with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as error:
            _ = model.predict_proba
        assert "calibrated" in str(error.value.__cause__)
        assert len(model.probA_) == len(model.probB_) == 0
    model.probability = True
    assert hasattr(model, "predict_proba") and hasattr(SVC(probability=True), "predict_log_proba")
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        model.predict_proba(X)
    with pytest.raises(NotFittedError):
        SVC(probability=True).predict_proba(X)
    with pytest.raises(AttributeError):
        _ = SVC(probability=True).probA_
    with pytest.raises(ParameterError, match="probability must be True, False or 'deprecated'"):
        SVC(probability="yes").fit(X, TWO)
    with pytest.raises(ParameterError, match="random_state"):
        SVC(probability=True, random_state="one").fit(X, TWO)


@pytest.mark.skipif(not DEPRECATED, reason="the installed scikit-learn has not deprecated the parameter")
@pytest.mark.parametrize("machine", [SVC, NuSVC])
@pytest.mark.parametrize("value", [True, False])
def test_the_parameter_is_deprecated_where_sklearn_deprecates_it(machine: Any, value: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = machine(probability=value).fit(X, TWO)
        machine().fit(X, TWO)
    assert [w.category for w in caught] == [FutureWarning]
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match="Attribute `probA_` was deprecated"):
        _ = model.probA_


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.2)])
@pytest.mark.parametrize("labels", [THREE, THREE > 0])
def test_saved_and_loaded_with_the_same_bits(machine: Any, labels: Any, tmp_path: Path) -> None:
    for rows in (IRIS, sp.csr_array(IRIS)):
        model = clone(machine).set_params(probability=True, random_state=0).fit(rows, labels)
        save(model, tmp_path / "model.mercer")
        loaded = load(tmp_path / "model.mercer")
        np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(loaded.probB_, model.probB_)


def test_other_forms_of_the_kernel_give_the_same_probabilities() -> None:
    expected = SVC(kernel=RBF(1.0), probability=True, random_state=0).fit(IRIS, THREE).predict_proba(IRIS)
    K = RBF(1.0)(IRIS)
    given = SVC(kernel="precomputed", probability=True, random_state=0).fit(K, THREE)
    np.testing.assert_allclose(given.predict_proba(K), expected, atol=1e-6)
    sparse = SVC(kernel=RBF(1.0), probability=True, random_state=0).fit(sp.csr_array(IRIS), THREE)
    np.testing.assert_allclose(sparse.predict_proba(IRIS), expected, atol=1e-6)


def test_rows_that_are_not_vectors() -> None:
    words = ["abab", "baba", "abba", "aabb", "bbaa", "babb", "xyxy", "yxyx", "xyyx", "xxyy", "yyxx", "yxyy"]
    model = SVC(kernel=Spectrum(2), probability=True, random_state=0).fit(words, [0] * 6 + [1] * 6)
    np.testing.assert_array_equal(model.predict_proba(words).argmax(axis=1), [0] * 6 + [1] * 6)


def test_rows_of_weight_zero_change_nothing() -> None:
    weight = np.r_[np.ones(300), np.zeros(100)]
    weighted = SVC(probability=True, random_state=0, gamma=0.2).fit(X, TWO, weight)
    without = SVC(probability=True, random_state=0, gamma=0.2).fit(X[:300], TWO[:300])
    np.testing.assert_allclose(weighted.predict_proba(NEW), without.predict_proba(NEW), atol=1e-7)


def test_every_model_of_a_path_has_probabilities() -> None:
    path = svm_path(IRIS, THREE, [0.5, 5.0], probability=True, random_state=0)
    alone = SVC(C=5.0, probability=True, random_state=0).fit(IRIS, THREE)
    np.testing.assert_allclose(path[1].predict_proba(IRIS), alone.predict_proba(IRIS), atol=1e-5)


def test_folds_that_are_stopped_early_are_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="5 of 5 problems of the folds"):
        SVC(C=1e4, probability=True, random_state=0, max_iter=3).fit(X[:60], TWO[:60])


def test_an_indefinite_kernel_takes_no_start_from_rows_that_are_left_out() -> None:
    K = np.tanh(0.5 * IRIS @ IRIS.T - 1.0)
    model = SVC(kernel="precomputed", allow_indefinite=True, probability=True, random_state=0).fit(K, THREE)
    assert np.isfinite(model.predict_proba(K)).all()


def test_folds_are_even_in_every_class() -> None:
    codes = np.repeat([0, 1, 2], [23, 51, 4])
    folds = deal_folds(codes, np.random.RandomState(1))
    for code in range(3):
        counts = np.bincount(folds[codes == code], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(folds)
    assert counts.max() - counts.min() <= 1


def test_balanced_weights_are_feasible() -> None:
    random = np.random.default_rng(0)
    sizes, bounds = np.array([5, 7, 3]), np.full(15, 0.8)
    signs = np.array([[1] * 5 + [-1] * 7 + [-1] * 3, [1] * 5 + [1] * 7 + [-1] * 3])
    weights = signs * np.minimum(random.uniform(0.0, 1.2, (2, 15)), bounds)
    start = balanced(weights, bounds, sizes)
    assert (np.abs(start) <= bounds).all() and (start * signs >= 0).all()
    pairs = [start[0, :12], np.r_[start[1, :5], start[0, 12:]], np.r_[start[1, 5:12], start[1, 12:]]]
    np.testing.assert_allclose([pair.sum() for pair in pairs], 0.0, atol=1e-12)


def test_the_sigmoid_is_the_minimum_of_its_cross_entropy() -> None:
    random = np.random.default_rng(0)
    f = 3.0 * random.normal(size=200)
    first, weight = random.random(200) < 1 / (1 + np.exp(-f + 1.0)), random.uniform(0.5, 2.0, 200)
    above, below = weight[first].sum(), weight[~first].sum()
    target = np.where(first, (above + 1) / (above + 2), 1 / (below + 2))

    def loss(parameters: np.ndarray) -> float:
        z = parameters[0] * f + parameters[1]
        return float(weight @ (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z)))

    best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit_sigmoid(f, first, weight), best, atol=1e-5)
    A, B = fit_sigmoid(1e6 * f, first, weight)
    np.testing.assert_allclose([A * 1e6, B], best, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_values_give_the_shares_of_the_classes(value: float) -> None:
    A, B = fit_sigmoid(np.full(30, value), np.arange(30) < 20, np.ones(30))
    # Platt's targets: 20 of 21/22, and 10 of 1/12.
    np.testing.assert_allclose(1 / (1 + np.exp(A * value + B)), (20 * 21 / 22 + 10 / 12) / 30, atol=1e-8)


def test_coupling_recovers_probabilities_that_agree() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    i, j = np.triu_indices(5, 1)
    np.testing.assert_allclose(couple(p[:, i] / (p[:, i] + p[:, j]), 5), p, atol=1e-6)
    conflict = couple(np.array([[0.9, 0.1, 0.9]]), 3)
    np.testing.assert_allclose(conflict, 1 / 3, atol=1e-12)
