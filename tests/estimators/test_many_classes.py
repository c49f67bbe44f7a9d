"""Classifiers of many classes with few rows each: votes by blocks of rows, memory, files."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as Reference

import mercer
from mercer.engine import memory
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.svc import SVC
from mercer.estimators.svm import one_vs_one
from mercer.estimators.svm.one_vs_one import JointExpansion, pair_values
from mercer.persistence import load, save
from mercer.solvers.svm import pairwise
from svm_cases import assert_same


def around_centres(k, each, d=10, spread=1.0, seed=0):
    """Rows around k centres, in mixed order."""
    rng = np.random.default_rng(seed)
    X = np.repeat(3.0 * rng.standard_normal((k, d)), each, axis=0) + spread * rng.standard_normal((k * each, d))
    order = rng.permutation(k * each)
    return X[order], np.repeat(np.arange(k), each)[order]


@pytest.mark.parametrize(
    "parameters", [{"gamma": 0.1}, {"gamma": 0.3, "C": 50.0}, {"kernel": "linear", "break_ties": True}]
)
def test_agrees_with_scikit_learn(parameters):
    X, y = around_centres(60, 3, d=4)
    weight = 1.0 + np.arange(len(y)) % 3
    ours = SVC(**parameters).fit(X, y, weight)
    theirs = Reference(**parameters, tol=1e-8).fit(X, y, weight)
    assert ours.certificate_.kkt_violation < 1e-9
    if ours.break_ties:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    else:
        assert_same(ours, theirs, X, atol=1e-4)


def solve_nothing_together(monkeypatch):
    monkeypatch.setattr(pairwise._Pairs, "_solve_tiny", lambda self, number, start: np.zeros(self.layout.pairs, bool))


@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"C": 1e6}, {"stop": "gap", "tol": 1e-6}])
def test_attributes_are_those_of_the_pairs_one_by_one(parameters, monkeypatch):
    X, y = around_centres(12, 5, d=3, spread=2.0)
    weight = (np.arange(len(y)) % 5).astype(float)
    together = SVC(**parameters).fit(X, y, weight)
    solve_nothing_together(monkeypatch)
    alone = SVC(**parameters).fit(X, y, weight)
    for name in ("classes_", "n_support_", "support_", "roles_"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name), err_msg=name)
    for name in ("dual_coef_", "intercept_", "margins_", "slacks_"):
        scale = max(1.0, np.nanmax(np.abs(getattr(alone, name))))
        np.testing.assert_allclose(getattr(together, name), getattr(alone, name), atol=1e-7 * scale, err_msg=name)
    assert together.certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-9)
    assert together.certificate_.violations.keys() == alone.certificate_.violations.keys()


def test_warm_start_scales_every_pair_into_its_box():
    X, y = around_centres(20, 4, d=3, spread=2.0)
    warm = SVC(C=2.0, warm_start=True).fit(X, y)
    steps = warm.n_iter_.sum()
    assert warm.fit(X, y).n_iter_.sum() < 0.5 * steps
    for C in (0.5, 4.0):
        np.testing.assert_allclose(
            warm.set_params(C=C).fit(X, y).decision_function(X), SVC(C=C).fit(X, y).decision_function(X), atol=1e-6
        )


@pytest.mark.parametrize("tiny", [0, 64])
@pytest.mark.parametrize("precomputed", [False, True])
def test_votes_by_blocks_of_rows_are_those_of_all_values(tiny, precomputed, monkeypatch):
    X, y = around_centres(15, 4, d=3, spread=2.0)
    Z = np.random.default_rng(5).standard_normal((700, 3)) * 3.0
    model = SVC(gamma=0.2).fit(X, y)
    if precomputed:
        kernel = model.kernel_
        model, Z = SVC(kernel="precomputed").fit(kernel(X), y), kernel(Z, X)
    monkeypatch.setattr(one_vs_one, "_TINY", tiny)
    monkeypatch.setattr(one_vs_one, "_BLOCK", 1)
    by_value, classes = model.decision_function(Z), model.predict(Z)
    values = model.set_params(decision_function_shape="ovo").decision_function(Z)
    won, sums = np.zeros((2, len(Z), 15))
    strictly = np.zeros((len(Z), 15))
    for number, (i, j) in enumerate(combinations(range(15), 2)):
        value = values[:, number]
        won[:, i], won[:, j] = won[:, i] + (value >= 0), won[:, j] + (value < 0)
        strictly[:, i], strictly[:, j] = strictly[:, i] + (value > 0), strictly[:, j] + (value <= 0)
        sums[:, i], sums[:, j] = sums[:, i] + value, sums[:, j] - value
    np.testing.assert_array_equal(classes, strictly.argmax(axis=1))
    np.testing.assert_allclose(by_value, won + sums / (3.0 * (np.abs(sums) + 1.0)), atol=1e-9)


def test_a_value_of_zero_is_a_vote_as_in_scikit_learn():
    """Far from all rows, without an intercept, every decision value is exactly zero."""
    X, y = around_centres(5, 3)
    far = np.full((2, 10), 1e6)
    model = SVC(fit_intercept=False, gamma=1.0).fit(X, y)
    assert model.predict(far).tolist() == [4, 4]
    assert model.decision_function(far)[0].tolist() == [4.0, 3.0, 2.0, 1.0, 0.0]


def test_prediction_stays_within_the_memory_budget():
    X, y = around_centres(80, 2)
    model = SVC().fit(X, y)
    Z = np.tile(X, (40, 1))
    assert 8 * len(Z) * len(model.intercept_) > 100 * 2**20
    with mercer.config(memory="32MiB"), memory.track() as account:
        classes = model.predict(Z)
    np.testing.assert_array_equal(classes, np.tile(model.predict(X), 40))
    assert 0 < account.peak <= 32 * 2**20


def test_files_hold_the_certificates_of_all_pairs(tmp_path):
    X, y = around_centres(40, 3)
    model = SVC().fit(X, y)
    save(model, tmp_path / "model.mercer")
    back = load(tmp_path / "model.mercer")
    assert len(back.certificates_) == 780 and list(back.certificates_) == list(model.certificates_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert (tmp_path / "model.mercer").stat().st_size < 400 * 780
    save(back.certificates_, tmp_path / "parts.mercer")
    assert load(tmp_path / "parts.mercer")[7] == model.certificates_[7]


def test_pairs_that_are_not_finished_are_reported():
    X, y = around_centres(10, 6, spread=3.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(C=10.0, max_iter=4).fit(X, y)
    assert model.n_iter_.max() == 4 and model.fit_status_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert NuSVC(nu=0.3).fit(X, y).fit_status_ == 0


@pytest.mark.slow
def test_six_hundred_classes(tmp_path):
    X, y = around_centres(600, 3, spread=0.3)
    names = np.char.add("class ", y.astype(str))
    model = SVC(C=10.0).fit(X, names)
    assert model.certificates_[179_699].relative_gap < 1e-9 and len(model.certificates_) == 179_700
    assert model.certificate_.kkt_violation < 1e-9 and model.fit_status_ == 0
    assert model.dual_coef_.shape == (599, len(model.support_)) and model.margins_.shape == (599, 1800)
    assert np.nanmin(model.margins_) > 0.0
    with mercer.config(memory="1GiB"):
        # Decision values of all pairs would take 2.4 GiB.
        assert model.score(X, names) == 1.0
    save(model, tmp_path / "model.mercer")
    assert (tmp_path / "model.mercer").stat().st_size < 72 * 2**20
    np.testing.assert_array_equal(load(tmp_path / "model.mercer").predict(X[:50]), names[:50])


def test_two_classes_take_one_product():
    expansion = JointExpansion(np.arange(5), np.array([2, 3]), np.array([[1.0, -2.0, 0.5, 3.0, 1.5]]), np.array([0.25]))
    K = np.random.default_rng(0).normal(size=(4, 5))
    parts = []

    def product(part, V):
        parts.append(part)
        return K[:, part] @ V

    values = pair_values(product, expansion, 4)
    np.testing.assert_allclose(values, (K @ expansion.dual_coef[0] + 0.25)[:, None])
    assert parts == [slice(0, 5)]
