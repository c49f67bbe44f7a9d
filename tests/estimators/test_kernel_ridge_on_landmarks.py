"""KernelRidge with approximation="nystroem": against the exact learner, features and wrong input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import mercer
from mercer import KernelRidge, config
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, Sigmoid, Spectrum
from mercer.maps import NystroemMap
from mercer.selection import GridSearchCV, leave_one_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=600)


def ridge(**options):
    defaults = {"kernel": RBF(1.0), "approximation": "nystroem", "n_landmarks": 60, "random_state": 0}
    return KernelRidge(options.pop("alpha", 0.1), **{**defaults, **options})


def furthest(model):
    """The most that a value of f can be from the best one, as k(x, x) is 1 and alpha bounds the curvature."""
    assert model.certificate_.relative_gap <= model.tol
    return np.sqrt(model.certificate_.gap / model.alpha) + 1e-9


def test_with_all_rows_as_landmarks_it_is_the_exact_learner():
    exact = KernelRidge(0.1, kernel=RBF(1.0)).fit(X[:200], Y[:200])
    model = ridge(n_landmarks=500, landmarks="uniform", tol=1e-12).fit(X[:200], Y[:200])
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=furthest(model))
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-9)
    np.testing.assert_array_equal(np.sort(model.landmark_indices_), np.arange(200))


def test_on_given_landmarks_it_is_ridge_regression_on_features():
    phi = NystroemMap(RBF(1.0), 60, random_state=0).fit(X)
    weights = RNG.uniform(0.2, 3.0, len(X))
    model = ridge(landmarks=phi.landmarks_, tol=1e-12).fit(X, Y, weights)
    features = Ridge(0.1, fit_intercept=False).fit(phi.transform(X), Y, weights)
    np.testing.assert_allclose(model.predict(X), features.predict(phi.transform(X)), atol=furthest(model))
    assert model.landmark_indices_ is None


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform", "leverage", "kmeans"])
def test_every_choice_of_landmarks_learns(landmarks):
    model = ridge(landmarks=landmarks).fit(X, Y)
    assert model.score(X, Y) > 0.95 and model.X_fit_.shape == (60, 3)


def test_targets_with_penalties_of_their_own_and_weights_of_zero():
    targets = np.column_stack([Y, X[:, 0], Y])
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    given = X[1:100:3]
    both = ridge(alpha=[0.1, 10.0, 0.1], landmarks=given, tol=1e-12).fit(X, targets, weights)
    for j, alpha in enumerate([0.1, 10.0, 0.1]):
        used = weights > 0
        alone = ridge(alpha=alpha, landmarks=given, tol=1e-12).fit(X[used], targets[used, j])
        np.testing.assert_allclose(both.predict(X)[:, j], alone.predict(X), atol=1e-6)
    model = ridge().fit(X, Y, weights)
    assert (weights[model.landmark_indices_] > 0).all()


def test_integer_weights_are_repeated_rows():
    counts = RNG.integers(0, 4, len(X))
    weighted = ridge(landmarks=X[:50], tol=1e-12).fit(X, Y, counts)
    repeated = ridge(landmarks=X[:50], tol=1e-12).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    allowed = furthest(weighted) + furthest(repeated)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0, atol=allowed)


def test_strings_and_sparse_rows():
    words = ["".join(RNG.choice(list("acgt"), 12)) for _ in range(120)]
    y = np.array([word.count("ac") for word in words], dtype=float)
    model = ridge(kernel=Spectrum(2), n_landmarks=40).fit(words, y)
    assert model.score(words, y) > 0.9
    dense, sparse = ridge(landmarks=X[:30]).fit(X, Y), ridge(landmarks=X[:30]).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X[:9])), dense.predict(X[:9]), atol=1e-6)


def test_rows_in_single_precision_and_predictions_of_them():
    single = ridge(alpha=1e-4, landmarks=X[:60].astype(np.float32)).fit(X.astype(np.float32), Y)
    double = ridge(alpha=1e-4, landmarks=X[:60]).fit(X, Y)
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), double.predict(X), atol=2e-2)


def test_the_bits_do_not_depend_on_threads():
    values = []
    for jobs in (1, 2, 5):
        with config(n_jobs=jobs):
            values.append(ridge().fit(X, Y).dual_coef_)
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


def test_it_is_saved_and_loaded(tmp_path):
    model = ridge().fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.landmark_indices_, model.landmark_indices_)


def test_a_later_fit_without_landmarks_forgets_them():
    model = ridge().fit(X, Y).set_params(approximation=None).fit(X[:50], Y[:50])
    assert not hasattr(model, "landmark_indices_") and model.loo_score_ > 0.5


def test_searches_fit_it():
    search = GridSearchCV(ridge(), {"alpha": [1e-3, 0.1, 1e3]}, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] < 1e3
    alone = ridge(alpha=0.1).fit(X[200:], Y[200:]).score(X[:200], Y[:200])
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(alone, abs=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(rows):
    model = ridge().fit(X[:rows], Y[:rows])
    exact = KernelRidge(0.1, kernel=RBF(1.0)).fit(X[:rows], Y[:rows])
    np.testing.assert_allclose(model.predict(X[:9]), exact.predict(X[:9]), atol=1e-6)


def test_equal_rows_and_constant_columns():
    same = np.ones((50, 2))
    model = ridge().fit(same, np.arange(50.0))
    np.testing.assert_allclose(model.predict(same[:1]), [50 * 24.5 / 50.1], rtol=1e-6)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"approximation": "nystrom"}, "approximation must be"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
        ({"n_landmarks": 2.5}, "n_landmarks must be"),
        ({"landmarks": "random"}, "landmarks must be one of"),
        ({"tol": -1.0}, "tol must be"),
        ({"alpha": 0.0}, "alpha > 0"),
        ({"alpha": "aic"}, "alpha must be"),
        ({"alpha": "loo", "alphas": [0.0, 1.0]}, "alphas > 0"),
        ({"alphas": [1.0]}, "already chosen"),
        ({"kernel": "rbf", "gamma": "loo"}, "kernels are not chosen on landmarks"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        ridge(**options).fit(X[:50], Y[:50])


@pytest.mark.parametrize("criterion", ["loo", "gcv", "evidence"])
@pytest.mark.parametrize("per_target", [False, True])
def test_with_all_rows_as_landmarks_the_penalty_is_that_of_the_exact_learner(criterion, per_target):
    targets = np.column_stack([Y, X[:, 0] + RNG.normal(size=600)])[:150]
    weights = RNG.integers(0, 3, 150)
    common = {"kernel": RBF(1.0), "alpha_per_target": per_target}
    for alphas in (None, [0.03, 0.3, 3.0, 30.0]):
        exact = KernelRidge(criterion, alphas=alphas, **common).fit(X[:150], targets, weights)
        model = ridge(alpha=criterion, alphas=alphas, landmarks=X[:150], **common).fit(X[:150], targets, weights)
        np.testing.assert_allclose(model.alpha_, exact.alpha_, rtol=0.15 if alphas is None else 1e-12)
        assert np.shape(model.alpha_) == np.shape(exact.alpha_)
        best = [path.of(criterion) for path in (exact.path_, model.path_)]
        best = [-curve if criterion == "evidence" else curve for curve in best]
        least, own = (curve.min(axis=0) if per_target else curve.sum(axis=1).min() for curve in best)
        np.testing.assert_allclose(own, least, rtol=2e-3)
        if alphas is not None:
            np.testing.assert_allclose(model.path_.gcv, exact.path_.gcv, rtol=1e-6)
            np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-5)
        assert model.certificate_.relative_gap <= model.tol


def test_a_chosen_penalty_is_that_of_left_out_rows():
    model = ridge(alpha="loo").fit(X, Y)
    errors = []
    for alpha in (model.alpha_ / 3, model.alpha_, model.alpha_ * 3):
        landmarks, left = X[model.landmark_indices_], []
        for part in np.array_split(np.arange(600), 12):
            rest = np.setdiff1d(np.arange(600), part)
            fold = ridge(alpha=alpha, landmarks=landmarks).fit(X[rest], Y[rest])
            left.append((fold.predict(X[part]) - Y[part]) ** 2)
        errors.append(np.concatenate(left).mean())
    assert errors[1] < min(errors[0], errors[2])
    assert errors[1] == pytest.approx(model.path_.loo.min(), rel=0.05)
    again = ridge(alpha=model.alpha_).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-3)
    assert not hasattr(again, "path_")


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e140])
def test_penalties_of_tiny_and_huge_targets(scale):
    one, other = (ridge(alpha="loo").fit(X[:200], Y[:200] * s) for s in (1.0, scale))
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-6)


def test_penalties_of_awkward_rows():
    assert ridge(alpha="loo").fit(X[:1], Y[:1]).alpha_ > 0
    assert ridge(alpha="gcv").fit(X[:2], Y[:2]).alpha_ > 0
    same = ridge(alpha="gcv").fit(np.ones((50, 2)), np.arange(50.0))
    assert same.alpha_ > 0 and np.isfinite(same.predict(np.ones((1, 2)))).all()
    with pytest.warns(MercerWarning, match="repeat another row"):
        ridge(alpha="loo").fit(np.repeat(X[:50], 2, axis=0), np.repeat(Y[:50], 2))
    zero = ridge(alpha="evidence").fit(X[:50], np.column_stack([Y[:50], np.zeros(50)]))
    assert zero.predict(X[:3])[:, 1].tolist() == [0.0, 0.0, 0.0]
    with pytest.warns(MercerWarning, match="value 0 in every row"):
        assert ridge(alpha="evidence").fit(X[:50], np.zeros(50)).predict(X[:3]).tolist() == [0.0, 0.0, 0.0]


def test_a_penalty_is_chosen_from_blocks_and_with_a_number_left_open(tmp_path):
    landmarks = X[:40]
    blocks, options = mercer.Blocks(X, Y, rows_per_block=70), {"alpha": "loo", "landmarks": landmarks}
    # Penalties whose errors differ by far more than sums in another order do.
    whole, parts = (
        ridge(**options, alphas=[0.1, 10.0, 1000.0], checkpoint=path).fit(*rows)
        for path, rows in ((None, (X, Y)), (tmp_path / "c", (blocks,)))
    )
    assert parts.alpha_ == whole.alpha_ == 0.1 and (np.diff(whole.path_.loo) > 0.01).all()
    np.testing.assert_allclose(parts.path_.loo, whole.path_.loo, rtol=1e-6)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)
    # Of any penalties, those next to each other may change places.
    any_of_whole, any_of_parts = (ridge(**options).fit(*rows) for rows in ((X, Y), (blocks,)))
    assert any_of_parts.alpha_ == pytest.approx(any_of_whole.alpha_, rel=0.2)
    assert any_of_parts.path_.loo.min() == pytest.approx(any_of_whole.path_.loo.min(), rel=1e-4)
    auto = ridge(alpha="gcv", n_landmarks="auto").fit(X, Y)
    assert auto.path_.gcv.min() > 0 and auto.landmark_path_.chosen >= 100
    mercer.save(auto, tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").alpha_ == auto.alpha_


def test_what_it_does_not_keep_is_said():
    with pytest.raises(IndefiniteKernelError, match="positive semi-definite"):
        ridge(kernel=Sigmoid(), allow_indefinite=True).fit(X, Y)
    model = ridge().fit(X, Y)
    with pytest.raises(AttributeError, match="keeps its landmarks"):
        _ = model.loo_predictions_
    with pytest.raises(AttributeError, match="keeps its landmarks"):
        _ = model.loo_score_
    with pytest.raises(DataError, match="keeps its landmarks"):
        leave_one_out(model, X, Y)
    with pytest.raises(DataError):
        ridge(landmarks=np.ones((4, 2))).fit(X, Y)


def test_paths_over_all_rows_are_refused():
    with pytest.raises(ParameterError, match="approximation"):
        mercer.ridge_path(X, Y, estimator=ridge())
    with pytest.raises(ParameterError, match="approximation"):
        mercer.certify(ridge(), X, Y, dual_coef=np.zeros(len(X)))


def test_a_search_without_a_grid_has_no_bounds_for_it():
    search = mercer.KernelSearchCV(ridge(kernel="rbf", n_landmarks=20), cv=3, time_budget=1, random_state=0).fit(X, Y)
    assert search.best_score_ > 0.5 and not search.certified_


def test_a_budget_that_is_too_small_names_what_to_change():
    many = RNG.normal(size=(3000, 3))
    with config(memory="2 MiB"), pytest.raises(MemoryBudgetError):
        ridge(n_landmarks=2000, landmarks="uniform").fit(many, many[:, 0])


def test_an_answer_that_is_worse_than_the_mean_is_said():
    with pytest.warns(MercerWarning, match="mean"):
        ridge(alpha=1e6).fit(X, Y + 100.0)
