"""Learners over landmarks: against themselves with all rows, against linear learners, and what cannot be combined."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import mercer
from estimator_table import CLASSES, NUMBERS, RESTRICTED, X
from mercer import (
    SVC,
    SVR,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelQuantileRegression,
    KernelRidge,
    losses,
)
from mercer._errors import IndefiniteKernelError, MercerError, ParameterError
from mercer.kernels import RBF, Linear, Spectrum, WeisfeilerLehman
from mercer.maps import NystroemMap

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(160, 3))
THREE = np.array(["ash", "elm", "oak"])[np.digitize(ROWS[:, 0] + ROWS[:, 1] ** 2, [0.0, 1.5])]
TWO = np.where(ROWS[:, 0] * ROWS[:, 1] > 0, "same", "other")
Y = 30.0 + np.sin(2 * ROWS).sum(axis=1) + 0.1 * RNG.normal(size=160)
COUNTS = RNG.poisson(np.exp(ROWS[:, 0]))
WEIGHTS = np.r_[np.zeros(10), np.arange(150) % 4 + 0.5]
HERE = {"approximation": "nystroem", "landmarks": ROWS}

every = pytest.mark.parametrize(("model", "y"), RESTRICTED)


def values(model: Any, rows: Any = ROWS) -> np.ndarray:
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(rows))
    raise AssertionError(model)


@pytest.mark.parametrize(
    ("model", "y", "close"),
    [
        (KernelLogisticRegression(C=5.0), TWO, 1e-5),
        (KernelLogisticRegression(C=5.0, fit_intercept=False), TWO, 1e-5),
        (KernelLogisticRegression(C=5.0, class_weight="balanced"), THREE, 1e-5),
        (SVC(C=3.0), TWO, 1e-3),
        (SVC(C=3.0, fit_intercept=False, class_weight={"same": 3.0}), TWO, 1e-3),
        (SVC(C=3.0, class_weight="balanced", decision_function_shape="ovo"), THREE, 1e-3),
        (SVR(C=3.0), Y, 1e-3),
        (SVR(C=3.0, epsilon=0.0), Y, 1e-3),
        (SVR(C=3.0, fit_intercept=False, epsilon=1.0), Y, 1e-3),
        (KernelQuantileRegression(0.2, C=2.0), Y, 1e-5),
        (KernelQuantileRegression([0.9, 0.1], C=2.0, non_crossing=False), Y, 1e-5),
        *[(KernelMachine(loss, alpha=0.3), THREE, 1e-5) for loss in ("hinge", "squared_hinge", "logistic")],
        (KernelMachine("modified_huber", alpha=0.3, fit_intercept=True, class_weight="balanced"), TWO, 1e-5),
        *[(KernelMachine(loss, alpha=0.3), Y - 30, 1e-5) for loss in ("squared", "epsilon_insensitive", "quantile")],
        (KernelMachine(losses.Huber(0.05), alpha=0.3, fit_intercept=True), Y, 1e-5),
        (KernelMachine("poisson", alpha=0.3), COUNTS, 1e-5),
    ],
    ids=repr,
)
def test_with_all_rows_as_landmarks_it_is_the_exact_learner(model: Any, y: np.ndarray, close: float) -> None:
    exact = clone(model).set_params(gamma=0.4).fit(ROWS, y, WEIGHTS)
    restricted = clone(model).set_params(gamma=0.4, **HERE)
    restricted.set_params(tol=min(close, 1e-3) / 10 if close < 1e-3 else close / 2).fit(ROWS, y, WEIGHTS)
    assert restricted.certificate_.status.name == "converged"
    assert restricted.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=close)
    assert restricted.certificate_.dual <= exact.certificate_.primal * (1 + 1e-9)
    # By strong convexity, with the gap that is left.
    reach = np.sqrt(2 * close * exact.certificate_.primal / getattr(model, "alpha", 1.0))
    if not (is_classifier(model) and values(exact).ndim > 1):
        np.testing.assert_allclose(values(restricted), values(exact), atol=max(2 * reach, 1e-3))
    assert np.mean(restricted.predict(ROWS) == exact.predict(ROWS)) > 0.98 or not is_classifier(model)
    assert type(restricted.predict(ROWS)) is np.ndarray and restricted.dual_coef_.shape[-1] == len(ROWS)


@pytest.mark.parametrize("kernel", [RBF(1.5), Linear(), (Linear() + 1.0) ** 2], ids=repr)
def test_components_with_all_rows_as_landmarks(kernel: Any) -> None:
    exact = KernelPCA(4, kernel=kernel).fit(ROWS)
    restricted = KernelPCA(4, kernel=kernel, approximation="nystroem", landmarks=ROWS).fit(ROWS)
    np.testing.assert_allclose(restricted.eigenvalues_, exact.eigenvalues_, rtol=1e-8, atol=1e-8)
    few = exact.eigenvalues_ > 1e-6
    np.testing.assert_allclose(restricted.transform(ROWS)[:, few], exact.transform(ROWS)[:, few], atol=1e-7)
    assert restricted.certificate_.primal == pytest.approx(exact.certificate_.primal, abs=1e-6)
    assert restricted.transform(ROWS).shape == (160, 4) and not restricted.transform(ROWS).mean(axis=0).round(9).any()
    np.testing.assert_array_equal(restricted.fit_transform(ROWS), restricted.transform(ROWS))


def test_on_few_landmarks_it_is_the_linear_learner_on_their_features() -> None:
    mapping = NystroemMap(RBF(1.0), 25, random_state=0).fit(ROWS)
    landmarks, features = mapping.landmarks_, mapping.transform(ROWS)
    kernel: dict[str, Any] = {"kernel": RBF(1.0), "approximation": "nystroem", "landmarks": landmarks}
    for y in (TWO, THREE):
        linear = LogisticRegression(C=2.0, tol=1e-9, max_iter=5000).fit(features, y)
        model = KernelLogisticRegression(C=2.0, tol=1e-10, **kernel).fit(ROWS, y)
        np.testing.assert_allclose(model.predict_proba(ROWS), linear.predict_proba(features), atol=1e-4)
    exact = SVC(kernel="linear", C=2.0).fit(features, TWO)
    model = SVC(C=2.0, tol=1e-5, **kernel).fit(ROWS, TWO)
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(model.decision_function(ROWS), exact.decision_function(features), atol=0.02)
    tube = SVR(kernel="linear", C=2.0).fit(features, Y)
    other = SVR(C=2.0, tol=1e-5, **kernel).fit(ROWS, Y)
    np.testing.assert_allclose(other.predict(ROWS), tube.predict(features), atol=0.02)
    level = KernelQuantileRegression(0.3, kernel="linear", C=2.0).fit(features, Y)
    same = KernelQuantileRegression(0.3, C=2.0, **kernel).fit(ROWS, Y)
    np.testing.assert_allclose(same.predict(ROWS), level.predict(features), atol=0.02)
    directions = KernelPCA(3, kernel="linear").fit(features)
    found = KernelPCA(3, **kernel).fit(ROWS)
    np.testing.assert_allclose(found.eigenvalues_, directions.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(found.transform(ROWS)), np.abs(directions.transform(features)), atol=1e-4)


@pytest.mark.slow
@every
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(model: Any, y: np.ndarray) -> None:
    # One check wants a score on the rows of a fit that 20 landmarks do not reach.
    results = check_estimator(clone(model).set_params(n_landmarks=60), on_skip=None, on_fail=None)
    others = {r["check_name"]: str(r["exception"]) for r in results if r["status"] != "passed"}
    # The one check that scikit-learn itself leaves out unless SciPy is told to take arrays of other libraries.
    others.pop("check_array_api_input", None)
    # Random landmarks are others for repeated rows; for given ones see below.
    others = {name: words for name, words in others.items() if "sample_weight_equivalence" not in name}
    assert len(results) > 45 and others == {}


@every
def test_weights_are_repetitions_and_rows_of_weight_0_are_left_out(model: Any, y: np.ndarray) -> None:
    if not hasattr(model, "predict"):
        return
    model = clone(model).set_params(landmarks=X[:20], tol=1e-6)
    counts = np.arange(len(X)) % 3
    weighted = clone(model).fit(X, y, counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(values(weighted, X), values(repeated, X), atol=0.02)
    chosen = clone(model).set_params(landmarks="uniform").fit(X, y, counts)
    assert (counts[chosen.landmark_indices_] > 0).all()
    rows = getattr(chosen, "support_vectors_", getattr(chosen, "X_fit_", None))
    np.testing.assert_array_equal(rows, X[chosen.landmark_indices_])


@every
def test_files_sparse_rows_and_single_precision(model: Any, y: np.ndarray, tmp_path: Any) -> None:
    fitted = clone(model).fit(X, y)
    mercer.save(fitted, tmp_path / "model.mercer")
    for other in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(values(other, X), values(fitted, X))
    dense = clone(model).set_params(landmarks=X[:15]).fit(X, y)
    thin = clone(model).set_params(landmarks=sp.csr_array(X[:15])).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(values(thin, sp.csr_array(X)), values(dense, X), atol=1e-5)
    single = clone(model).set_params(landmarks=X[:15].astype(np.float32)).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(values(single, X.astype(np.float32)), values(dense, X), atol=0.02)


@pytest.mark.filterwarnings("ignore::mercer._errors.MercerWarning")
@every
def test_constant_columns_repeated_rows_and_more_landmarks_than_rows(model: Any, y: np.ndarray) -> None:
    rows, targets = np.repeat(X[:40], 3, axis=0), np.repeat(y[:40], 3)
    fitted = clone(model).set_params(n_landmarks=5000).fit(rows, targets)
    assert np.isfinite(values(fitted, rows)).all() and fitted.landmark_indices_.max() < len(rows)
    constant = clone(model).set_params(kernel="rbf", gamma=1.0).fit(np.ones((30, 2)), y[:30])
    assert np.ptp(values(constant, np.ones((3, 2))), axis=0).max() == 0 and len(constant.landmark_indices_) == 1


@every
def test_a_fit_to_all_rows_after_one_on_landmarks_and_back(model: Any, y: np.ndarray) -> None:
    model = clone(model)
    names = set(vars(clone(model).set_params(approximation=None).fit(X, y)))
    there = set(vars(clone(model).fit(X, y)))
    assert set(vars(model.fit(X, y).set_params(approximation=None).fit(X, y))) == names
    assert set(vars(model.set_params(approximation="nystroem").fit(X, y))) == there
    assert "landmark_indices_" in there - names


@pytest.mark.slow
@every
def test_searches_fit_again(model: Any, y: np.ndarray) -> None:
    if not hasattr(model, "score"):
        return
    penalty = "C" if hasattr(model, "C") else "alpha"
    grid = {penalty: [0.1, 1.0]}
    search = GridSearchCV(clone(model), grid, cv=2).fit(X, y)
    ours = mercer.GridSearchCV(clone(model), grid, cv=2).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    if isinstance(model, KernelRidge):
        return
    along = clone(model).fit_along(penalty, [0.1, 1.0], X, y)
    np.testing.assert_array_equal(values(along[0], X), values(clone(model).set_params(**{penalty: 0.1}).fit(X, y), X))
    chosen = mercer.KernelSearchCV(
        clone(model), kernels=[RBF(1.0)], cv=2, time_budget=0.3, random_state=0, parameters=[penalty]
    ).fit(X, y)
    assert "landmark_indices_" in vars(chosen.best_estimator_)


WORDS = ["gram", "gramme", "green", "anagram", "grammar", "ram", "green tea", "angry man"] * 4
SIZES = np.array([len(word) for word in WORDS], dtype=float)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (KernelLogisticRegression(C=5.0), SIZES > 5),
        (SVC(), SIZES > 5),
        (SVR(C=5.0), SIZES),
        (KernelMachine("logistic"), SIZES > 5),
        (KernelQuantileRegression(0.5), SIZES),
        (KernelPCA(2), SIZES),
    ],
    ids=lambda value: type(value).__name__,
)
def test_strings_and_graphs(model: Any, y: np.ndarray) -> None:
    graphs = [([(i, i + 1) for i in range(int(size))], ["a"] * (int(size) + 1)) for size in SIZES]
    for kernel, rows in ((Spectrum(2), WORDS), (WeisfeilerLehman(2), graphs)):
        exact = clone(model).set_params(kernel=kernel).fit(rows, y)
        restricted = clone(model).set_params(kernel=kernel, approximation="nystroem", random_state=0, tol=1e-6)
        restricted.fit(rows, y)
        np.testing.assert_allclose(np.abs(values(restricted, rows)), np.abs(values(exact, rows)), atol=0.02)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (SVC(C="cv"), ParameterError, r"combined with C='cv'. Pass a number; KernelSearchCV\(SVC"),
        (SVC(C=np.inf), ParameterError, "C=inf. Pass a finite number"),
        (SVC(probability=True), ParameterError, r"probability=True. SVC\(...\).calibrated"),
        (SVC(warm_start=True), ParameterError, "warm_start=True. Pass warm_start=False"),
        (SVC(solver="projected-gradient"), ParameterError, "a solver of their own"),
        (SVR(epsilon="cv"), ParameterError, "epsilon='cv'. Pass a number"),
        (SVR(warm_start=True), ParameterError, "Pass warm_start=False"),
        (KernelLogisticRegression(warm_start=True), ParameterError, "Pass warm_start=False"),
        (KernelMachine(regularizer="norm"), ParameterError, 'Pass regularizer="l2"'),
        (KernelMachine(solver="newton"), ParameterError, "a solver of their own"),
        (KernelQuantileRegression([0.1, 0.9]), ParameterError, "Pass non_crossing=False; np.sort"),
        (KernelPCA(fit_inverse_transform=True), ParameterError, "learns rows from the coordinates"),
        (SVC(kernel="sigmoid", allow_indefinite=True), IndefiniteKernelError, "SVC needs a positive semi-definite"),
        (SVR(kernel=mercer.kernels.NegativeDistance()), IndefiniteKernelError, "Choose another kernel"),
        (KernelPCA(kernel="precomputed"), ParameterError, "Leave out approximation"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_what_cannot_be_combined(model: Any, error: type[MercerError], words: str) -> None:
    rows, y = (X, CLASSES) if is_classifier(model) else (X, NUMBERS)
    if model.kernel == "precomputed":
        rows = RBF(1.0)(X)
    with pytest.raises(error, match=words):
        clone(model).set_params(approximation="nystroem").fit(rows, y)


@every
def test_parameters_that_are_wrong(model: Any, y: np.ndarray) -> None:
    for wrong, words in (
        ({"approximation": "fourier"}, "approximation must be None or 'nystroem', but is 'fourier'"),
        ({"n_landmarks": 0}, "n_landmarks must be a whole number of at least 1"),
        ({"landmarks": "best"}, "landmarks must be one of"),
        ({"kernel": "precomputed"}, "all values exist already"),
    ):
        with pytest.raises(ParameterError, match=words):
            clone(model).set_params(**wrong).fit(X, y)


@every
def test_attributes_of_all_rows_say_what_to_use(model: Any, y: np.ndarray) -> None:
    fitted = clone(model).fit(X, y)
    names = ("support_", "n_support_", "margins_", "slacks_", "roles_", "slacks_above_", "eigenvectors_", "mean_")
    for name in names:
        if name in dir(type(model)):
            assert not hasattr(fitted, name)
            with pytest.raises(AttributeError, match=r"approximation=.nystroem"):
                getattr(fitted, name)
            with pytest.raises(AttributeError):
                getattr(clone(model), name)


@pytest.mark.parametrize(("model", "y"), [case for case in RESTRICTED if hasattr(case.values[0], "certificate_of")])
def test_certificates_of_given_coefficients_are_of_all_rows(model: Any, y: np.ndarray) -> None:
    exact = clone(model).set_params(approximation=None).fit(X, y)
    with pytest.raises(ParameterError, match=r"leave out approximation|pass approximation=None"):
        mercer.certify(clone(model), X, y, dual_coef=exact.dual_coef_)


def test_a_user_defined_loss_needs_its_second_derivative() -> None:
    class LogCosh:
        def value(self, y: Any, f: Any) -> Any:
            return np.logaddexp(f - y, y - f) - np.log(2)

        def gradient(self, y: Any, f: Any) -> Any:
            return np.tanh(f - y)

    with pytest.raises(ParameterError, match=r"LogCosh has no method curvature\(y, f\)"):
        KernelMachine(LogCosh(), **HERE).fit(ROWS, Y)

    class Curved(LogCosh):
        def curvature(self, y: Any, f: Any) -> Any:
            return 1 - np.tanh(f - y) ** 2

    exact = KernelMachine(Curved(), alpha=0.1, gamma=0.4).fit(ROWS, Y)
    model = KernelMachine(Curved(), alpha=0.1, gamma=0.4, **HERE).fit(ROWS, Y)
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-5)


def test_a_large_first_step_of_counts_is_shortened() -> None:
    counts = np.r_[np.full(80, 5000.0), np.zeros(80)]
    model = KernelMachine("poisson", alpha=1e-3, approximation="nystroem", random_state=0).fit(ROWS, counts)
    assert np.isfinite(model.predict(ROWS)).all() and model.certificate_.relative_gap < 1e-5


def test_quantiles_that_cross_are_counted() -> None:
    levels = np.linspace(0.05, 0.95, 10)
    model = KernelQuantileRegression(levels, C=100.0, gamma=2.0, non_crossing=False, tol=1e-4, **HERE).fit(ROWS, Y)
    F = model.predict(ROWS)
    assert model.crossings_ == (np.diff(F, axis=1) < -1e-10).any(axis=1).sum() > 0


def test_bits_do_not_depend_on_threads() -> None:
    for case in RESTRICTED:
        model, y = case.values
        with mercer.config(n_jobs=1):
            alone = values(clone(model).fit(X, y), X)
        with mercer.config(n_jobs=4):
            np.testing.assert_array_equal(values(clone(model).fit(X, y), X), alone)


@pytest.mark.parametrize("C", [1e-8, 1e6])
def test_small_and_large_costs(C: float) -> None:
    restriction: dict[str, Any] = {"approximation": "nystroem", "n_landmarks": 50, "random_state": 0}
    for model, y in ((SVR(C=C), Y), (SVC(C=C), TWO), (KernelLogisticRegression(C=C), TWO)):
        assert clone(model).set_params(**restriction).fit(ROWS, y).certificate_.status.name == "converged"
