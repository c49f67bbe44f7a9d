"""Penalties of kernel ridge regression: whole paths, and the choice by leave-one-out, gcv and evidence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneOut

import mercer
from mercer import KernelRidge, ridge_path
from mercer._errors import IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)
TWO = np.column_stack([Y, 5.0 * RNG.normal(size=40)])
ALPHAS = [10.0, 1e-3, 0.1, 1.0]
WORDS = ("loo", "gcv", "evidence")


@pytest.mark.parametrize("targets", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weight", [None, np.arange(40) % 4], ids=["alike", "weighted"])
@pytest.mark.parametrize(
    "estimator", [KernelRidge(kernel="rbf"), KernelRidge(3.0, kernel=RBF(2.0) + Linear())], ids=repr
)
def test_every_model_is_the_fit_by_itself(estimator: KernelRidge, targets: np.ndarray, weight) -> None:
    path = ridge_path(X, targets, ALPHAS, estimator=estimator, sample_weight=weight)
    assert path.alphas == tuple(ALPHAS) and len(path) == 4 and path[1:] == path.models[1:]
    for alpha, model, loo in zip(ALPHAS, path, path.loo):
        alone = clone(estimator).set_params(alpha=alpha).fit(X, targets, weight)
        np.testing.assert_allclose(model.dual_coef_, alone.dual_coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-9, atol=1e-10)
        assert model.alpha == model.alpha_ == alpha and model.kernel_ == alone.kernel_
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-9)
        assert model.certificate_.kkt_violation < 1e-12 and model.certificate_.status.name == "direct"
        w = np.ones(40) if weight is None else weight
        np.testing.assert_allclose(loo, w @ (targets - alone.loo_predictions_) ** 2 / w.sum(), rtol=1e-8)
    assert path.dual_coef_path.shape == (4, *targets.shape)
    assert path.gcv.shape == path.loo.shape == (4, *targets.shape[1:])
    assert path.best("loo") is path[int(path.loo.reshape(4, -1).sum(axis=1).argmin())]
    assert path.best("evidence") is path[int(path.evidence.reshape(4, -1).sum(axis=1).argmax())]
    assert estimator.get_params() == clone(estimator).get_params() and not hasattr(estimator, "dual_coef_")


@pytest.mark.parametrize("shared", [True, False])
def test_the_choice_is_that_of_scikit_learns_ridge_without_an_intercept(shared: bool) -> None:
    peer = RidgeCV(ALPHAS, fit_intercept=False, alpha_per_target=not shared, store_cv_results=True).fit(X, TWO)
    ours = KernelRidge("loo", alphas=ALPHAS, alpha_per_target=not shared).fit(X, TWO)
    np.testing.assert_array_equal(ours.alpha_, peer.alpha_)
    order = np.argsort(ALPHAS)
    np.testing.assert_allclose(ours.path_.loo, peer.cv_results_.mean(axis=0)[:, order].T, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-8)


def test_the_choice_is_that_of_a_grid_search_over_refits() -> None:
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), {"alpha": ALPHAS}, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    ).fit(X, Y)
    model = KernelRidge("loo", kernel="rbf", alphas=ALPHAS).fit(X, Y)
    path = ridge_path(X, Y, ALPHAS, kernel="rbf")
    np.testing.assert_allclose(path.loo, -search.cv_results_["mean_test_score"], rtol=1e-9)
    assert model.alpha_ == search.best_params_["alpha"]


@pytest.mark.parametrize("word", WORDS)
def test_a_chosen_penalty_gives_the_fit_with_that_number(word: str) -> None:
    chosen = KernelRidge(word, kernel="rbf").fit(X, Y)
    given_by_hand = KernelRidge(chosen.alpha_, kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(chosen.dual_coef_, given_by_hand.dual_coef_, rtol=1e-8)
    np.testing.assert_allclose(chosen.loo_predictions_, given_by_hand.loo_predictions_, rtol=1e-8, atol=1e-10)
    assert chosen.certificate_.primal == pytest.approx(given_by_hand.certificate_.primal, rel=1e-10)
    assert chosen.certificate_.kkt_violation < 1e-12
    assert chosen.factorization_ == "float64 band Cholesky" and chosen.alpha == word
    assert (chosen.path_.loo is None) == (word != "loo")
    # A fit with a number forgets the path.
    assert not hasattr(chosen.set_params(alpha=1.0).fit(X, Y), "path_") and chosen.alpha_ == 1.0


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(lambda c: sum(x > 0 for x in c) > 3),
    word=st.sampled_from(WORDS),
    kernel=st.sampled_from([RBF(1.0), Linear(), Linear() + 1.0]),
    per_target=st.booleans(),
)
def test_integer_weights_are_repeated_rows(counts: list[int], word: str, kernel, per_target: bool) -> None:
    rows, targets = X[:12], TWO[:12]
    model = KernelRidge(word, kernel=kernel, alpha_per_target=per_target)
    weighted = clone(model).fit(rows, targets, counts)
    repeated = clone(model).fit(np.repeat(rows, counts, axis=0), np.repeat(targets, counts, axis=0))
    # Of two penalties that do almost equally well, rounding may tell which; the predictions then hardly differ.
    same = np.all(weighted.alpha_ == repeated.alpha_)
    event(f"the same penalty: {same}")
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-7)
    copies = np.repeat(weighted.loo_predictions_, counts, axis=0)
    scale = np.abs(targets).max()
    np.testing.assert_allclose(copies, repeated.loo_predictions_, rtol=1e-5, atol=1e-6 * scale)


def test_a_penalty_for_each_target_is_that_of_each_alone() -> None:
    for word in WORDS:
        both = KernelRidge(word, kernel="rbf", alpha_per_target=True).fit(X, TWO)
        alone = [KernelRidge(word, kernel="rbf").fit(X, t).alpha_ for t in TWO.T]
        assert both.alpha_.tolist() == alone and both.predict(X).shape == (40, 2)
    assert isinstance(KernelRidge("loo", kernel="rbf").fit(X, TWO).alpha_, float)


def test_precomputed_sparse_and_single_precision() -> None:
    expected = KernelRidge("loo", kernel=RBF(1.0)).fit(X, Y)
    matrix = RBF(1.0)(X)
    given_matrix = KernelRidge("loo", kernel="precomputed").fit(matrix, Y)
    assert given_matrix.alpha_ == expected.alpha_
    np.testing.assert_array_equal(matrix, RBF(1.0)(X))
    assert KernelRidge("loo", kernel=RBF(1.0)).fit(sp.csr_matrix(X), Y).alpha_ == expected.alpha_
    single = KernelRidge("loo", kernel=RBF(1.0)).fit(X.astype(np.float32), Y)
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    assert single.alpha_ == pytest.approx(expected.alpha_, rel=0.02)


def test_one_row_and_rows_that_are_all_zero() -> None:
    assert KernelRidge("loo", kernel="rbf").fit([[1.0, 2.0]], [4.0]).predict([[1.0, 2.0]]) == pytest.approx(4 / 11)
    with pytest.warns(mercer._errors.MercerWarning, match="nothing to learn"):
        flat = KernelRidge("evidence").fit(np.zeros((5, 2)), np.ones(5))
    assert flat.alpha_ == 1.0 and not flat.predict(np.ones((2, 2))).any()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": "lo"}, "alpha must be a number, one for each target, 'loo', 'gcv' or 'evidence', but is 'lo'"),
        ({"alphas": [1.0]}, r"alphas are penalties to choose from, but alpha=1\.0 is already chosen"),
        ({"alpha": "loo", "alphas": []}, r"alphas must be a list of one number or more, but has the shape \(0,\)"),
        ({"alpha": "loo", "alphas": 3.0}, r"shape \(\)"),
        ({"alpha": "loo", "alphas": [1.0, -1.0]}, r"at least 0, and one is -1\.0"),
        ({"alpha": "loo", "alphas": [1.0, np.nan]}, "one is nan"),
        ({"alpha": "loo", "alphas": ["a"]}, r"alphas must be numbers, but is \['a'\]"),
        ({"alpha": "loo", "alpha_per_target": "no"}, "alpha_per_target must be True or False, but is 'no'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelRidge(**parameters).fit(X, Y)


def test_what_a_path_refuses() -> None:
    with pytest.raises(ParameterError, match="alpha=3 is given; the path takes alphas"):
        ridge_path(X, Y, alpha=3)
    with pytest.raises(ParameterError, match="no parameter 'C'"):
        ridge_path(X, Y, C=3)
    with pytest.raises(ParameterError, match="must be a KernelRidge, but is Linear"):
        ridge_path(X, Y, estimator=Linear())
    with pytest.raises(ParameterError, match="at least 0"):
        ridge_path(X, Y, [-1.0])
    with pytest.raises(ParameterError, match="criterion must be 'loo', 'gcv' or 'evidence', but is 'aic'"):
        ridge_path(X, Y, [1.0]).best("aic")
    with pytest.raises(IndefiniteKernelError, match="indefinite"):
        ridge_path(X, Y, kernel="sigmoid", allow_indefinite=False)
    with mercer.config(memory="10KiB"), pytest.raises(MemoryBudgetError, match="40 x 40"):
        ridge_path(np.tile(X, (2, 1))[:40], Y)


def test_a_path_prints_as_a_table() -> None:
    lines = repr(ridge_path(X, TWO, ALPHAS)).splitlines()
    assert len(lines) == 6 and lines[0].startswith("KernelRidge along alpha: 4 fits in ")
    assert lines[1].split() == ["alpha", "leave-one-out", "gcv", "evidence", "residual"]
    assert [float(line.split()[0]) for line in lines[2:]] == ALPHAS


def test_a_kernel_is_evaluated_once() -> None:
    entries = []

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        entries.append(len(A) * len(B))
        return A @ B.T

    path = ridge_path(X, Y, np.geomspace(1e-3, 10, 9), kernel=kernel)
    assert sum(entries) <= 40 * 41 and len(path) == 9


def test_a_path_says_where_a_fit_is_worse_than_the_mean():
    with pytest.warns(MercerWarning, match="the mean squared error on the training rows") as caught:
        ridge_path(X, Y + 1e3, [0.1, 1.0, 10.0], kernel="rbf")
    assert len([w for w in caught if "on the training rows" in str(w.message)]) == 3


def test_the_estimator_that_fits_its_copies_stays_as_it_is() -> None:
    rng = np.random.default_rng(3)
    rows, numbers = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = KernelRidge("loo", kernel="rbf").fit(rows, numbers)
    before = model.alpha_, model.dual_coef_.copy()
    models, curves = model.fit_penalties(rows, numbers, [1.0, 0.1])
    assert [fitted.alpha for fitted in models] == [1.0, 0.1] and curves.alphas.tolist() == [0.1, 1.0]
    np.testing.assert_allclose(models[1].dual_coef_, KernelRidge(0.1, kernel="rbf").fit(rows, numbers).dual_coef_)
    assert model.alpha == "loo" and model.alpha_ == before[0]
    np.testing.assert_array_equal(model.dual_coef_, before[1])
