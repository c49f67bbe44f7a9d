"""Solutions along C, nu and epsilon against single fits."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, KernelRidge, NuSVC, NuSVR, OneClassSVM, svm_path
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from mercer.selection import Path
from mercer.solvers.solution import Status


def rows(n: int, k: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.standard_normal((n, 3)) + 1.2 * np.eye(3)[y % 3], y


def curve(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def agrees(path: Path, name: str, prototype: Any, X: np.ndarray, y: Any, **fit: Any) -> None:
    """Every model of the path is the single fit: objective, function, certificate."""
    for value, model in zip(path.values, path):
        single = clone(prototype).set_params(**{name: value}).fit(X, y, **fit)
        assert getattr(model, name) == value
        assert model.certificate_.status is Status.converged
        assert model.certificate_.primal == pytest.approx(single.certificate_.primal, rel=1e-6)
        assert model.certificate_.dual == pytest.approx(single.certificate_.dual, rel=1e-6)
        assert model.certificate_.kkt_violation <= prototype.tol
        if hasattr(model, "decision_function"):
            assert model.decision_function(X) == pytest.approx(single.decision_function(X), abs=1e-3)
        else:
            assert model.predict(X) == pytest.approx(single.predict(X), abs=1e-3)


@pytest.mark.parametrize("n", [150, 900, 3200])
def test_path_of_C_is_the_single_fits(n: int) -> None:
    X, y = rows(n)
    prototype = SVC(kernel=RBF(1.5), tol=1e-5)
    path = svm_path(X, y, [10.0, 0.1, 1.0], estimator=prototype)
    assert path.values == (10.0, 0.1, 1.0) and path.parameter == "C" and len(path) == 3
    agrees(path, "C", prototype, X, y)


@pytest.mark.parametrize(("name", "prototype"), [("C", SVC(tol=1e-5)), ("nu", NuSVC(tol=1e-5))], ids=["C", "nu"])
def test_tiny_pairs_on_a_stored_matrix_are_the_single_fits(name: str, prototype: Any) -> None:
    X, y = rows(180, k=6)
    X = X + 0.5 * np.eye(3)[y % 3] * (y[:, None] // 3)
    prototype = clone(prototype).set_params(kernel="precomputed", decision_function_shape="ovo")
    K = RBF(1.5)(X)
    path = svm_path(K, y, estimator=prototype, **{f"{name}s": [0.05, 0.2, 0.4]})
    agrees(path, name, prototype, K, y)


def test_gap_is_as_good_as_asked_for() -> None:
    X, y = rows(800)
    path = svm_path(X, y, np.geomspace(0.01, 100, 5), stop="gap", tol=1e-4)
    assert [c.relative_gap <= 1e-4 and c.kkt_violation <= 1e-4 for c in path.certificates] == [True] * 5
    assert path.certificates[0] is path[0].certificate_


@pytest.mark.parametrize("n", [120, 1700])
def test_several_classes_with_weights(n: int) -> None:
    X, y = rows(n, 3)
    labels, weight = np.array(["b", "a", "c"])[y], np.random.default_rng(0).integers(0, 4, n).astype(float)
    prototype = SVC(kernel=RBF(1.5), tol=1e-5, class_weight="balanced")
    path = svm_path(X, labels, [0.5, 5.0], estimator=prototype, sample_weight=weight)
    agrees(path, "C", prototype, X, labels, sample_weight=weight)
    single = clone(prototype).set_params(C=5.0).fit(X, labels, weight)
    assert (path[1].predict(X) == single.predict(X)).all()
    assert path[1].roles_.shape == single.roles_.shape
    assert path[1].margins_ == pytest.approx(single.margins_, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize(
    "options", [{"fit_intercept": False}, {"solver": "accelerated-projected-gradient", "max_iter": 50_000}]
)
def test_other_forms_of_the_classifier(options: dict[str, Any]) -> None:
    X, y = rows(60)
    prototype = SVC(kernel=RBF(1.5), tol=1e-5, **options)
    agrees(svm_path(X, y, [0.2, 2.0], estimator=prototype), "C", prototype, X, y)


@pytest.mark.parametrize("n", [150, 700])
def test_path_of_nu_for_classes(n: int) -> None:
    X, y = rows(n, 3)
    prototype = NuSVC(kernel=RBF(1.5), tol=1e-5)
    agrees(svm_path(X, y, nus=[0.3, 0.7, 0.5], estimator=prototype), "nu", prototype, X, y)


@pytest.mark.parametrize("n", [150, 700, 2300])
def test_paths_of_the_regressions(n: int) -> None:
    X, y = curve(n)
    prototype = SVR(kernel=RBF(1.0), tol=1e-5)
    agrees(svm_path(X, y, [3.0, 0.3], estimator=prototype), "C", prototype, X, y)
    agrees(svm_path(X, y, epsilons=[0.0, 0.5, 0.1], estimator=prototype), "epsilon", prototype, X, y)


def test_path_of_nu_for_regression_and_one_class() -> None:
    X, y = curve(200)
    weight = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    regression, one_class = NuSVR(kernel=RBF(1.0), tol=1e-6), OneClassSVM(kernel=RBF(1.0), tol=1e-6)
    path = svm_path(X, y, nus=[0.2, 0.6], estimator=regression, sample_weight=weight)
    agrees(path, "nu", regression, X, y, sample_weight=weight)
    path = svm_path(X, None, nus=[0.6, 0.2], estimator=one_class, sample_weight=weight)
    agrees(path, "nu", one_class, X, None, sample_weight=weight)
    agrees(svm_path(X, y, [0.5, 2.0], estimator=regression), "C", regression, X, y)


def test_answers_do_not_depend_on_the_order_of_the_list() -> None:
    X, y = rows(300)
    up, down = svm_path(X, y, [0.1, 1.0, 10.0]), svm_path(X, y, [10.0, 1.0, 0.1])
    for one, other in zip(up, down[::-1]):
        assert (one.dual_coef_ == other.dual_coef_).all() and one.C == other.C


def test_start_that_is_the_answer_takes_no_steps() -> None:
    """Where no weight is at its bound, another C changes nothing; the value in the middle is solved first."""
    X, y = rows(2400, seed=5)
    X = X + 4.0 * np.eye(3)[y]
    path = svm_path(X, y, [1e4, 1e5, 1e6], kernel=RBF(1.0))
    assert path[1].n_iter_[0] > 0 and path[0].n_iter_[0] == path[2].n_iter_[0] == 0
    assert path[2].dual_coef_ == pytest.approx(path[0].dual_coef_, rel=1e-3)


def test_values_given_twice_have_two_models() -> None:
    X, y = rows(80)
    path = svm_path(X, y, [1.0, 2.0, 1.0])
    assert path[0] is not path[2] and path[0].C == path[2].C == 1.0
    assert (path[0].dual_coef_ == path[2].dual_coef_).all()
    assert [model.C for model in path] == [1.0, 2.0, 1.0] == [model.C for model in path[:]]


def test_precomputed_matrix_is_what_the_kernel_gives() -> None:
    X, y = rows(200)
    K = RBF(1.0)(X)
    given, lazy = svm_path(K, y, [0.1, 10.0], kernel="precomputed"), svm_path(X, y, [0.1, 10.0], kernel=RBF(1.0))
    for one, other in zip(given, lazy):
        assert one.decision_function(K) == pytest.approx(other.decision_function(X), abs=1e-6)
    targets = X[:, 0]
    tubes = svm_path(K, targets, epsilons=[0.1, 0.2], estimator=SVR(kernel="precomputed"))
    assert tubes[0].predict(K) == pytest.approx(SVR(kernel=RBF(1.0)).fit(X, targets).predict(X), abs=1e-6)


def test_linear_path_has_coefficients_and_the_others_have_none() -> None:
    X, y = rows(90, 3)
    path = svm_path(X, y, [0.1, 1.0], kernel="linear")
    assert path.coef_path.shape == (2, 3, 3) and (path.coef_path[1] == path[1].coef_).all()
    with pytest.raises(AttributeError, match="finite feature map only"):
        _ = svm_path(X, y, [1.0]).coef_path


def test_table_has_a_line_for_each_value() -> None:
    X, y = rows(90)
    path = svm_path(X, y, [0.125, 4.0])
    head, names, first, second = repr(path).splitlines()
    assert head.startswith("SVC along C: 2 fits in ") and names.split()[:3] == ["C", "SVs", "objective"]
    assert first.split()[:2] == ["0.125", str(path[0].n_support_.sum())] and second.endswith("converged")
    assert path.seconds > 0


def test_estimator_is_left_as_it_was_and_models_can_be_used_on() -> None:
    X, y = rows(90)
    prototype = SVC(C=7.0, warm_start=True)
    path = svm_path(X, y, [1.0, 2.0], estimator=prototype, gamma=0.5)
    assert prototype.C == 7.0 and not hasattr(prototype, "dual_coef_") and prototype.gamma == "scale"
    assert path[0].warm_start and path[0].gamma == 0.5
    assert (pickle.loads(pickle.dumps(path[1])).predict(X) == path[1].predict(X)).all()
    tubes = svm_path(X, X[:, 0], epsilons=[0.1], estimator=SVR())
    assert "_warm_starts" not in vars(tubes[0])
    assert path[0].fit(X, y).certificate_.primal == pytest.approx(path[0].certificate_.primal)


def test_steps_are_limited_for_every_value() -> None:
    X, y = rows(900)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = svm_path(X, y, [1.0, 10.0], max_iter=5)
    assert [c.status for c in path.certificates] == [Status.iteration_limit] * 2
    assert [model.fit_status_ for model in path] == [1, 1] and all(model.n_iter_[0] <= 5 for model in path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one list .* none is given"),
        ({"Cs": [1.0], "nus": [0.5]}, "exactly one list .* Cs, nus are given"),
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [1.0, np.inf]}, "finite numbers, but holds inf.* a separate fit"),
        ({"Cs": [np.nan]}, "finite numbers, but holds nan"),
        ({"Cs": ["1"]}, "finite numbers, but holds '1'"),
        ({"Cs": "10"}, "finite numbers, but holds '10'"),
        ({"Cs": [True]}, "finite numbers, but holds True"),
        ({"Cs": [1.0, -1.0]}, "C must be a number above 0"),
        ({"nus": [0.5]}, "SVC has no parameter 'nu'; a path of it may be along C"),
        ({"Cs": [1.0], "estimator": NuSVC()}, "NuSVC has no parameter 'C'; a path of it may be along nu"),
        ({"nus": [1.5], "estimator": NuSVC()}, "nu must be"),
        ({"epsilons": [-0.1], "estimator": SVR()}, "epsilon must be"),
        ({"Cs": [1.0], "estimator": KernelRidge()}, "estimator must be an SVC"),
        ({"Cs": [1.0], "colour": 1}, "no parameter 'colour'"),
        ({"Cs": [1.0], "C": 2.0}, "leave out one"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], message: str) -> None:
    X, y = rows(30)
    with pytest.raises(ParameterError, match=message):
        svm_path(X, y, **options)


def test_one_class_only_is_told() -> None:
    with pytest.raises(DataError, match="two classes"):
        svm_path(np.eye(3), [1, 1, 1], [1.0])


def test_values_in_a_table_are_no_list() -> None:
    X, y = rows(30)
    with pytest.raises(ParameterError, match=r"Cs must hold finite numbers, but holds array\(\[1\., 1\.\]\)"):
        svm_path(X, y, np.ones((2, 2)))


class Shrunk(BaseEstimator):
    """A mean shrunk by C: an estimator of one's own that is fitted along it."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit_along(self, parameter: str, values: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
        models = [clone(self).set_params(**{parameter: value}) for value in values]
        for model in models:
            model.mean_ = model.C * np.average(y, weights=sample_weight)
        return models


def test_a_path_of_an_estimator_of_ones_own() -> None:
    path = svm_path(np.zeros((2, 1)), [1.0, 3.0], [2.0, 0.5, 2.0], estimator=Shrunk())
    assert [model.mean_ for model in path] == [4.0, 1.0, 4.0]
    assert path[0] is not path[2]
