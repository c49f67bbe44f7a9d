"""The general machine against the machines that it is for one loss, and what it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

import mercer
from loss_table import Absolute, LogCosh
from mercer import SVC, SVR, KernelLogisticRegression, KernelMachine, KernelRidge, losses
from mercer._errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
NEW = RNG.normal(size=(30, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.standard_normal(120)
LABELS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(120) > 0, "up", "down")
COUNTS = RNG.poisson(np.exp(1.0 + np.sin(X[:, 0])))
WEIGHT = RNG.uniform(0.2, 3.0, 120)


@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_with_the_hinge_it_is_the_support_vector_machine(C: float) -> None:
    machine = KernelMachine("hinge", alpha=1.0 / C).fit(X, LABELS, WEIGHT)
    svc = SVC(C=C, fit_intercept=False, tol=1e-8).fit(X, LABELS, WEIGHT)
    assert C * machine.certificate_.primal == pytest.approx(svc.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(machine.decision_function(NEW), svc.decision_function(NEW), atol=1e-5)
    offset = KernelMachine("hinge", alpha=1.0 / C, fit_intercept=True).fit(X, LABELS)
    with_offset = SVC(C=C, tol=1e-8).fit(X, LABELS)
    assert C * offset.certificate_.primal == pytest.approx(with_offset.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 30.0])
def test_with_the_square_it_is_ridge_regression(alpha: float) -> None:
    machine = KernelMachine(alpha=alpha, gamma=0.5).fit(X, Y, WEIGHT)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5).fit(X, Y, WEIGHT)
    assert 2.0 * machine.certificate_.primal == pytest.approx(ridge.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(machine.predict(NEW), ridge.predict(NEW), atol=1e-7)


def test_with_the_tube_it_is_support_vector_regression() -> None:
    machine = KernelMachine(losses.EpsilonInsensitive(0.2), alpha=0.5, fit_intercept=True).fit(X, Y)
    svr = SVR(C=2.0, epsilon=0.2, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(machine.predict(NEW), svr.predict(NEW), atol=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
def test_with_the_logistic_loss_it_is_logistic_regression(C: float) -> None:
    machine = KernelMachine("logistic", alpha=1.0 / C, gamma=0.5).fit(X, LABELS)
    certificate, y = machine.certificate_, np.where(machine.classes_[1] == LABELS, 1.0, -1.0)
    K, c = machine.kernel_(X), np.zeros(120)
    c[machine.support_] = machine.dual_coef_[0]
    f = K @ c
    # The gradient of the penalised likelihood, in the space of the kernel, is nothing.
    np.testing.assert_allclose(c / C, y * expit(-y * f), atol=1e-9)
    objective = float(np.logaddexp(0.0, -y * f).sum() + c @ f / (2 * C))
    assert certificate.primal == pytest.approx(objective, rel=1e-10) and certificate.relative_gap < 1e-6
    same = KernelLogisticRegression(C=C, kernel="rbf", gamma=0.5, fit_intercept=False, tol=1e-8).fit(X, LABELS)
    assert C * certificate.primal == pytest.approx(same.certificate_.primal, rel=1e-5)
    shares = machine.predict_proba(NEW)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[:, 1], expit(machine.decision_function(NEW)))


def test_counts_are_predicted_by_their_mean() -> None:
    machine = KernelMachine("poisson", fit_intercept=True, alpha=0.1).fit(X, COUNTS)
    assert (machine.predict(NEW) > 0).all() and machine.score(X, COUNTS) > 0.3
    # With an offset the predicted counts sum to those seen.
    assert machine.predict(X).sum() == pytest.approx(COUNTS.sum(), rel=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_several_classes_are_each_against_the_rest(loss: str) -> None:
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    machine = KernelMachine(loss, class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(X, classes, WEIGHT)
    assert machine.dual_coef_.shape[0] == 3 and machine.decision_function(NEW).shape == (30, 3)
    factors = np.array([2.0, 1.0, 0.5])[classes]
    alone = KernelMachine(loss, kernel=machine.kernel_).fit(X, classes == 1, WEIGHT * factors)
    np.testing.assert_allclose(machine.decision_function(NEW)[:, 1], alone.decision_function(NEW), atol=1e-6)
    if loss == "logistic":
        np.testing.assert_allclose(machine.predict_proba(NEW).sum(axis=1), 1.0)


def test_own_losses_with_and_without_a_curvature() -> None:
    with_curvature = KernelMachine(LogCosh(), alpha=0.1).fit(X, Y)

    class Silent(LogCosh):
        curvature = None

    silent = KernelMachine(Silent(), alpha=0.1).fit(X, Y)
    assert with_curvature.certificate_.relative_gap < 1e-6 and silent.certificate_.relative_gap < 1e-6
    np.testing.assert_allclose(with_curvature.predict(NEW), silent.predict(NEW), atol=1e-3)
    # Twice the pinball loss of the median is the absolute error.
    absolute = KernelMachine(Absolute(), alpha=0.4).fit(X, Y)
    median = KernelMachine("quantile", alpha=0.2).fit(X, Y)
    assert absolute.certificate_.primal == pytest.approx(2.0 * median.certificate_.primal, rel=2e-6)


def test_penalties() -> None:
    ball = KernelMachine("hinge", losses.Ball(2.0)).fit(X, LABELS)
    assert ball.norm_[0] == pytest.approx(2.0, rel=1e-8)
    same = KernelMachine("hinge", alpha=float(ball.l2_factor_[0])).fit(X, LABELS)
    np.testing.assert_allclose(ball.decision_function(NEW), same.decision_function(NEW), atol=1e-6)
    own = KernelMachine("logistic", lambda t: 0.25 * t**4).fit(X, LABELS)
    power = KernelMachine("logistic", losses.NormPower(4.0)).fit(X, LABELS)
    assert own.certificate_.primal == pytest.approx(power.certificate_.primal, rel=2e-6)
    nothing = KernelMachine("squared", "norm", alpha=1e4).fit(X, Y)
    assert len(nothing.support_) == 0 and nothing.predict(NEW).tolist() == [0.0] * 30


def test_kinds_follow_the_loss() -> None:
    assert is_classifier(KernelMachine("hinge")) and is_regressor(KernelMachine(losses.Huber(2.0)))
    assert not hasattr(KernelMachine(), "decision_function") and not hasattr(KernelMachine("hinge"), "predict_proba")
    assert all(hasattr(KernelMachine(loss), "predict_proba") for loss in ("logistic", losses.Logistic()))
    assert KernelMachine("poisson").__sklearn_tags__().target_tags.positive_only
    machine = KernelMachine("hinge").fit(X, LABELS).set_params(loss="squared").fit(X, Y)
    assert not hasattr(machine, "classes_") and machine.predict(NEW).dtype == np.float64
    # What is no loss is found in fit, not by a look at the tags.
    assert is_regressor(KernelMachine("none"))


@pytest.mark.parametrize("penalty", [losses.Ball(1.0), "norm", losses.NormPower(4.0)], ids=repr)
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_small_problems_are_solved_to_rounding_under_every_penalty(loss: str, penalty: Any) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows, times = rng.permutation(120)[:40], rng.integers(0, 4, 40)
        weighted = KernelMachine(loss, penalty, gamma=0.3).fit(X[rows], Y[rows], times)
        rows = np.repeat(rows, times)
        repeated = KernelMachine(loss, penalty, gamma=0.3).fit(X[rows], Y[rows])
        np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), atol=1e-9)


def test_rows_of_weight_zero_are_no_rows() -> None:
    weight = np.where(np.arange(120) < 90, 1.0, 0.0)
    kernel = mercer.kernels.RBF(1.0)
    for loss, y in (("logistic", LABELS), ("huber", Y), ("quantile", Y)):
        some = KernelMachine(loss, kernel=kernel).fit(X, y, weight)
        few = KernelMachine(loss, kernel=kernel).fit(X[:90], y[:90])
        np.testing.assert_array_equal(some.support_, few.support_)
        np.testing.assert_allclose(
            some.predict(NEW) == few.predict(NEW) if loss == "logistic" else some.dual_coef_,
            True if loss == "logistic" else few.dual_coef_,
            rtol=1e-9,
        )


def test_an_indefinite_kernel_gives_a_stationary_point() -> None:
    kernel = mercer.kernels.Sigmoid(0.3)
    for loss, y in (("squared", Y), ("hinge", LABELS)):
        machine = KernelMachine(loss, kernel=kernel, alpha=5.0, allow_indefinite=True).fit(X, y)
        assert machine.certificate_.status.name == "stationary" and not machine.certificate_.convex


def test_a_limit_of_steps_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match="KernelMachine: max_iter was reached"):
        machine = KernelMachine("logistic", alpha=1e-5, max_iter=1).fit(X, LABELS)
    assert machine.fit_status_ == 1


class Welsch:
    def value(self, y, f):
        return 1 - np.exp(-((y - f) ** 2))

    def gradient(self, y, f):
        return 2 * (f - y) * np.exp(-((y - f) ** 2))


@pytest.mark.parametrize(
    ("parameters", "y", "error", "words"),
    [
        ({"loss": "hing"}, LABELS, ParameterError, "there is no loss 'hing'"),
        ({"loss": Welsch()}, Y, ParameterError, "Welsch is not convex"),
        ({"loss": 3}, Y, ParameterError, "needs the methods value"),
        ({"regularizer": "l1"}, Y, ParameterError, "regularizer must be 'l2', 'norm'"),
        ({"regularizer": np.sqrt}, Y, ParameterError, "is not convex"),
        ({"alpha": 0.0}, Y, ParameterError, "alpha must be a finite number above 0, but is 0.0"),
        ({"tol": -1.0}, Y, ParameterError, "tol must be a finite number above 0"),
        ({"max_iter": 2.5}, Y, ParameterError, "max_iter must be a whole number"),
        ({"solver": "sgd"}, Y, ParameterError, "solver must be 'auto', 'newton'"),
        ({"solver": "box"}, Y, ParameterError, "not made of straight pieces"),
        ({"fit_intercept": "yes"}, Y, ParameterError, "fit_intercept must be True or False"),
        ({"class_weight": "balanced"}, Y, ParameterError, "class_weight needs a loss of labels"),
        ({"loss": "poisson"}, Y, DataError, "needs targets of 0 or more"),
        ({"loss": "hinge"}, np.full(120, "up"), DataError, "has 1 class"),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], y: np.ndarray, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        KernelMachine(**parameters).fit(X, y)


def test_odd_data() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in ("squared", "quantile", "huber"):
            assert KernelMachine(loss).fit(X[:1], Y[:1]).certificate_.relative_gap < 1e-6
            assert KernelMachine(loss).fit(np.ones((5, 2)), np.arange(5.0)).certificate_.relative_gap < 1e-6
            assert KernelMachine(loss, fit_intercept=True).fit(X, np.full(120, 2.0)).predict(NEW) == pytest.approx(2.0)
    assert clone(KernelMachine(losses.Huber(2.0), losses.Ball(3.0))).get_params()["loss"] == losses.Huber(2.0)
