"""``coef_``, ``norm_`` and ``margin_``: every learner, with every kernel that has finitely many features."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import SVC as PeerSVC
from tests.estimator_table import CASES

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessOrdinalRegression,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSGDClassifier,
    NuSVC,
    OneClassSVM,
    load,
    maps,
    save,
)
from mercer._errors import MercerWarning
from mercer.kernels import RBF, AllSubsets, BagOfWords, Linear, NegativeDistance, Polynomial, Sigmoid, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NEW = RNG.normal(size=(11, 3))
CLASSES = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.4, 0.4])
NUMBERS = np.sin(X[:, 0])


def squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows)[:, :2]


KERNELS = {
    "linear": Linear(),
    "scaled": 0.25 * Linear(),
    "summed": 2.0 * Linear().on([0, 2]) + Linear().on([1]) + 0.5,
    "polynomial": Polynomial(2, scale=0.5),
    "homogeneous": Polynomial(3, offset=0.0),
    "subsets": 0.1 * AllSubsets(),
    "product": Linear() * Polynomial(2).on([0]),
    "power": (Linear() + 1.0) ** 2,
    "normalized": (Linear() + 1.0).normalized(),
    "warped": Linear().warped(squares) + Linear(),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
TOLERANCE = 1e-9


def targets_for(model: Any, y: np.ndarray) -> np.ndarray:
    return CLASSES if y.dtype.kind == "U" else NUMBERS


def intercept_of(model: Any) -> Any:
    return getattr(model, "intercept_", 0.0)


def function_values(model: Any, rows: Any) -> np.ndarray:
    """f of a learner with one function, without what is made of it afterwards, (m,)."""
    if isinstance(model, GaussianProcessClassifier):
        return model.latent_mean_and_variance(rows)[0]
    if hasattr(model, "latent"):
        return model.latent(rows)
    return np.ravel((getattr(model, "decision_function", None) or model.predict)(rows))


def naive_phi(kernel: Any, rows: np.ndarray) -> np.ndarray:
    return maps.ExplicitMap(kernel).fit(rows).transform(rows)


@every_kernel
def test_the_features_are_those_of_the_kernel(kernel: Any) -> None:
    both = np.vstack([X, NEW])
    F = naive_phi(kernel, both)
    np.testing.assert_allclose(F @ F.T, kernel(both), rtol=1e-10, atol=1e-10)
    sparse = maps.ExplicitMap(kernel).fit(both)
    assert len(set(sparse.get_feature_names_out())) == F.shape[1]
    if kernel is not KERNELS["warped"]:
        np.testing.assert_allclose(sparse.transform(sp.csr_array(both)).toarray(), F, atol=1e-12)


# Each learner with every third of the kernels, and each kernel with a third of the learners.
IN_TURN = [
    pytest.param(*case.values, kernel, id=f"{case.id}-{name}")
    for number, case in enumerate(CASES)
    for place, (name, kernel) in enumerate(KERNELS.items())
    if (number + place) % 3 == 0
]


@pytest.mark.parametrize(("model", "y", "kernel"), IN_TURN)
def test_every_learner_is_linear_in_the_features(model: Any, y: np.ndarray, kernel: Any) -> None:
    fitted = clone(model).set_params(kernel=kernel)
    if isinstance(model, GaussianProcessRegressor | GaussianProcessClassifier | GaussianProcessOrdinalRegression):
        fitted.set_params(optimizer=None)
    if isinstance(model, NuSVC):
        fitted.set_params(gamma="scale")
    if fitted.get_params().get("budget_strategy") == "merging":
        fitted.set_params(budget_strategy="projection")
    fitted.fit(X, targets_for(model, y))
    phi = fitted.feature_map_.transform(NEW)
    coef = np.ravel(fitted.coef_)
    values = function_values(fitted, NEW)
    scale = 1.0 + np.abs(phi) @ np.abs(coef)
    np.testing.assert_allclose((phi @ coef + intercept_of(fitted) - values) / scale, 0.0, atol=1e-8)
    lengths = fitted.norm_
    assert lengths.shape == (1,)
    np.testing.assert_allclose(lengths**2, coef @ coef, rtol=1e-6, atol=1e-10)
    if "coef_" in vars(fitted):
        assert isinstance(fitted, KernelSGDClassifier)
        return
    # By kernel values of the rows of the expansion alone, with the weights of its terms where these are learned.
    rows = fitted._expansion.rows
    kernel = fitted._expansion.kernel if hasattr(fitted, "weights_") else kernel
    a = fitted.alpha_ if isinstance(fitted, GaussianProcessRegressor) else fitted._expansion.dual_coef
    a = np.ravel(a)
    terms = np.abs(a) @ np.sqrt(kernel.diagonal(rows))
    assert abs(a @ kernel(rows) @ a - lengths[0] ** 2) <= 1e-9 * terms**2 + 1e-6 * lengths[0] ** 2


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), RBF(1.0)])
@pytest.mark.parametrize("machine", [SVC, NuSVC])
def test_pairs_of_classes(machine: Any, kernel: Any, fit_intercept: bool) -> None:
    options = {"fit_intercept": fit_intercept} if machine is SVC else {"nu": 0.2}
    model = machine(kernel=kernel, decision_function_shape="ovo", **options).fit(X, THREE)
    at_support = model.decision_function(model.support_vectors_) - model.intercept_
    ends = np.cumsum(model.n_support_)
    part = [slice(e - s, e) for s, e in zip(model.n_support_, ends, strict=True)]
    expected = []
    for number, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.r_[part[i], part[j]]
        a = np.concatenate([model.dual_coef_[j - 1, part[i]], model.dual_coef_[i, part[j]]])
        expected.append(np.sqrt(a @ kernel(model.support_vectors_[rows]) @ a))
        np.testing.assert_allclose(a @ at_support[rows, number], expected[-1] ** 2, rtol=1e-9)
    np.testing.assert_allclose(model.norm_, expected, rtol=1e-9)
    np.testing.assert_allclose(model.margin_, 2.0 / np.array(expected), rtol=1e-9)
    given = machine(kernel="precomputed", **options).fit(kernel(X), THREE)
    np.testing.assert_allclose(given.norm_, expected, rtol=0.02)
    if kernel == RBF(1.0):
        assert not hasattr(model, "coef_")
    else:
        phi = model.feature_map_.transform(NEW)
        np.testing.assert_allclose(phi @ model.coef_.T + model.intercept_, model.decision_function(NEW), atol=1e-9)


def test_the_width_of_a_margin_that_is_known() -> None:
    # Two pairs of points on the lines x = 0 and x = 3: the hard margin is 3 wide.
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0], [3.0, 1.0]])
    model = SVC(C=1e3, kernel="linear", tol=1e-9).fit(corners, [0, 0, 1, 1])
    np.testing.assert_allclose(model.margin_, [3.0], rtol=1e-6)
    one = OneClassSVM(kernel="linear", nu=0.5, tol=1e-9).fit(corners[2:] + np.array([[0.0, 3.0], [0.0, -4.0]]))
    # The hyperplane <w, x> = rho lies at the distance 3 from the origin.
    np.testing.assert_allclose(one.margin_, np.abs(one.offset_) / np.linalg.norm(one.coef_), rtol=1e-9)
    np.testing.assert_allclose(one.margin_, [3.0], rtol=1e-3)


def test_rows_with_one_value_for_all_have_an_infinite_margin() -> None:
    model = SVC(kernel=Linear()).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert model.norm_.tolist() == [0.0] and model.margin_.tolist() == [np.inf]


def test_scikit_learns_attribute() -> None:
    for y in (CLASSES, THREE):
        ours, peer = SVC(kernel="linear", tol=1e-8).fit(X, y), PeerSVC(kernel="linear", tol=1e-8).fit(X, y)
        assert ours.coef_.shape == peer.coef_.shape
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
    for name in ("rbf", "sigmoid", "laplacian"):
        assert not hasattr(SVC(kernel=name, allow_indefinite=True).fit(X, CLASSES), "coef_")
    model = SVC(kernel="poly", degree=2).fit(X, CLASSES)
    assert model.coef_.shape == (1, len(model.feature_map_.get_feature_names_out()))
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((1, 3))  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0


def test_why_there_is_no_coef() -> None:
    with pytest.raises(AttributeError, match=r"finite feature map only.*RBF.*Use dual_coef_"):
        _ = SVR(kernel=RBF(1.0)).fit(X, NUMBERS).coef_
    wide = RNG.normal(size=(20, 90))
    model = KernelRidge(kernel=Polynomial(4)).fit(wide, wide[:, 0])
    with pytest.raises(AttributeError, match=r"3,049,501 columns.*at most 100,000.*fewer columns or of a lower degree"):
        _ = model.coef_
    # 2^90 subsets cannot even be numbered.
    assert not hasattr(KernelRidge(kernel=AllSubsets()).fit(wide / 10, wide[:, 0]), "coef_")
    with pytest.raises(AttributeError, match="precomputed"):
        _ = SVC(kernel="precomputed").fit(X @ X.T, CLASSES).coef_
    texts = ["red car", "red bus", "blue sky", "blue sea"]
    words = KernelLogisticRegression(kernel=BagOfWords()).fit(texts, [0, 0, 1, 1])
    assert not hasattr(words, "coef_") and words.norm_[0] > 0


def test_one_column_more_than_is_written_out_for_features_is_no_limit_for_columns() -> None:
    rows = sp.random_array((12, 150_000), density=1e-3, rng=RNG, format="csr")
    model = SVC(kernel=0.5 * Linear()).fit(rows, np.arange(12) % 2)
    assert model.coef_.shape == (1, 150_000) and sp.issparse(model.coef_)
    np.testing.assert_allclose(model.norm_[0], sp.linalg.norm(model.coef_), rtol=1e-9)


@pytest.mark.parametrize("layout", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows(layout: type) -> None:
    for machine, y in ((SVC(kernel=Polynomial(2)), THREE), (SVR(kernel=Polynomial(2)), NUMBERS)):
        dense, sparse = clone(machine).fit(X, y), clone(machine).fit(layout(X), y)
        assert isinstance(sparse.coef_, layout)
        np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-6)
        np.testing.assert_allclose(sparse.norm_, dense.norm_, rtol=1e-6)


def test_names_of_columns_reach_the_features() -> None:
    table = pd.DataFrame(X, columns=["age", "size", "mass"])
    model = KernelRidge(kernel=Polynomial(2)).fit(table, NUMBERS)
    assert model.feature_map_.get_feature_names_out().tolist()[:5] == ["1", "age", "size", "mass", "age^2"]
    on = KernelRidge(kernel=Linear().on(["mass", "age"])).fit(table, NUMBERS)
    assert on.feature_map_.get_feature_names_out().tolist() == ["mass", "age"] and on.coef_.shape == (2,)


def test_several_targets_and_units_of_y() -> None:
    Y = np.column_stack([NUMBERS, 100.0 * X[:, 1]])
    ridge = KernelRidge(kernel=Polynomial(2)).fit(X, Y)
    np.testing.assert_allclose(ridge.feature_map_.transform(NEW) @ ridge.coef_.T, ridge.predict(NEW), atol=1e-9)
    assert ridge.norm_.shape == (2,)
    process = GaussianProcessRegressor(Linear() + White(0.1), normalize_y=True, optimizer=None).fit(X, Y)
    mean = NEW @ process.coef_.T + Y.mean(axis=0)
    np.testing.assert_allclose(mean, process.predict(NEW), atol=1e-9)
    np.testing.assert_allclose(process.norm_, np.linalg.norm(process.coef_, axis=1), rtol=1e-12)


def test_classes_of_a_process() -> None:
    model = GaussianProcessClassifier(Polynomial(2), optimizer=None, multi_class="multinomial").fit(X, THREE)
    latent = model.latent_mean_and_variance(NEW)[0]
    np.testing.assert_allclose(model.feature_map_.transform(NEW) @ model.coef_.T, latent, atol=1e-8)
    parts = GaussianProcessClassifier(Linear(), optimizer=None, multi_class="one_vs_rest").fit(X, THREE)
    assert parts.estimators_[0].coef_.shape == (1, 3)
    with pytest.raises(AttributeError, match="use those of estimators_"):
        _ = parts.coef_
    with pytest.raises(AttributeError, match="use those of estimators_"):
        _ = parts.norm_


@every_kernel
def test_components_and_centres(kernel: Any) -> None:
    model = KernelPCA(3, kernel=kernel).fit(X)
    phi = model.feature_map_.transform(NEW)
    np.testing.assert_allclose((phi - model.mean_) @ model.components_.T, model.transform(NEW), atol=1e-8)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-8)
    clusters = KernelKMeans(3, kernel=kernel, random_state=0).fit(X)
    features = naive_phi(kernel, np.vstack([X, NEW]))
    centres = np.stack([features[:60][clusters.labels_ == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(clusters.cluster_centers_, centres, atol=1e-9)
    np.testing.assert_allclose(clusters.norm_, np.linalg.norm(centres, axis=1), rtol=1e-9)
    distances = np.linalg.norm(features[60:, None] - centres, axis=2)
    np.testing.assert_allclose(clusters.transform(NEW), distances, atol=1e-6)


def test_both_forms_of_stochastic_descent() -> None:
    for options in ({"feature_map": None}, {"feature_map": "auto"}):
        model = KernelSGDClassifier(alpha=0.01, kernel=Linear(), random_state=0, **options).fit(X, THREE)
        np.testing.assert_allclose(NEW @ model.coef_.T + model.intercept_, model.decision_function(NEW), atol=1e-9)
        np.testing.assert_allclose(model.norm_, np.linalg.norm(model.coef_, axis=1), rtol=1e-9)
        # From one form to the other, nothing of the last fit is left.
        other = model.set_params(feature_map=None if options["feature_map"] else "auto").fit(X, THREE)
        assert ("coef_" in vars(other)) == (other.feature_map is not None)
        assert other.partial_fit(X, THREE).coef_.shape == (3, 3)
        assert other.feature_map_.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


def test_lengths_for_kernels_without_finite_features() -> None:
    model = KernelRidge(kernel=RBF(1.0), alpha=0.1).fit(X, NUMBERS)
    a = model.dual_coef_
    np.testing.assert_allclose(model.norm_, [np.sqrt(a @ RBF(1.0)(X) @ a)], rtol=1e-9)
    given = KernelRidge(kernel="precomputed", alpha=0.1).fit(RBF(1.0)(X), NUMBERS)
    np.testing.assert_allclose(given.norm_, model.norm_, rtol=1e-6)
    machine = KernelMachine("hinge", kernel=Polynomial(2)).fit(X, CLASSES)
    np.testing.assert_allclose(machine.norm_, np.linalg.norm(machine.coef_, axis=1), rtol=1e-6)
    with pytest.raises(AttributeError, match=r"keeps none.*np.sqrt\(a @ K @ a\)"):
        _ = KernelLogisticRegression(kernel="precomputed").fit(RBF(1.0)(X), CLASSES).norm_


def test_rounding_makes_no_nan() -> None:
    # Weights of +-1e8 on rows that are nearly equal: a'Ka is far below the rounding of its terms.
    model = KernelRidge(kernel=RBF(1e4), alpha=1e-14).fit(X, NUMBERS)
    assert np.isfinite(model.norm_).all() and (model.norm_ >= 0).all()
    conditional = SVC(kernel=NegativeDistance()).fit(X, CLASSES)
    assert conditional.norm_[0] > 0
    indefinite = KernelRidge(kernel=Sigmoid(-1.0), alpha=1e-2, allow_indefinite=True).fit(X, NUMBERS)
    a = indefinite.dual_coef_
    assert a @ Sigmoid(-1.0)(X) @ a < 0 and np.isnan(indefinite.norm_).all()


def test_no_support_vectors_and_not_fitted() -> None:
    flat = SVR(kernel=Polynomial(2), epsilon=10.0).fit(X, NUMBERS)
    assert flat.norm_.tolist() == [0.0] and not flat.coef_.any() and flat.coef_.shape == (1, 10)
    supervised = (SVC(), KernelRidge(), KernelPerceptron(), KernelSGDClassifier(), GaussianProcessRegressor())
    for model in (*supervised, KernelKMeans(), KernelPCA()):
        names = ("coef_", "norm_", "margin_", "feature_map_", "components_", "cluster_centers_", "mean_")
        assert not any(hasattr(model, name) for name in names)


def test_loaded_and_copied_models(tmp_path: Path) -> None:
    online = mercer.OnlineKernelRegressor(kernel=Linear())
    for model in (SVC(kernel=Polynomial(2)).fit(X, THREE), online.fit(X, NUMBERS)):
        save(model, tmp_path / "model.mercer")
        for back in (load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(back.coef_, model.coef_)
            np.testing.assert_array_equal(back.norm_, model.norm_)


@pytest.mark.parametrize("offset", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rows_in_float32_far_from_zero_have_the_predictions_of_float64(kernel: str, offset: float) -> None:
    single = (np.random.default_rng(0).normal(size=(120, 3)) + offset).astype(np.float32)
    rows = single.astype(np.float64)
    y = (rows - offset) @ [1.0, 2.0, 3.0]
    for model in (SVR(C=1e-3, max_iter=500), KernelMachine("huber", alpha=1e3), SVC(C=1e-3, max_iter=500)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            fitted = model.set_params(kernel=kernel).fit(single, y > 0 if isinstance(model, SVC) else y)
        values = getattr(fitted, "decision_function", fitted.predict)
        expected = values(rows)
        np.testing.assert_allclose(values(single), expected, atol=1e-3 * expected.std())
