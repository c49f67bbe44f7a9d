"""CV+ and split conformal prediction against their definitions, for numbers and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

import mercer
from mercer import SVC, SVR, ConformalClassifier, ConformalRegressor, KernelLogisticRegression, KernelPerceptron
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ModelFileError, ParameterError
from mercer.kernels import Spectrum

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 2)), RNG.normal(size=(8, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=60)
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])]


def test_numbers_have_the_intervals_of_the_definition() -> None:
    model = ConformalRegressor(SVR(), cv=4, random_state=1).fit(X, Y)
    found = model.interval(NEW, 0.8)
    low, high = [], []
    for training, others in KFold(4, shuffle=True, random_state=1).split(X):
        part = SVR().fit(X[training], Y[training])
        errors = np.abs(Y[others] - part.predict(X[others]))[:, None]
        low.append(part.predict(NEW) - errors)
        high.append(part.predict(NEW) + errors)
    np.testing.assert_allclose(found.lower, np.sort(np.concatenate(low), axis=0)[11])
    np.testing.assert_allclose(found.upper, np.sort(np.concatenate(high), axis=0)[-12])
    np.testing.assert_array_equal(model.predict(NEW), SVR().fit(X, Y).predict(NEW))
    assert found.guaranteed == pytest.approx(0.6 - min(2 * 0.75 / 16, (1 - 4 / 60) / 5))


def test_held_out_numbers_give_one_width_and_the_whole_guarantee() -> None:
    model = ConformalRegressor(Ridge(), cv=0.5).fit(X, Y)
    found = model.interval(NEW, 0.9)
    (part,), errors = model.cross_fit_.models, np.sort(np.abs(model.cross_fit_.errors))
    # Of 30 errors the 28th: the least whose rank is at least 0.9 * 31.
    np.testing.assert_allclose(found.upper - part.predict(NEW), errors[27])
    assert found.guaranteed == 0.9 and found.explain().endswith("prediction, guaranteed for exchangeable rows")


@pytest.mark.parametrize("learner", [SVC(), KernelLogisticRegression(), LogisticRegression()], ids=str)
def test_classes_have_the_sets_of_the_definition(learner: Any) -> None:
    model = ConformalClassifier(learner, cv=4, random_state=1).fit(X, THREE)
    found = model.predict_set(NEW, 0.8)
    worse = np.zeros((len(NEW), 3))
    for training, others in StratifiedKFold(4, shuffle=True, random_state=1).split(X, THREE):
        part = clone(learner).fit(X[training], THREE[training])
        values = getattr(part, "predict_proba", None) or part.decision_function
        own = values(X[others])[np.arange(len(others)), np.searchsorted(part.classes_, THREE[others])]
        worse += (own[:, None, None] > values(NEW)).sum(axis=0)
    members = worse < 0.8 * 61
    members |= model.predict(NEW)[:, None] == model.classes_
    np.testing.assert_array_equal(found.members, members)
    assert 0.4 < found.guaranteed < 0.6


@pytest.mark.parametrize("labels", [THREE, THREE == "elm"], ids=["three", "two"])
@pytest.mark.parametrize(
    "learner", [SVC(C=10.0), KernelPerceptron(kernel="rbf", random_state=0)], ids=["svc", "perceptron"]
)
def test_decision_values_become_probabilities_that_agree_with_scikit_learn(learner: Any, labels: np.ndarray) -> None:
    model = ConformalClassifier(learner).fit(X, labels)
    shares = model.predict_proba(NEW)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    splits = StratifiedKFold(5, shuffle=True, random_state=0)
    peer = CalibratedClassifierCV(learner, cv=splits, ensemble=False).fit(X, labels)
    np.testing.assert_allclose(shares, peer.predict_proba(NEW), atol=0.02)


def test_own_probabilities_stay() -> None:
    model = ConformalClassifier(KernelLogisticRegression()).fit(X, THREE)
    np.testing.assert_array_equal(model.predict_proba(NEW), KernelLogisticRegression().fit(X, THREE).predict_proba(NEW))


def test_coverage_is_what_was_asked_for() -> None:
    numbers, classes = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(1100, 2))
        y = rows[:, 0] + rng.standard_t(3, size=1100)
        found = ConformalRegressor(Ridge()).fit(rows[:100], y[:100]).interval(rows[100:], 0.9)
        numbers.append(np.mean((found.lower <= y[100:]) & (y[100:] <= found.upper)))
        labels = (y > 0).astype(int)
        sets = ConformalClassifier(LogisticRegression()).fit(rows[:100], labels[:100]).predict_set(rows[100:], 0.9)
        classes.append(sets.members[np.arange(1000), labels[100:]].mean())
    assert 0.88 < np.mean(numbers) < 0.94
    assert 0.88 < np.mean(classes) < 0.95


def test_rows_of_text() -> None:
    texts, labels = ["abab", "baba", "xyxy", "yxyx"] * 6, [0, 0, 1, 1] * 6
    model = ConformalClassifier(SVC(kernel=Spectrum(2)), cv=3).fit(texts, labels)
    assert model.predict_set(["abba", "xyyx"], 0.8).labels() == [[0], [1]]


def test_a_class_of_one_row_is_known_to_some_copies_only() -> None:
    labels = np.array(["common"] * 30 + ["other"] * 29 + ["rare"])
    model = ConformalClassifier(SVC(), cv=3).fit(X, labels)
    assert model.predict_proba(NEW).shape == (8, 3) and model.predict_set(NEW).members.any(axis=1).all()


@pytest.mark.parametrize("cv", [1, 0, 1.0, 0.0, -2, True, "five", None, np.nan])
def test_parts_that_are_none_are_refused(cv: Any) -> None:
    with pytest.raises(ParameterError, match="cv must be a number of parts, 2 or more, or the share"):
        ConformalRegressor(SVR(), cv=cv).fit(X, Y)


def test_data_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(DataError, match="4 rows, which make no 5 parts"):
        ConformalRegressor(SVR()).fit(X[:4], Y[:4])
    with pytest.raises(DataError, match=r"y must have the shape \(60,\)"):
        ConformalRegressor(SVR()).fit(X, np.c_[Y, Y])
    with pytest.raises(DataError, match="one class alone"):
        ConformalClassifier(SVC()).fit(X, np.zeros(60))
    with pytest.raises(ParameterError, match="kernel is 'precomputed'; pass a kernel"):
        ConformalRegressor(SVR(kernel="precomputed")).fit(X @ X.T, Y)
    with pytest.raises(ParameterError, match="decision_function_shape='ovr'"):
        ConformalClassifier(SVC(decision_function_shape="ovo"), cv=2).fit(
            np.r_[X, X], np.tile(["a", "b", "c", "d"], 30)
        )
    with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
        ConformalClassifier(SVC()).fit(X, THREE).predict_set(NEW, 1.2)


def test_the_memory_budget_bounds_the_rows_that_are_worked_on() -> None:
    model, many = ConformalRegressor(Ridge(), cv=2).fit(X, Y), RNG.normal(size=(700, 2))
    whole = model.interval(many)
    with mercer.config(memory="64KiB"):
        np.testing.assert_array_equal(model.interval(many).lower, whole.lower)
    with mercer.config(memory="8KiB"), pytest.raises(MemoryBudgetError, match="new rows by 2 fits"):
        model.interval(many)


def test_few_rows_have_unbounded_intervals_with_a_warning() -> None:
    model = ConformalRegressor(Ridge(), cv=2).fit(X[:6], Y[:6])
    with pytest.warns(MercerWarning, match="unbounded for 6 rows"):
        assert np.isinf(model.interval(NEW).lower).all()


def test_forged_parts_are_found(tmp_path: Any) -> None:
    for change, words in (
        ({"parts": np.full(60, 9)}, "parts"),
        ({"scores": np.full(60, np.nan)}, "scores"),
        ({"scores": np.zeros(3)}, "scores"),
        ({"slopes": np.zeros(1)}, "slopes|offsets"),
        ({"slopes": np.zeros(1), "offsets": np.zeros(1)}, "its parts do not match"),
        ({"models": (SVC(),) * 5}, "a copy of the learner is not fitted"),
        ({"models": (SVC().fit(X, Y > 0),) * 5}, "its parts do not match"),
    ):
        model = ConformalClassifier(SVC()).fit(X, THREE)
        for name, value in change.items():
            object.__setattr__(model.cross_fit_, name, value)
        with pytest.raises(ModelFileError, match=words):
            mercer.save(model, tmp_path / "model.mercer")


def test_many_held_out_rows_take_little_memory() -> None:
    model = ConformalRegressor(Ridge(), cv=0.9).fit(np.arange(50_000.0)[:, None], np.arange(50_000.0) % 7)
    whole = model.interval([[3.0], [5.0]])
    with mercer.config(memory="2MiB"):
        np.testing.assert_array_equal(model.interval([[3.0], [5.0]]).lower, whole.lower)
