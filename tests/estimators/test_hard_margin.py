"""``SVC(C=inf)``: hard margins, and the error that proves that there is none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as Reference

from mercer import SVC
from mercer._errors import InfeasibleError, MercerError, ParameterError
from mercer.kernels import Sigmoid
from mercer.solvers.solution import Status


def two_groups(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X @ [1.0, 0.5, 0.2] > 0).astype(int)
    return X + 0.3 * (2 * y - 1)[:, None] * [1.0, 0.5, 0.2], y


@pytest.mark.parametrize("parameters", [{"kernel": "linear"}, {"gamma": 0.5}, {"kernel": "poly", "coef0": 1.0}])
def test_agrees_with_a_soft_margin_that_nothing_violates(parameters):
    X, y = two_groups()
    hard = SVC(C=np.inf, tol=1e-6, **parameters).fit(X, y)
    soft = Reference(C=1e8, tol=1e-8, **parameters).fit(X, y)
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-4)
    assert set(np.unique(hard.roles_)) == {"outside", "free"}
    assert hard.margins_.min() == pytest.approx(1.0, abs=1e-6) and hard.slacks_.max() < 1e-6
    assert hard.certificate_.status is Status.converged
    assert hard.certificate_.primal == pytest.approx(np.abs(hard.dual_coef_).sum() / 2, rel=1e-5)


def test_without_an_intercept():
    X, y = two_groups()
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert (np.where(y == 1, 1.0, -1.0) * model.decision_function(X)).min() > 0.999
    biased = SVC(C=np.inf, kernel="linear").fit(X, y)
    assert model.certificate_.primal >= biased.certificate_.dual
    with pytest.raises(InfeasibleError, match="without an intercept"):
        SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X + 10.0, y)
    assert SVC(C=np.inf, kernel="linear").fit(X + 10.0, y).score(X + 10.0, y) == 1.0


def test_several_classes_and_the_pair_that_cannot_be_separated():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SVC(C=np.inf, gamma=2.0).fit(X, names)
    assert model.score(X, names) == 1.0 and model.margins_.shape == (2, 150)
    assert np.nanmin(model.margins_) > 0.999
    with pytest.raises(InfeasibleError, match="the classes 'versicolor' and 'virginica' cannot be separated") as caught:
        SVC(C=np.inf, kernel="linear").fit(X, names)
    shares = caught.value.multipliers
    assert shares.shape == (150,) and (shares[y == 0] == 0).all() and caught.value.pair == (1, 2)
    assert shares[y == 1].sum() == pytest.approx(1.0) and shares[y == 2].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(shares[y == 1] @ X[y == 1], shares[y == 2] @ X[y == 2], atol=1e-5)
    assert "finite C" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, MercerError) and again.least_slack == caught.value.least_slack


def test_rows_of_weight_zero_do_not_count_and_weights_do_not_matter():
    X, y = two_groups()
    model = SVC(C=np.inf, kernel="linear").fit(X, y)
    more, labels = np.vstack([X, X[:3]]), np.r_[y, 1 - y[:3]]
    weight = np.r_[np.linspace(0.1, 5.0, len(y)), np.zeros(3)]
    weighted = SVC(C=np.inf, kernel="linear").fit(more, labels, weight)
    np.testing.assert_allclose(weighted.decision_function(X), model.decision_function(X), atol=1e-8)
    with pytest.raises(InfeasibleError) as caught:
        SVC(C=np.inf, kernel="linear").fit(more, labels)
    assert caught.value.multipliers.shape == (63,)


def test_warm_start_and_a_limit_of_steps():
    X, y = two_groups(700)
    model = SVC(C=np.inf, gamma=0.5, warm_start=True).fit(X, y)
    steps = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < steps / 4
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert SVC(C=np.inf, gamma=0.5, max_iter=7).fit(X, y).n_iter_.tolist() == [7]


def test_what_has_no_hard_margin_at_all():
    X, y = two_groups()
    with pytest.raises(ParameterError, match=r"C=inf.*positive semi-definite"):
        SVC(C=np.inf, kernel=Sigmoid(), allow_indefinite=True).fit(X, y)
    for rows in (np.ones((6, 2)), np.zeros((6, 2))):
        with pytest.raises(InfeasibleError) as caught:
            SVC(C=np.inf).fit(rows, [0, 1] * 3)
        assert caught.value.least_slack == pytest.approx((6.0, 6.0), rel=0.01)


def test_what_is_said_of_classes_that_float64_cannot_separate():
    X, y = two_groups()
    y[::7] = 1 - y[::7]
    names = np.array(["p", "q"], dtype=object)[y]
    with pytest.raises(InfeasibleError, match=r"'p' and 'q' cannot.*not by a margin that float64 can") as caught:
        SVC(C=np.inf, kernel="linear").fit(X, names)
    low, high = caught.value.least_slack
    assert f"to {low:.4g} or more; {high:.4g} are enough" in str(caught.value)
    assert f"the least found is {caught.value.distance:.1e}" in str(caught.value)
