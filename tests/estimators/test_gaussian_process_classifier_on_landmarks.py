"""GaussianProcessClassifier with approximation="nystroem": against the exact classifier, and wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as peers
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import GaussianProcessClassifier, config
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.estimators.gaussian import classes_over_landmarks
from mercer.kernels import RBF, Sigmoid, Spectrum, White
from mercer.priors import LogNormal
from mercer.selection import GridSearchCV
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2))
TWO = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=150) > 0, "same", "other")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=150), [-0.6, 0.5])
NEW = RNG.normal(size=(30, 2))
KERNEL = 4.0 * RBF(1.0)


def process(kernel: Any = KERNEL, **options: Any) -> GaussianProcessClassifier:
    defaults = {"approximation": "nystroem", "n_landmarks": 30, "random_state": 0, "optimizer": None}
    return GaussianProcessClassifier(kernel, **{**defaults, **options})


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_with_all_rows_as_landmarks_it_is_the_exact_classifier(y: np.ndarray) -> None:
    exact = GaussianProcessClassifier(KERNEL, optimizer=None, approximation="laplace").fit(X, y)
    model = process(n_landmarks=150, landmarks="uniform").fit(X, y)
    assert model.log_marginal_likelihood() == pytest.approx(exact.log_marginal_likelihood(), abs=1e-6)
    np.testing.assert_allclose(model.predict_proba(NEW), exact.predict_proba(NEW), atol=1e-6)
    for result, expected in zip(model.latent_mean_and_variance(NEW), exact.latent_mean_and_variance(NEW), strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-5)
    np.testing.assert_array_equal(model.predict(NEW), exact.predict(NEW))
    np.testing.assert_array_equal(np.sort(model.landmark_indices_), np.arange(150))
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, abs=1e-6)
    assert model.certificate_.kkt_violation < 1e-8 and model.certificate_.gap < 1e-12


def test_with_all_rows_it_is_that_of_scikit_learn() -> None:
    peer = Peer(4.0 * peers.RBF(1.0), optimizer=None).fit(X, TWO)
    model = process(landmarks=X).fit(X, TWO)
    assert model.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-5)
    # Its integral is by five error functions.
    np.testing.assert_allclose(model.predict_proba(NEW), peer.predict_proba(NEW), atol=2e-3)
    assert model.landmark_indices_ is None


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_classifiers_of_two_have_their_own_landmarks(scheme: str, tmp_path: Any) -> None:
    exact = GaussianProcessClassifier(KERNEL, optimizer=None, approximation="laplace", multi_class=scheme).fit(X, THREE)
    model = process(n_landmarks=150, multi_class=scheme).fit(X, THREE)
    assert model.log_marginal_likelihood_value_ == pytest.approx(exact.log_marginal_likelihood_value_, abs=1e-5)
    np.testing.assert_allclose(model.decision_function(NEW), exact.decision_function(NEW), atol=1e-5)
    assert model.y_train_ is None and len(model.X_train_) == 0
    with pytest.raises(ParameterError, match="needs the training rows"):
        model.log_marginal_likelihood(model.theta_)
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_the_search_finds_what_the_exact_search_finds(y: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = 1.0 * RBF(1.0)
    exact = GaussianProcessClassifier(kernel, approximation="laplace").fit(X, y)
    monkeypatch.setattr(classes_over_landmarks, "SAMPLE", 60)
    model = process(kernel, n_landmarks=100, optimizer="fmin_l_bfgs_b").fit(X, y)
    np.testing.assert_allclose(model.theta_, exact.theta_, atol=0.3)
    assert model.log_marginal_likelihood_value_ == pytest.approx(model.search_.value, rel=1e-9)
    assert model.search_.value == pytest.approx(exact.log_marginal_likelihood_value_, abs=0.2)
    # It began where the search on the sample ended.
    assert model.search_.best.start != tuple(kernel.theta)
    assert model.kernel_ == kernel.with_theta(model.theta_)
    np.testing.assert_allclose(model.predict_proba(NEW), exact.predict_proba(NEW), atol=0.05)


def test_priors_and_functions_of_the_user_take_part() -> None:
    kernel = 1.0 * RBF(1.0)
    tight = process(kernel, optimizer="fmin_l_bfgs_b", priors={"kernel.length_scale": LogNormal(0.0, 1e-3)})
    assert abs(np.log(tight.fit(X, TWO).kernel_.kernel.length_scale)) < 0.01

    def stay(objective: Any, start: Any, bounds: Any) -> tuple[Any, float]:
        return start, float(objective(start, eval_gradient=False))

    assert process(kernel, optimizer=stay).fit(X, TWO).kernel_ == kernel


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform", "leverage", "kmeans"])
def test_every_choice_of_landmarks_learns(landmarks: str) -> None:
    model = process(landmarks=landmarks).fit(X, TWO)
    assert model.score(X, TWO) > 0.85 and len(model.X_train_) <= 30
    spread = model.latent_mean_and_variance(NEW)[1]
    assert (spread > 0).all() and (spread <= 4.0 + 1e-9).all()


def test_strings_sparse_rows_and_single_precision() -> None:
    words = ["".join(RNG.choice(list("acgt"), 12)) for _ in range(60)]
    y = np.array([word.count("ac") > 0 for word in words])
    exact = GaussianProcessClassifier(Spectrum(2), optimizer=None, approximation="laplace").fit(words, y)
    model = process(Spectrum(2), n_landmarks=200).fit(words, y)
    np.testing.assert_allclose(model.predict_proba(words), exact.predict_proba(words), atol=1e-5)
    dense, sparse = process(landmarks=X[:30]).fit(X, TWO), process(landmarks=X[:30]).fit(sp.csr_matrix(X), TWO)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(NEW)), dense.predict_proba(NEW), atol=1e-6)
    single = process(landmarks=X[:30].astype(np.float32)).fit(X.astype(np.float32), TWO)
    np.testing.assert_allclose(single.predict_proba(NEW.astype(np.float32)), dense.predict_proba(NEW), atol=2e-3)


def test_the_bits_do_not_depend_on_threads() -> None:
    rows = RNG.normal(size=(3000, 2))
    y = np.digitize(rows[:, 0], [-0.5, 0.5])
    results = [process(n_jobs=jobs).fit(rows, y) for jobs in (1, 3)]
    np.testing.assert_array_equal(results[0].dual_coef_, results[1].dual_coef_)
    np.testing.assert_array_equal(*[model.predict_proba(rows[:500]) for model in results])


@pytest.mark.parametrize("rows", [2, 3])
def test_few_and_equal_rows(rows: int) -> None:
    y = np.arange(rows)
    exact = GaussianProcessClassifier(KERNEL, optimizer=None, approximation="laplace").fit(X[:rows], y)
    np.testing.assert_allclose(process().fit(X[:rows], y).predict_proba(NEW), exact.predict_proba(NEW), atol=1e-6)
    same = process(RBF(1.0)).fit(np.ones((40, 2)), np.arange(40) % rows)
    np.testing.assert_allclose(same.predict_proba(np.ones((1, 2))), 1 / rows, atol=0.02)


def test_files_come_back_and_a_later_fit_to_all_rows_forgets(tmp_path: Any) -> None:
    for y in (TWO, THREE):
        model = process().fit(X, y)
        mercer.save(model, tmp_path / "m.mercer")
        again = mercer.load(tmp_path / "m.mercer")
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    exact = model.set_params(approximation="laplace").fit(X[:50], TWO[:50])
    assert not hasattr(exact, "landmark_indices_") and exact.L_.shape == (50, 50) and len(exact.y_train_) == 50
    on = exact.set_params(approximation="nystroem").fit(X, TWO)
    assert not hasattr(on, "W_sr_") and not hasattr(on, "pi_")
    with pytest.raises(AttributeError, match="no factor"):
        on.L_  # noqa: B018


def test_searches_over_parameters_fit_it() -> None:
    search = GridSearchCV(process(), {"kernel": [KERNEL, RBF(30.0)]}, cv=3).fit(X, TWO)
    assert search.best_params_["kernel"] == KERNEL


def test_a_large_remainder_is_a_warning() -> None:
    with pytest.warns(MercerWarning, match="5 landmarks leave"):
        process(RBF(0.05), n_landmarks=5).fit(X, TWO)


def test_many_rows_do_not_need_a_square_matrix() -> None:
    rows = RNG.normal(size=(20_000, 2))
    y = rows[:, 0] * rows[:, 1] > 0
    with config(memory=2**26):
        model = process(n_landmarks=40).fit(rows, y)
        assert (model.predict(rows[:2000]) == y[:2000]).mean() > 0.95
    assert 0 < model.certificate_.peak_bytes < 2**26


@pytest.mark.parametrize(
    ("kernel", "options", "error", "message"),
    [
        (KERNEL, {"approximation": "nystrom"}, ParameterError, "approximation must be"),
        (KERNEL, {"approximation": None}, ParameterError, "approximation must be"),
        (KERNEL, {"n_landmarks": 0}, ParameterError, "n_landmarks must be"),
        (KERNEL, {"n_landmarks": "auto"}, ParameterError, "n_landmarks must be"),
        (KERNEL, {"landmarks": "random"}, ParameterError, "landmarks must be one of"),
        (KERNEL, {"landmarks": X[:5, :1]}, DataError, "landmarks"),
        (KERNEL, {"warm_start": True}, ParameterError, "warm_start=True"),
        ("precomputed", {}, ParameterError, "precomputed"),
        (KERNEL + White(0.1), {}, ParameterError, "without White parts"),
        (KERNEL * White(0.1), {}, ParameterError, "without White parts"),
        (Sigmoid(), {"allow_indefinite": True}, IndefiniteKernelError, "positive semi-definite"),
    ],
)
def test_what_cannot_be_used_is_said_before_a_search(
    kernel: Any, options: Any, error: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*arguments: Any) -> None:
        raise AssertionError("a search began")

    monkeypatch.setattr(classes_over_landmarks.ClassLandmarkFit, "_search_on_sample", search)
    with pytest.raises(error, match=message):
        process(kernel, optimizer="fmin_l_bfgs_b", **options).fit(X[:50], TWO[:50])


def test_what_it_does_not_keep_is_said() -> None:
    model = process().fit(X, TWO)
    with pytest.raises(ParameterError, match='fit with approximation="laplace"'):
        model.log_marginal_likelihood(model.theta_)
    with config(memory=2**15), pytest.raises(MemoryBudgetError, match="n_landmarks"):
        process(landmarks=X[:100]).fit(X, TWO)


@pytest.mark.slow
@parametrize_with_checks([process(None, n_landmarks=300)])
@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_prior_of_large_variance_has_its_mode() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 2))
    labels = rows[:, 0] + rows[:, 1] ** 2 > 0.5
    values = []
    for variance in (1e9, 1e12):
        # The gradient does not fall in every step to a mode that is millions of deviations away.
        model = GaussianProcessClassifier(
            variance * RBF(1.0), optimizer=None, approximation="nystroem", n_landmarks=40, random_state=0
        ).fit(rows, labels)
        assert model.certificate_.status is Status.converged and model.certificate_.kkt_violation < 1e-9
        values.append(model.log_marginal_likelihood_value_)
    assert values[0] - 10 < values[1] < values[0]
