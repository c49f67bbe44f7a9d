"""At its defaults no learner is worse than the best constant on its own rows, unless it says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import datasets
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.preprocessing import StandardScaler
from tests.estimator_table import CLASSES, NEIGHBORS, SUPERVISED

import mercer
from mercer import KernelLMS, KernelMachine, KernelRidge, OnlineKernelLogisticRegression, OnlineKernelRegressor
from mercer._errors import MercerError, MercerWarning

ROWS = 120


def _some(X, y):
    rows = np.random.default_rng(0).permutation(len(X))[:ROWS]
    return X[rows], y[rows]


def _awkward(X, y):
    """The same rows in other units, repeated, or beside a column that says nothing."""
    wide = np.column_stack([X, np.full(len(X), 1e3)])
    return {
        "plain": (X, y),
        "constant column": (wide, y),
        "all rows equal": (np.full((len(X), 2), 3.0), y),
        "repeated": (np.repeat(X[: len(X) // 5], 5, axis=0), np.repeat(y[: len(X) // 5], 5)),
        "one column large": (X * [1e6, 1.0, 1.0], y),
        "far away": (X + 1e6, y),
        "tiny": (1e-6 * X, y),
    }


def _classification():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    sets = _awkward(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    for name in ("breast_cancer", "wine", "digits"):
        rows, y = _some(*getattr(datasets, f"load_{name}")(return_X_y=True))
        sets |= {name: (rows, y), f"{name}, scaled": (StandardScaler().fit_transform(rows), y)}
    return sets | {
        "imbalanced": (X, (X[:, 0] > 1.7).astype(int)),
        "noise": (X, rng.integers(0, 2, ROWS)),
        "imbalanced noise": (X, (rng.random(ROWS) < 0.1).astype(int)),
    }


def _regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    y = np.sin(X[:, 0])
    rows, target = _some(*datasets.load_diabetes(return_X_y=True))
    return _awkward(X, y) | {
        "diabetes": (rows, target),
        "diabetes, scaled": (StandardScaler().fit_transform(rows), target),
        "offset": (X, y + 1e3),
        "large": (X, 1e6 * y),
        "small": (X, 1e-6 * y),
        "noise": (X, rng.normal(size=ROWS)),
        "heavy tails": (X, y + rng.standard_cauchy(size=ROWS)),
        "constant": (X, np.full(ROWS, 7.0)),
    }


SETS = {True: _classification(), False: _regression()}
LEARNERS = [
    (mercer.BayesianLinearRegression, False),
    *{(type(p.values[0]), p.values[1] is CLASSES): None for p in [*SUPERVISED, *NEIGHBORS]},
]
CASES = [
    pytest.param(learner, classifies, name, id=f"{learner.__name__}, {name}")
    for learner, classifies in LEARNERS
    for name in SETS[classifies]
    if (learner, classifies) != (KernelMachine, True)
]


def _at_its_defaults(learner, X, y):
    """The fitted model, and what it warned of."""
    model = learner()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, [w for w in caught if issubclass(w.category, UserWarning)]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "classifies", "name"), CASES)
def test_no_silent_answer_is_worse_than_the_best_constant(learner, classifies, name):
    X, y = SETS[classifies][name]
    try:
        model, caught = _at_its_defaults(learner, X, y)
    except MercerError as error:
        # NuSVC's nu is infeasible where one class is rare, and says so.
        assert "infeasible" in str(error)
        return
    if classifies:
        wrong = (1 - model.score(X, y)) * len(y)
        fewest = (1 - DummyClassifier().fit(X, y).score(X, y)) * len(y)
        assert caught or wrong <= fewest + np.sqrt(fewest) + 1e-6
    else:
        spread = ((y - DummyRegressor().fit(X, y).predict(X)) ** 2).sum()
        errors = ((y - model.predict(X)) ** 2).sum()
        assert caught or errors <= 1.0101 * spread


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (KernelRidge, "diabetes"),
        (KernelRidge, "offset"),
        (KernelMachine, "offset"),
        (KernelLMS, "offset"),
        (OnlineKernelRegressor, "offset"),
        (OnlineKernelRegressor, "constant column"),
        (mercer.BayesianLinearRegression, "diabetes"),
    ],
)
def test_what_is_worse_than_the_mean_says_so(learner, name):
    X, y = SETS[False][name]
    model, caught = _at_its_defaults(learner, X, y)
    assert model.score(X, y) < 0
    messages = [str(w.message) for w in caught if issubclass(w.category, MercerWarning)]
    assert any("mean squared error on the training rows" in message for message in messages), messages
    # And what it advises helps.
    if name == "offset":
        better, caught = _at_its_defaults(learner, X, y - y.mean())
        assert better.score(X, y - y.mean()) > 0 and not caught


def test_weights_decide_which_rows_count():
    X, y = SETS[False]["offset"]
    y = np.where(np.arange(len(y)) < 60, y, y - 1e3)
    model = KernelRidge(kernel="rbf")
    with pytest.warns(MercerWarning, match="has the mean 1e"):
        model.fit(X, y, sample_weight=np.arange(len(y)) < 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sample_weight=np.arange(len(y)) >= 60)
    two = np.column_stack([y - y.mean(), SETS[False]["offset"][1]])
    with pytest.warns(MercerWarning, match="column 1 of y"):
        model.fit(X, two)


def test_a_classifier_that_is_worse_than_the_most_frequent_class_says_so():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 2)), (rng.random(200) < 0.1).astype(int)
    # Steps of one size that are far too long: the last rows decide.
    model = OnlineKernelLogisticRegression(gamma=1e-3, learning_rate="constant", eta0=50.0, max_iter=1, shuffle=False)
    order = np.argsort(y, kind="stable")
    with pytest.warns(
        MercerWarning,
        match="of the 200 training rows are misclassified, but only .* if all were assigned the most frequent",
    ):
        assert model.fit(X[order], y[order]).score(X, y) < 0.5
    plain = mercer.KernelPerceptron(averaging="plain", gamma=1e-3, max_iter=1, shuffle=False, margin=1.0)
    with pytest.warns(MercerWarning, match="KernelPerceptron: .* of the 200 training rows are misclassified"):
        assert plain.fit(X[order], y[order]).score(X, y) < 0.5
    steep = mercer.KernelSGDClassifier(kernel="linear", alpha=10.0, max_iter=1, shuffle=False)
    with pytest.warns(MercerWarning, match="KernelSGDClassifier: .* of the 200 training rows are misclassified"):
        assert steep.fit(X[order], y[order]).score(X, y) < 0.9


def test_steps_that_overshoot_are_told_before_they_overflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    model = OnlineKernelRegressor(kernel="linear").partial_fit(X, X[:, 0])
    with pytest.warns(MercerWarning, match=r"times the longest at which the error there does not grow: k\(x, x\) is"):
        model.partial_fit(100 * X[:3], X[:3, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineKernelRegressor(kernel="linear").partial_fit(X, X[:, 0])
        model.partial_fit(X, X[:, 0], step_sizes=np.full(50, 1e-3))
