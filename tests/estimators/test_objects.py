"""Every learner on rows that are not vectors: strings, tables of mixed columns, and what only a function compares."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer import SVC, KernelRidge, kernels
from mercer._errors import DataError, ParameterError
from mercer.estimators.gaussian.covariance import FactorCovariance, KernelCovariance, covariance_of
from mercer.kernels import RBF, Spectrum, Subsequence, product_of
from mercer.kernels.domain import checked_rows
from mercer.kernels.inputs import Rows
from mercer.maps import NystroemMap
from mercer.solvers.gaussian.covariance import pull_matrix

_rng = np.random.default_rng(0)
TEXTS = ["".join(_rng.choice(list("ab" if i % 2 else "bc"), _rng.integers(1, 12))) for i in range(40)]
LABELS = np.arange(40) % 2
NUMBERS = np.array([text.count("b") for text in TEXTS]) + 0.1 * _rng.normal(size=40)
FRAME = pd.DataFrame({"text": TEXTS, "v": _rng.normal(size=40), "w": _rng.normal(size=40)})
MIXED = product_of({"text": Spectrum(2).normalized(), ("v", "w"): RBF(1.0)})
WALKS = [np.cumsum(_rng.normal(0.3 * (i % 2), 0.3, size=3 + i % 4)) for i in range(40)]
BAGS = [_rng.normal(0.5 * (i % 2), 1.0, size=(2 + i % 3, 2)) for i in range(40)]
GRAPHS = [([(0, 1), (1, 2), (2, 0)][: 2 + i % 2], list(str(_rng.choice(["CCO", "CNO", "OOO"])))) for i in range(40)]
TREES = [f"(S (NP {'ab'[i % 2]}) (VP (V {_rng.choice(list('xyz'))}) (NP {i % 5})))" for i in range(40)]
IMAGES = [_rng.uniform(0.0, 0.5 + 0.5 * (i % 2), size=(4 + i % 2, 5)) for i in range(40)]
ROWS = [[text, walk, number] for text, walk, number in zip(TEXTS, WALKS, NUMBERS, strict=True)]


def common_letters(x: str, z: str) -> float:
    return float(len(set(x) & set(z)))


CASES = {
    "features": (Spectrum(2) + 0.5, TEXTS),
    "pairs": (Subsequence(3).normalized(), TEXTS),
    "columns": (MIXED, FRAME),
    "series": (kernels.GlobalAlignment(1.5).normalized(), WALKS),
    "bags": (kernels.SetOf(RBF(1.0)), BAGS),
    "graphs": (kernels.WeisfeilerLehman(2) + 0.5, GRAPHS),
    "trees": (kernels.SubsetTree(0.5).normalized(), TREES),
    "images": (kernels.SpatialPyramid(1, bins=4), IMAGES),
    "rows": (product_of({0: Spectrum(2), 1: kernels.GlobalAlignment(1.0).normalized(), 2: RBF(1.0)}), ROWS),
    "function": (kernels.from_function(common_letters, pairwise=True), TEXTS),
}
LEARNERS = sorted(
    name
    for name in mercer.__all__
    if hasattr(getattr(mercer, name), "fit")
    and not name.endswith("SearchCV")
    and not name.startswith("Conformal")
    and "kernel" in getattr(mercer, name)().get_params()
)


def _fitted(name: str, kernel: Any, X: Any) -> Any:
    model = getattr(mercer, name)(kernel=kernel)
    if name == "GaussianProcessRegressor":
        # Equal strings, whose targets differ by noise.
        model.set_params(alpha=0.1)
    if name == "KernelKMeans":
        # Random starts are drawn from distinct rows, which a matrix does not show.
        model.set_params(n_clusters=2, init=LABELS.tolist())
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    codes = is_classifier(model) or "Ordinal" in name
    return clone(model).fit(X, LABELS if codes else NUMBERS)


def _answers(model: Any, X: Any) -> Any:
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


# Every day those that differ most, by turns: objects whose features are multiplied, tables, and rows of many members.
EVERY_DAY = ("features", "columns", "bags")
SOME_DAYS = [
    pytest.param(name, case, marks=() if case == EVERY_DAY[number % 3] else pytest.mark.slow)
    for number, name in enumerate(LEARNERS)
    for case in CASES
]


@pytest.mark.parametrize(("name", "case"), SOME_DAYS)
def test_every_learner_takes_them(name: str, case: str, tmp_path: Path) -> None:
    kernel, X = CASES[case]
    model = _fitted(name, kernel, X)
    answers = _answers(model, X)
    few = X.iloc[:7] if hasattr(X, "iloc") else X[:7]
    np.testing.assert_allclose(_answers(model, few), answers[:7], atol=1e-7)
    assert np.array_equal(_answers(pickle.loads(pickle.dumps(model)), X), answers)
    # What notebooks and shells ask for: every attribute, also of a kernel that some of them are not for.
    assert dir(model) and model._repr_html_()
    if case != "function":
        mercer.save(model, tmp_path / "model.mercer")
        assert np.array_equal(_answers(mercer.load(tmp_path / "model.mercer"), X), answers)


@pytest.mark.parametrize("case", ["features", "bags", "columns"])
@pytest.mark.parametrize("name", [name for name in LEARNERS if hasattr(getattr(mercer, name), "partial_fit")])
def test_streams_of_them(name: str, case: str) -> None:
    kernel, X = CASES[case]
    model = getattr(mercer, name)(kernel=kernel, random_state=0)
    y = LABELS if is_classifier(model) else NUMBERS
    for start in range(0, 40, 10):
        more = {"classes": [0, 1]} if is_classifier(model) and start == 0 else {}
        part = slice(start, start + 10)
        model.partial_fit(X.iloc[part] if case == "columns" else X[part], y[part], **more)
    assert model.predict(X).shape == (40,)
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert np.array_equal(again.predict(X), model.partial_fit(X, y).predict(X))


@pytest.mark.parametrize("case", ["features", "columns"])
@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_a_classifier_of_several_parts(multi_class: str, case: str, tmp_path: Path) -> None:
    kernel, X = CASES[case]
    y = np.arange(40) % 3
    model = mercer.GaussianProcessClassifier(kernel=kernel.fixed(), multi_class=multi_class, optimizer=None).fit(X, y)
    K = kernel(X)
    its = mercer.GaussianProcessClassifier(kernel="precomputed", multi_class=multi_class).fit(K, y)
    values = model.decision_function(X)
    np.testing.assert_allclose(values, its.decision_function(K, diagonal=K.diagonal()), atol=1e-9)
    mercer.save(model, tmp_path / "model.mercer")
    assert np.array_equal(mercer.load(tmp_path / "model.mercer").decision_function(X), values)


def test_rows_of_objects_in_any_form() -> None:
    kernel, rows = CASES["rows"]
    array = np.empty((40, 3), object)
    for number, row in enumerate(rows):
        array[number] = row
    frame = pd.DataFrame({column: list(array[:, column]) for column in range(3)})
    K = kernel(frame)
    model = SVC(kernel=kernel).fit(frame, LABELS)
    for X in (rows, tuple(map(tuple, rows)), array):
        assert np.array_equal(kernel(X), K)
        # A product of fewer rows may sum in another order.
        np.testing.assert_allclose(kernel(X[:2], X), K[:2], rtol=1e-11)
        assert np.array_equal(SVC(kernel=kernel).fit(X, LABELS).decision_function(X), model.decision_function(frame))
    # Entries of one length are no further axis.
    even = [[np.arange(3.0), np.ones(3)], [np.arange(3.0) + 1, np.ones(3)]]
    both = product_of({0: kernels.GlobalAlignment(1.0), 1: kernels.GlobalAlignment(2.0)})
    assert SVC(kernel=both).fit(even, [0, 1]).predict(even).tolist() == [0, 1]
    for X, message in ((None, "but is None"), (5, "but is 5"), (TEXTS, r"shape \(40,\)"), ([], "X is empty")):
        with pytest.raises(DataError, match=message):
            model.predict(X)


@pytest.mark.parametrize("case", ["features", "series", "bags", "graphs", "trees", "images"])
def test_kernels_on_vectors_say_what_objects_need(case: str) -> None:
    with pytest.raises(ValueError, match=r"pass a (kernel on|matching kernel of)"):
        SVC().fit(CASES[case][1], LABELS)


def test_kernels_on_vectors_say_what_graphs_need() -> None:
    with pytest.raises(TypeError, match=r"pass a matching kernel of mercer\.kernels"):
        SVC().fit([mercer.Graph([(0, 1)])] * 2, [0, 1])


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_as_with_the_matrix(name: str) -> None:
    # Whole numbers: no order of sums changes a bit. The matrix has no parameters, so the kernel must learn none.
    # Weights of terms are learned of a sum, which a matrix is not.
    kernel = (Spectrum(2) if name.startswith("MultipleKernel") else Spectrum(2) + 1.0).fixed()
    K = kernel(TEXTS)
    if name == "GaussianProcessRegressor":
        # It would learn a factor.
        kernel = (1.0 * kernel).fixed()
    mine, its = _fitted(name, kernel, TEXTS), _fitted(name, "precomputed", K)
    # A matrix does not tell the variance at new rows, which the classes of some models need.
    if name == "GaussianProcessOrdinalRegression":
        # Its search for slope and cut-points ends within the fourth digit of the best.
        np.testing.assert_allclose(mine.latent(TEXTS), its.latent(K), atol=1e-4)
    elif name == "KernelLocalOutlierFactor":
        np.testing.assert_allclose(mine.score_samples(None), its.score_samples(None), atol=1e-6)
    else:
        np.testing.assert_allclose(_answers(mine, TEXTS), _answers(its, K), atol=1e-6)


def test_scikit_learns_tools_take_strings() -> None:
    search = GridSearchCV(SVC(kernel=Spectrum(1)), {"kernel__length": [1, 2], "C": [0.1, 1.0]}, cv=3)
    assert search.fit(TEXTS, LABELS).best_score_ > 0.7
    assert cross_val_score(KernelRidge(kernel=Spectrum(1)), TEXTS, NUMBERS).mean() > 0.9


def test_mistakes_are_named() -> None:
    model = SVC(kernel=Spectrum(2))
    with pytest.raises(DataError, match="row 3 of X: a string must be text"):
        model.fit([*TEXTS[:3], 3.5, *TEXTS[4:]], LABELS)
    with pytest.raises(DataError, match="X is empty"):
        model.fit([], [])
    with pytest.raises(DataError, match="pass a list of strings"):
        model.fit("abab", LABELS)
    with pytest.raises(DataError, match="3 columns, but a kernel on strings takes one object per row"):
        model.fit(FRAME, LABELS)
    with pytest.raises(ParameterError, match=r"Spectrum\(2\) compares strings and RBF\(1.0\) compares vectors"):
        SVC(kernel=Spectrum(2) + RBF(1.0)).fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="column 'v' of X: a string must be text"):
        SVC(kernel=Spectrum(2).on("v") * RBF(1.0).on("w")).fit(FRAME, LABELS)
    with pytest.raises(DataError, match="there is no column 'u'"):
        SVC(kernel=Spectrum(2).on("u")).fit(FRAME, LABELS)
    for X in (BAGS[0], [[1.0, 2.0]]):
        with pytest.raises(DataError, match="row 0 of X, member 0: a member must be a vector"):
            SVC(kernel=kernels.SetOf(RBF(1.0))).fit(X, LABELS[: len(X)])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge(kernel=Spectrum(2)).fit(TEXTS, NUMBERS[:-1])
    with pytest.raises(ValueError, match="feature names"):
        SVC(kernel=MIXED).fit(FRAME, LABELS).predict(FRAME.rename(columns={"v": "u"}))


def test_a_learner_goes_from_vectors_to_strings_and_back() -> None:
    model = SVC(kernel=RBF(1.0)).fit(FRAME[["v", "w"]], LABELS)
    model.set_params(kernel=Spectrum(2)).fit(TEXTS, LABELS)
    assert not hasattr(model, "n_features_in_") and model.predict(TEXTS[:3]).shape == (3,)
    assert model.set_params(kernel=RBF(1.0)).fit(FRAME[["v", "w"]], LABELS).n_features_in_ == 2


@pytest.mark.parametrize("case", ["pairs", "columns"])
def test_all_that_gaussian_processes_do(case: str) -> None:
    kernel, X = CASES[case]
    few, rest = (X.iloc[:5], X.iloc[5:]) if case == "columns" else (X[:5], X[5:])
    model = mercer.GaussianProcessRegressor(kernel=kernel.fixed(), alpha=0.1, optimizer=None).fit(X, NUMBERS)
    K = kernel(X)
    inverse = np.linalg.inv(K + 0.1 * np.eye(40))
    np.testing.assert_allclose(model.predict(X, return_cov=True)[1], K - K @ inverse @ K, atol=1e-10)
    np.testing.assert_allclose(model.leave_one_out().mean, NUMBERS - inverse @ NUMBERS / np.diag(inverse), atol=1e-8)
    part = clone(model).fit(rest, NUMBERS[5:]).condition_on(few, NUMBERS[:5])
    np.testing.assert_allclose(part.predict(X), model.predict(X), atol=1e-8)
    assert model.sample_y(few, 3, random_state=0).shape == (5, 3)
    assert clone(model).sample_y(few, 3, random_state=0).shape == (5, 3)
    with pytest.raises(DataError, match='mean="linear" needs rows of numbers'):
        clone(model).set_params(mean="linear").fit(X, NUMBERS)


def test_processes_learn_the_scale_and_the_noise_of_kernels_on_objects() -> None:
    rng = np.random.default_rng(0)
    y = 100.0 * NUMBERS + 30.0 * rng.normal(size=40)
    model = mercer.GaussianProcessRegressor(Spectrum(2).normalized()).fit(TEXTS, y)
    assert model.kernel_.factor > 100.0 and model.noise_ is not None and model.noise_ > 1.0
    mean, variance, _ = model.leave_one_out()
    assert np.mean(np.abs(y - mean) < 2.0 * np.sqrt(variance)) > 0.85
    # What is stated stays: a factor, a variance of the noise, or no search.
    stated = mercer.GaussianProcessRegressor((2.0 * Spectrum(2)).fixed(), alpha=0.5).fit(TEXTS, y)
    assert stated.noise_ is None and stated.kernel_ == (2.0 * Spectrum(2)).fixed()
    assert mercer.GaussianProcessRegressor(Spectrum(2), alpha=0.5).fit(TEXTS, y).noise_ is None
    plain = mercer.GaussianProcessRegressor(Spectrum(2), alpha=0.5, optimizer=None).fit(TEXTS, y)
    assert plain.kernel_ == Spectrum(2)
    classes = mercer.GaussianProcessClassifier(Spectrum(2).normalized()).fit(TEXTS, np.median(NUMBERS) < NUMBERS)
    assert classes.kernel_.factor != 1.0


def test_a_kernel_on_objects_is_evaluated_once_for_a_search_of_its_factor() -> None:
    kernel = 2.0 * Spectrum(2)
    rows = Rows(checked_rows(kernel, TEXTS * 15, "X"))
    K = kernel(TEXTS * 15)
    covariance = covariance_of(kernel, rows, None)
    assert isinstance(covariance, FactorCovariance)
    out, weights = np.empty_like(K), np.random.default_rng(0).normal(size=K.shape)
    covariance.matrix(kernel.theta, out)
    np.testing.assert_allclose(out, K, rtol=1e-12)
    slope = pull_matrix(covariance, kernel.theta, weights + weights.T)
    np.testing.assert_allclose(slope, np.sum((weights + weights.T) * K), rtol=1e-9)
    assert isinstance(covariance_of(2.0 * RBF(1.0), rows, None), KernelCovariance)


def test_the_evidence_tunes_the_parameters_of_a_kernel_on_strings() -> None:
    kernel = 1.0 * Subsequence(3, decay=0.9).normalized()
    search = mercer.GaussianProcessRegressor(kernel=kernel, alpha=0.1, random_state=0).fit(TEXTS, NUMBERS)
    fixed = clone(search).set_params(kernel=kernel.fixed()).fit(TEXTS, NUMBERS)
    assert search.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ + 1.0
    slope = search.log_marginal_likelihood(search.kernel_.theta, eval_gradient=True)[1]
    inside = np.abs(search.kernel_.theta[:, None] - search.kernel_.bounds).min(axis=1) > 1e-3
    assert inside.any() and np.abs(slope[inside]).max() < 1e-2


def test_paths_calibration_and_streams() -> None:
    kernel = Subsequence(2).normalized()
    path = mercer.svm_path(TEXTS, LABELS, Cs=[0.1, 1.0], estimator=SVC(kernel=kernel))
    assert [m.score(TEXTS, LABELS) for m in path.models] == [
        SVC(kernel=kernel, C=C).fit(TEXTS, LABELS).score(TEXTS, LABELS) for C in (0.1, 1.0)
    ]
    assert mercer.ridge_path(TEXTS, NUMBERS, estimator=KernelRidge(kernel=kernel)).loo.min() < np.var(NUMBERS)
    probabilities = SVC(kernel=kernel).calibrated(cv=3).fit(TEXTS, LABELS).predict_proba(TEXTS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    whole = mercer.KernelPerceptron(kernel=kernel, shuffle=False, max_iter=1).fit(TEXTS, LABELS)
    stream = mercer.KernelPerceptron(kernel=kernel, shuffle=False)
    for start in range(0, 40, 8):
        stream.partial_fit(TEXTS[start : start + 8], LABELS[start : start + 8], classes=[0, 1])
    np.testing.assert_allclose(stream.decision_function(TEXTS), whole.decision_function(TEXTS), atol=1e-12)


@pytest.mark.parametrize("method", ["uniform", "leverage", "rpcholesky"])
@pytest.mark.parametrize("case", ["features", "pairs", "columns"])
def test_features_by_landmarks(case: str, method: str, tmp_path: Path) -> None:
    kernel, X = CASES[case]
    features = NystroemMap(kernel, n_components=40, method=method, random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(X) @ features.transform(X).T, kernel(X), atol=1e-6)
    mercer.save(features, tmp_path / "map.mercer")
    assert np.array_equal(mercer.load(tmp_path / "map.mercer").transform(X), features.transform(X))
    with pytest.raises(DataError, match="needs rows of numbers"):
        clone(features).set_params(method="kmeans").fit(X)


def test_columns_in_another_order_are_named_before_they_are_read() -> None:
    table = pd.DataFrame({"text": ["ab", "ba", "b"], "hour": [1.0, 2.0, 3.0]})
    model = KernelRidge(kernel=product_of({"text": Spectrum(1), "hour": RBF(1.0)})).fit(table, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(table[["hour", "text"]])
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict(table[["hour"]])
