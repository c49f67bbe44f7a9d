"""GaussianProcessRegressor with approximation="nystroem": against the exact process, and wrong input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import GaussianProcessRegressor, config
from mercer._errors import IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.estimators.gaussian import over_landmarks
from mercer.kernels import RBF, Kernel, Linear, Matern, Sigmoid, Spectrum, White
from mercer.priors import LogNormal
from mercer.selection import GridSearchCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=400)
NEW = RNG.normal(size=(30, 3))
KERNEL = 3.0 * RBF(1.2)


def process(kernel: Any = KERNEL, **options: Any) -> GaussianProcessRegressor:
    defaults = {"alpha": 0.02, "approximation": "nystroem", "n_landmarks": 60, "random_state": 0, "optimizer": None}
    return GaussianProcessRegressor(kernel, **{**defaults, **options})


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (KERNEL, {}),
        (KERNEL + White(0.05), {"alpha": np.linspace(0.01, 0.2, 400)}),
        (1.0 * Matern(1.0, nu=1.5) + Linear(), {"noise": 0.05, "normalize_y": True}),
    ],
    ids=["alpha", "white and alpha of each row", "noise"],
)
@pytest.mark.parametrize("several", [False, True])
def test_with_all_rows_as_landmarks_it_is_the_exact_process(kernel: Kernel, options: Any, several: bool) -> None:
    y = np.c_[Y, X[:, 0] + 5] if several else Y
    options = {"alpha": 0.02, "optimizer": None, **options}
    exact = GaussianProcessRegressor(kernel, **options).fit(X, y)
    model = process(kernel, n_landmarks=500, landmarks="uniform", **options).fit(X, y)
    for observation in (None, True, False):
        results = model.predict(NEW, return_std=True, observation=observation)
        for result, expected in zip(results, exact.predict(NEW, return_std=True, observation=observation), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        model.predict(NEW, return_cov=True)[1], exact.predict(NEW, return_cov=True)[1], atol=1e-7
    )
    # Draws themselves depend on the signs of eigenvectors.
    draws, (expected_mean, deviation) = model.sample_y(NEW[:5], 400), exact.predict(NEW[:5], return_std=True)
    assert (np.abs(draws.mean(axis=-1) - expected_mean) <= 6 * deviation / np.sqrt(400) + 1e-6).all()
    np.testing.assert_allclose(model.log_marginal_likelihood_bounds_, exact.log_marginal_likelihood_value_, rtol=1e-8)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_bounds_[0]
    assert model.noise_ == exact.noise_ and model.kernel_ == exact.kernel_
    np.testing.assert_array_equal(np.sort(model.landmark_indices_), np.arange(400))


@pytest.mark.filterwarnings("ignore:40 landmarks leave:mercer._errors.MercerWarning")
def test_the_posterior_over_given_landmarks_is_that_of_dense_formulas() -> None:
    Z, noise = X[:40], 0.02
    model = process(landmarks=Z).fit(X, Y)
    K_mm, K_nm, K_sm = KERNEL(Z, Z.copy()), KERNEL(X, Z), KERNEL(NEW, Z)
    system = K_mm + K_nm.T @ K_nm / noise
    mean, cov = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(mean, K_sm @ np.linalg.solve(system, K_nm.T @ Y) / noise, atol=1e-8)
    expected = KERNEL(NEW) - K_sm @ np.linalg.solve(K_mm, K_sm.T) + K_sm @ np.linalg.solve(system, K_sm.T)
    np.testing.assert_allclose(cov, expected, atol=1e-8)
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], np.sqrt(expected.diagonal()), rtol=1e-7)
    assert model.landmark_indices_ is None and model.X_train_.shape == (40, 3)


def test_the_search_finds_what_the_exact_search_finds() -> None:
    exact = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1).fit(X, Y)
    model = process(1.0 * RBF(1.0), alpha=1e-10, noise=0.1, n_landmarks=200, optimizer="fmin_l_bfgs_b").fit(X, Y)
    np.testing.assert_allclose(model.theta_, exact.theta_, atol=0.15)
    low, high = model.log_marginal_likelihood_bounds_
    assert low == model.log_marginal_likelihood_value_ == pytest.approx(model.search_.value)
    assert exact.log_marginal_likelihood_value_ - 5 < low <= high < low + 40
    np.testing.assert_allclose(model.predict(NEW), exact.predict(NEW), atol=0.1)


def test_many_rows_are_searched_on_a_sample_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_landmarks, "SAMPLE", 200)
    rows = RNG.normal(size=(600, 2))
    y = np.sin(2 * rows[:, 0]) + 0.2 * RNG.normal(size=600)
    model = process(1.0 * RBF(30.0), alpha=1e-10, noise=1.0, optimizer="fmin_l_bfgs_b", n_landmarks=40).fit(rows, y)
    assert model.noise_ == pytest.approx(0.04, rel=0.15)
    assert model.search_.best.start != (0.0, np.log(30.0), 0.0)
    assert len(model.alpha_) <= 40 and model.certificate_.iterations == model.search_.evaluations > 1


def test_priors_and_functions_of_the_user_take_part() -> None:
    free = process(1.0 * RBF(1.0), optimizer="fmin_l_bfgs_b").fit(X, Y)
    tight = process(1.0 * RBF(1.0), optimizer="fmin_l_bfgs_b", priors={"kernel.length_scale": LogNormal(0.0, 1e-3)})
    assert (
        abs(np.log(tight.fit(X, Y).kernel_.kernel.length_scale)) < 0.01 < abs(np.log(free.kernel_.kernel.length_scale))
    )

    def stay(objective: Any, start: Any, bounds: Any) -> tuple[Any, float]:
        value, gradient = objective(start)
        assert gradient.shape == start.shape
        return start, value

    assert process(1.0 * RBF(1.0), optimizer=stay).fit(X, Y).kernel_ == 1.0 * RBF(1.0)


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform", "leverage", "kmeans"])
def test_every_choice_of_landmarks_learns(landmarks: str) -> None:
    assert process(landmarks=landmarks).fit(X, Y).score(X, Y) > 0.95


@pytest.mark.filterwarnings("ignore:30 landmarks leave:mercer._errors.MercerWarning")
def test_strings_sparse_rows_and_single_precision() -> None:
    words = ["".join(RNG.choice(list("acgt"), 12)) for _ in range(120)]
    y = np.array([word.count("ac") for word in words], dtype=float)
    exact = GaussianProcessRegressor(Spectrum(2), alpha=0.02, optimizer=None).fit(words, y)
    model = process(Spectrum(2), n_landmarks=200).fit(words, y)
    np.testing.assert_allclose(model.predict(words, return_std=True), exact.predict(words, return_std=True), atol=1e-6)
    dense, sparse = process(landmarks=X[:30]).fit(X, Y), process(landmarks=X[:30]).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(NEW)), dense.predict(NEW), atol=1e-6)
    single = process(landmarks=X[:30].astype(np.float32)).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.predict(NEW.astype(np.float32)), dense.predict(NEW), atol=2e-3)


@pytest.mark.slow
def test_the_bits_do_not_depend_on_threads() -> None:
    rows = RNG.normal(size=(7000, 3))
    y = np.sin(rows).sum(axis=1)
    results = []
    for jobs in (1, 2, 5):
        model = process(n_landmarks=300, n_jobs=jobs).fit(rows, y)
        results.append(np.concatenate([model.alpha_, *model.predict(rows[:2500], return_std=True)]))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    search = [process(1.0 * RBF(1.0), optimizer="fmin_l_bfgs_b", n_jobs=n).fit(X, Y).theta_ for n in (1, 3)]
    np.testing.assert_array_equal(search[0], search[1])


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(rows: int) -> None:
    exact = GaussianProcessRegressor(KERNEL, alpha=0.02, optimizer=None).fit(X[:rows], Y[:rows])
    model = process().fit(X[:rows], Y[:rows])
    np.testing.assert_allclose(model.predict(NEW, return_std=True), exact.predict(NEW, return_std=True), atol=1e-6)


def test_equal_rows_and_constant_targets() -> None:
    same = np.ones((50, 2))
    model = process(RBF(1.0)).fit(same, np.arange(50.0))
    mean, std = model.predict(same[:1], return_std=True)
    assert mean[0] == pytest.approx(24.5 * 50 / 50.02) and std[0] == pytest.approx(np.sqrt(0.02 / 50.02))
    with pytest.warns(MercerWarning, match="in every row"):
        constant = process(RBF(1.0)).fit(X, np.full(400, 7.0))
    assert np.isfinite(constant.predict(NEW)).all()


def test_files_come_back_and_a_later_fit_to_all_rows_forgets(tmp_path: Any) -> None:
    model = process().fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for result, expected in zip(again.predict(NEW, return_std=True), model.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(again.log_marginal_likelihood_bounds_, model.log_marginal_likelihood_bounds_)
    exact = model.set_params(approximation=None).fit(X[:50], Y[:50])
    assert not hasattr(exact, "landmark_indices_") and not hasattr(exact, "log_marginal_likelihood_bounds_")
    assert exact.L_.shape == (50, 50) and exact.leave_one_out().mean.shape == (50,)
    on = exact.set_params(approximation="nystroem").fit(X, Y)
    assert not hasattr(on, "L_")


def test_searches_over_parameters_fit_it() -> None:
    search = GridSearchCV(process(), {"alpha": [1e-2, 100.0]}, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] == 1e-2


def test_a_large_remainder_is_a_warning() -> None:
    with pytest.warns(MercerWarning, match="n_landmarks"):
        process(RBF(0.1), alpha=1e-6, n_landmarks=5).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        process(n_landmarks=200).fit(X, Y)


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (KERNEL, {"approximation": "nystrom"}, "approximation must be"),
        (KERNEL, {"n_landmarks": 0}, "n_landmarks must be"),
        (KERNEL, {"landmarks": "random"}, "landmarks must be one of"),
        (KERNEL, {"mean": "linear"}, "mean='linear'"),
        (KERNEL, {"objective": "loo"}, "objective='loo'"),
        ("precomputed", {}, "precomputed"),
        (KERNEL, {"random_state": "seed"}, "random_state must be"),
        (KERNEL, {"alpha": 0.0}, "needs noise in every row"),
        (White(1.0), {}, "terms of a sum"),
        (KERNEL * White(1.0), {}, "terms of a sum"),
    ],
)
def test_what_cannot_be_combined_is_said(kernel: Any, options: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        process(kernel, **options).fit(X[:50], Y[:50])


def test_what_it_does_not_keep_is_said() -> None:
    model = process().fit(X, Y)
    with pytest.raises(ParameterError, match="leave_one_out needs the training rows"):
        model.leave_one_out()
    with pytest.raises(ParameterError, match="condition_on needs the training rows"):
        model.condition_on(X[:2], Y[:2])
    with pytest.raises(ParameterError, match="needs the training rows"):
        model.log_marginal_likelihood(model.theta_)
    with pytest.raises(AttributeError, match="no factor"):
        model.L_  # noqa: B018
    with pytest.raises(IndefiniteKernelError, match="positive semi-definite"):
        process(Sigmoid(), allow_indefinite=True).fit(X, Y)
    with config(memory=2**15), pytest.raises(MemoryBudgetError):
        process(landmarks=X[:200]).fit(X, Y)


@parametrize_with_checks([process(None, n_landmarks=300)])
@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
