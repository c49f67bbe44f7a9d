"""Kernels chosen by the leave-one-out error of ridge regression: against grids, refits and repeated rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import KernelRidge
from mercer._errors import IndefiniteKernelError, ParameterError
from mercer.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial, Spectrum
from mercer.solvers.gaussian.search import BoundWarning
from sklearn_checks import in_turn, name_of

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 4))


def function(rows: np.ndarray) -> np.ndarray:
    return np.sin(2 * rows[:, 0]) + 0.5 * rows[:, 1] ** 2


Y = function(X) + 0.1 * RNG.normal(size=90)
NEW = RNG.normal(size=(300, 4))
# Columns 2 and 3 tell nothing, so that their length scales have no upper end.
RELEVANCE = RBF([1.0] * 4).bounded(length_scale=(0.1, 100.0))
pytestmark = pytest.mark.filterwarnings("ignore::mercer.solvers.gaussian.search.BoundWarning")


# Each check once, of searches with and without the penalty.
CHECKS = in_turn([KernelRidge(alpha, kernel="rbf", gamma="loo") for alpha in (0.5, "loo")], 1)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=[name_of(check) for _, check in CHECKS])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@functools.cache
def of_gamma() -> KernelRidge:
    """For tests that only read it."""
    return KernelRidge("loo", kernel="rbf", gamma="loo").fit(X, Y)


def error(model: KernelRidge) -> float:
    """The mean squared error of leave-one-out."""
    return float(np.mean((model.loo_predictions_ - model.y_fit_) ** 2))


def test_no_gamma_of_a_fine_grid_is_better() -> None:
    grid = [error(KernelRidge("loo", kernel="rbf", gamma=g).fit(X, Y)) for g in np.geomspace(1e-3, 1e1, 41)]
    assert error(of_gamma()) <= min(grid) * (1 + 1e-4)


def test_length_scales_of_the_columns_predict_better_than_any_common_one() -> None:
    tuned = KernelRidge("loo", kernel=RELEVANCE, kernel_params="loo").fit(X, Y)
    scales = np.array(tuned.kernel_.length_scale)
    assert scales[:2].max() * 3 < scales[2:].min()
    off = [np.mean((model.predict(NEW) - function(NEW)) ** 2) for model in (tuned, of_gamma())]
    assert off[0] < 0.1 * off[1]


def test_the_search_ends_at_a_minimum_of_refits() -> None:
    rows = X[:40, :1]
    y = np.sin(2 * rows[:, 0]) + 0.3 * RNG.normal(size=40)
    kernel = Matern(1.0, nu=2.5).bounded(length_scale=(0.1, 100.0))
    tuned = KernelRidge("loo", kernel=kernel, kernel_params="loo").fit(rows, y)
    assert np.exp(-tuned.search_.value) == pytest.approx(error(tuned), rel=1e-2)

    def refits(scale: float, alpha: float) -> float:
        K, total = Matern(scale, nu=2.5)(rows), 0.0
        for i in range(40):
            others = np.arange(40) != i
            c = np.linalg.solve(K[np.ix_(others, others)] + alpha * np.eye(39), y[others])
            total += float((K[i, others] @ c - y[i]) ** 2)
        return total / 40

    scale, alpha = tuned.kernel_.length_scale, np.exp(tuned.search_.theta[-1])
    best = refits(scale, alpha)
    assert np.exp(-tuned.search_.value) == pytest.approx(best, rel=1e-9)
    for factor in (0.8, 1.25):
        assert refits(scale * factor, alpha) > best
        assert refits(scale, alpha * factor) > best


def test_a_given_penalty_is_kept() -> None:
    tuned = KernelRidge(0.3, kernel=RELEVANCE, kernel_params="loo").fit(X, Y)
    assert tuned.alpha_ == 0.3 and not hasattr(tuned, "path_")
    assert len(tuned.search_.theta) == 4
    assert np.exp(-tuned.search_.value) == pytest.approx(error(tuned), rel=1e-8)


@pytest.mark.parametrize(
    ("parameters", "kernel"),
    [
        ({"kernel": "laplacian", "gamma": "loo"}, Laplacian),
        ({"kernel": "poly", "degree": 2, "gamma": "loo", "coef0": 2.0}, Polynomial),
        ({"kernel": "poly", "degree": 2, "kernel_params": "loo"}, Polynomial),
        ({"kernel": "RBF(1.0) + 0.5 * Linear()", "kernel_params": "loo"}, None),
    ],
    ids=str,
)
def test_names_and_expressions(parameters: dict[str, Any], kernel: type[Kernel] | None) -> None:
    tuned = KernelRidge("loo", **parameters).fit(X, Y)
    less = {name: value for name, value in parameters.items() if value != "loo"}
    plain = KernelRidge("loo", **less).fit(X, Y)
    assert kernel is None or isinstance(tuned.kernel_, kernel)
    assert error(tuned) <= error(plain) * (1 + 1e-3)
    if parameters["kernel"] == "poly":
        assert (tuned.kernel_.offset == 2.0) == ("coef0" in parameters)


def test_rows_that_are_not_vectors() -> None:
    texts = ["".join(RNG.choice(list("ab"), 12)) for _ in range(40)]
    y = np.array([text.count("ab") for text in texts], dtype=float)
    kernel = 1.0 * Spectrum(1).normalized() + 1.0 * Spectrum(2).normalized()
    tuned = KernelRidge("loo", kernel=kernel, kernel_params="loo").fit(texts, y)
    assert tuned.kernel_ != kernel
    assert error(tuned) <= error(KernelRidge("loo", kernel=kernel).fit(texts, y)) * (1 + 1e-4)


def test_weights_count_repetitions() -> None:
    weights = RNG.integers(0, 4, 90)
    parameters = {"kernel": RELEVANCE, "kernel_params": "loo"}
    weighted = KernelRidge("loo", **parameters).fit(X, Y, weights)
    repeated = KernelRidge("loo", **parameters).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert weighted.search_.value == pytest.approx(repeated.search_.value, rel=1e-4)
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-2, atol=1e-2)


def test_several_targets_share_the_kernel() -> None:
    targets = np.c_[Y, np.cos(X[:, 0])]
    tuned = KernelRidge("loo", kernel=RELEVANCE, kernel_params="loo", alpha_per_target=True).fit(X, targets)
    assert tuned.alpha_.shape == (2,) and tuned.predict(NEW).shape == (300, 2)
    common = KernelRidge("loo", kernel="rbf", gamma="loo").fit(X, targets)
    assert error(tuned) < 0.3 * error(common)


@pytest.mark.slow
def test_many_rows_start_from_a_sample() -> None:
    rows = RNG.normal(size=(1300, 2))
    y = np.sin(2 * rows[:, 0]) + 0.1 * RNG.normal(size=1300)
    tuned = KernelRidge("loo", kernel=RBF([3.0, 3.0]), kernel_params="loo").fit(rows, y)
    assert tuned.search_.evaluations < 30
    assert error(tuned) < 0.0115


@pytest.mark.slow
def test_the_bits_do_not_depend_on_the_number_of_threads() -> None:
    rows = RNG.normal(size=(600, 3))
    y = np.sin(2 * rows[:, 0]) + 0.1 * RNG.normal(size=600)
    one, two = (KernelRidge("loo", kernel=RBF(1.0), kernel_params="loo", n_jobs=jobs).fit(rows, y) for jobs in (1, 2))
    assert one.search_ == two.search_
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_the_second_fit_forgets_the_search() -> None:
    model = KernelRidge("loo", kernel="rbf", gamma="loo").fit(X[:30], Y[:30])
    assert model.search_.evaluations > 1
    assert not hasattr(model.set_params(gamma=1.0).fit(X[:30], Y[:30]), "search_")


def test_a_model_file_keeps_the_search(tmp_path: Any) -> None:
    model = of_gamma()
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert again.search_ == model.search_ and again.get_params()["gamma"] == "loo"


def test_a_bound_is_reported() -> None:
    with pytest.warns(BoundWarning, match="length_scale"):
        KernelRidge("loo", kernel=RBF(1.0).bounded(length_scale=(0.01, 0.1)), kernel_params="loo").fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "linear", "gamma": "loo"}, "gamma='loo' needs a kernel that has a gamma"),
        ({"kernel": RBF(1.0), "gamma": "loo"}, "kernel_params='loo'"),
        ({"kernel": "precomputed", "gamma": "loo"}, "'precomputed'"),
        ({"kernel": "precomputed", "kernel_params": "loo"}, "'precomputed'"),
        ({"kernel": Linear(), "kernel_params": "loo"}, "free parameters"),
        ({"kernel": RBF(1.0).fixed(), "kernel_params": "loo"}, "free parameters"),
        ({"kernel": "rbf", "kernel_params": "cv"}, "kernel_params must be"),
        ({"kernel": "rbf", "gamma": "cv"}, "gamma must be"),
        ({"kernel": "rbf", "gamma": "loo", "alpha": "gcv"}, "cannot be combined"),
        ({"kernel": "rbf", "gamma": "loo", "alpha": [0.1, 0.2]}, "one penalty"),
    ],
    ids=str,
)
def test_searches_that_cannot_be_made(parameters: dict[str, Any], message: str) -> None:
    rows = X @ X.T if parameters["kernel"] == "precomputed" else X
    with pytest.raises(ParameterError, match=message):
        KernelRidge(**{"alpha": "loo", **parameters}).fit(rows, np.c_[Y, Y])


def test_a_kernel_that_is_not_positive_definite_with_the_penalty() -> None:
    model = KernelRidge(1e-3, kernel="sigmoid", coef0=-2.0, gamma="loo", allow_indefinite=True)
    with pytest.raises(IndefiniteKernelError, match="choose a larger alpha"):
        model.fit(X, Y)


@pytest.mark.parametrize("units", [np.full(3, 1e4), np.full(3, 1e-4), np.array([1e4, 1e-4, 1.0])])
def test_columns_in_other_units_have_as_good_a_kernel(units: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(240, 3)), 0.1 * rng.normal(size=240)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2
    errors = []
    for scale in (np.ones(3), units):
        model = KernelRidge("loo", kernel=RBF([1.0, 1.0, 1.0]), kernel_params="loo")
        model.fit(X[:120] * scale, f[:120] + noise[:120])
        errors.append(np.sqrt(np.mean((model.predict(X[120:] * scale) - f[120:]) ** 2)))
    assert errors[0] < 0.2 and errors[1] < 1.2 * errors[0]
