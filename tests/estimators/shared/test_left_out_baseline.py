"""Models without an offset that interpolate their own rows and lose the mean of the targets between them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import GaussianProcessRegressor, KernelLMS, KernelMachine, KernelRidge, losses
from mercer._errors import MemoryBudgetError, MercerWarning
from mercer.estimators.shared.left_out_baseline import mean_left_out_squares, warn_if_held_out_is_worse
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Constant

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(150, 3)), RNG.normal(size=(150, 3))
OFFSET = 1e3
LEFT_OUT = "mean squared error on left-out rows"
INTERPOLATING = [
    pytest.param(KernelRidge("loo", kernel="rbf"), id="loo"),
    pytest.param(KernelRidge("gcv", kernel="rbf"), id="gcv"),
    pytest.param(KernelRidge("evidence", kernel="rbf"), id="evidence"),
    pytest.param(KernelRidge(1e-8, kernel="rbf"), id="given"),
    pytest.param(GaussianProcessRegressor(optimizer=None), id="process"),
    pytest.param(KernelMachine(alpha=1e-6), id="machine"),
]


def _target(rows):
    return np.sin(rows[:, 0])


@pytest.mark.parametrize("model", INTERPOLATING)
def test_an_offset_that_is_lost_between_the_rows_is_told(model):
    with pytest.warns(MercerWarning, match=LEFT_OUT) as caught:
        model.fit(X, _target(X) + OFFSET)
    assert len([w for w in caught if "mean squared error" in str(w.message)]) == 1
    assert model.score(X, _target(X) + OFFSET) > 0.9 and model.score(NEW, _target(NEW) + OFFSET) < -100


@pytest.mark.parametrize("model", INTERPOLATING)
def test_without_the_offset_there_is_no_word(model):
    centred = TransformedTargetRegressor(model, transformer=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centred.fit(X, _target(X) + OFFSET)
    assert centred.score(NEW, _target(NEW) + OFFSET) > 0.9


@pytest.mark.parametrize("model", [case for case in INTERPOLATING if case.id != "machine"])
@pytest.mark.parametrize("value", [3.0, 1e-6, -1e6])
def test_equal_targets_have_no_second_warning_where_they_are_predicted(model, value):
    rows = np.linspace(-1.0, 1.0, 60)[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MercerWarning)
        model.fit(rows, np.full(60, value))
    assert not [w for w in caught if "mean squared error" in str(w.message)]
    with pytest.warns(MercerWarning, match="mean squared error"):
        KernelRidge(10.0, kernel="rbf").fit(rows, np.full(60, value))


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge("loo", kernel=RBF(1.0) + Constant(1e3)),
        KernelRidge(1e-6, kernel=RBF(1.0) + Constant(1e3)),
        GaussianProcessRegressor(RBF(1.0), optimizer=None, mean="constant"),
        GaussianProcessRegressor(RBF(1.0), optimizer=None, normalize_y=True),
        KernelMachine(alpha=1e-3, fit_intercept=True),
        KernelMachine(losses.Huber(0.1), fit_intercept=True),
    ],
    ids=str,
)
def test_what_is_advised_helps(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, _target(X) + 10.0)
    assert model.score(NEW, _target(NEW) + 10.0) > 0.9


def test_more_rows_than_the_sample_and_one_target_of_two():
    rows = np.random.default_rng(1).normal(size=(400, 3))
    y = np.column_stack([_target(rows), _target(rows) + OFFSET])
    with pytest.warns(MercerWarning, match="on left-out rows for column 1 of y is"):
        KernelRidge(1e-8, kernel="rbf").fit(rows, y)
    # More rows of the same function are enough where a sample of them is.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidge(1e-3, kernel=RBF(3.0) + Constant(1e6)).fit(rows, y)


@pytest.mark.slow
@pytest.mark.parametrize("model", [case for case in INTERPOLATING if case.id not in ("loo", "gcv", "evidence")])
def test_a_check_without_room_is_left_out(model, monkeypatch):
    """Whatever budget does for centred targets does with an offset, also where memory is taken while the check runs."""
    n = 60
    rows = np.random.default_rng(1).normal(size=(n, 3))
    # Without room for the matrix, the machine takes the same long way with any budget.
    for share in (2.5, 4.0) if isinstance(model, KernelMachine) else (0.5, 1.0, 1.5, 2.5, 4.0):
        with mercer.config(memory=int(share * 8 * n * n)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(rows, _target(rows))
            except MemoryBudgetError:
                continue
            model.fit(rows, _target(rows) + OFFSET)

    def refuse(*_, **__):
        raise MemoryBudgetError("taken")

    monkeypatch.setattr("mercer.estimators.shared.left_out_baseline.leave_one_out", refuse)
    monkeypatch.setattr("mercer.solvers.gaussian.posterior.Posterior.leave_one_out", refuse)
    assert model.fit(rows, _target(rows) + OFFSET).score(rows, _target(rows) + OFFSET) > 0.9


@pytest.mark.parametrize("seed", range(10))
def test_noise_alone_is_no_reason(seed):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KernelRidge("loo", kernel="rbf").fit(rows, y)
    assert not [w for w in caught if LEFT_OUT in str(w.message)]


def test_the_mean_of_the_others_by_its_definition():
    y, repeats = RNG.normal(size=(5, 2)), np.array([1, 3, 2, 1, 1])
    whole = np.repeat(y, repeats, axis=0)
    errors = [whole[i] - np.delete(whole, i, axis=0).mean(axis=0) for i in range(len(whole))]
    expected = np.mean(np.square(errors), axis=0)
    np.testing.assert_allclose(mean_left_out_squares(whole, None), expected, rtol=1e-12)
    np.testing.assert_allclose(mean_left_out_squares(y, repeats.astype(float)), expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"tol": 0.0, "max_iter": 500}, {"kernel": RBF(0.3)}], ids=str)
def test_steps_that_lose_the_offset_between_the_rows(options):
    """Gradient descent has no formula for rows that are left out: it is made again without a fifth of them."""
    rows, new = X[:100], NEW
    with pytest.warns(MercerWarning, match=r"fitted to four fifths of its rows.* y has the mean 9\.") as caught:
        model = KernelLMS(**options).fit(rows, _target(rows) + 10.0)
    assert len([w for w in caught if "mean squared error" in str(w.message)]) == 1
    assert model.score(rows, _target(rows) + 10.0) > 0.8 and model.score(new, _target(new) + 10.0) < 0
    centred = TransformedTargetRegressor(model, transformer=StandardScaler())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        centred.fit(rows, _target(rows) + 10.0)
    assert not [w for w in caught if "mean squared error" in str(w.message)]


def test_all_rows_are_left_out_in_turn_only_where_a_sample_of_them_is_told_worse():
    y = np.column_stack([np.arange(400.0), np.arange(400.0) + 1e3])
    gram, weight, lengths = PrecomputedGram(np.eye(400)), np.ones(400), []

    def fit(perfect):
        def of(rows):
            lengths.append(len(rows))
            return np.zeros((len(rows), 2)) if len(lengths) not in perfect else np.full((len(rows), 2), np.nan)

        return of

    def judged(fit):
        lengths.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_held_out_is_worse("Model", gram, y, weight, fit, "Center y.")
        return [str(w.message) for w in caught], list(lengths)

    # Of a matrix that is diagonal the others are told as 0, and NaN is no error.
    (message,), sizes = judged(fit(()))
    assert sizes == [204, 320] and message.startswith("Model: fitted to four fifths") and "for column 0 of y" in message
    assert judged(fit({2})) == ([], [204, 320])
    assert judged(fit({1})) == ([], [204])


@pytest.mark.parametrize(
    "loss", [losses.Huber(0.1), losses.EpsilonInsensitive(0.1), losses.Quantile(0.5), losses.Huber(10.0)], ids=str
)
@pytest.mark.parametrize("penalty", ["l2", losses.Ball(2.0)], ids=str)
def test_any_loss_of_numbers_is_compared_with_that_of_a_constant(loss, penalty):
    model = KernelMachine(loss, penalty)
    with pytest.warns(MercerWarning, match=rf"mean {loss.name} loss on the training rows.*pass fit_intercept=True"):
        model.fit(X, _target(X) + 1e5)
    assert model.score(NEW, _target(NEW) + 1e5) < -1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, _target(X))


def test_counts_are_compared_with_their_mean():
    counts = np.random.default_rng(2).poisson(1e3 + 0 * X[:, 0]).astype(float)
    with pytest.warns(MercerWarning, match="mean poisson loss on the training rows"):
        KernelMachine("poisson", losses.Ball(0.5)).fit(X, counts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelMachine("poisson", fit_intercept=True).fit(X, counts)
