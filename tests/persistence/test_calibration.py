"""Calibrated classifiers come back from files with the same probabilities; lies about them are found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import mercer
from mercer import load, save
from mercer._errors import ModelFileError
from mercer.persistence.calibration import STATED

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(90, 3)), RNG.normal(size=(11, 3))
TWO, THREE = X[:, 0] > 0, np.digitize(X[:, 0], [-0.5, 0.5])
METHODS = ["sigmoid", "isotonic", *(["temperature"] if len(STATED) > 4 else [])]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("learner", [mercer.SVC, mercer.NuSVC])
def test_probabilities_are_the_same_bit_for_bit(learner, y, method, tmp_path):
    model = learner(**({"nu": 0.1} if learner is mercer.NuSVC else {})).calibrated(cv=3, method=method).fit(X, y)
    save(model, tmp_path / "model.mercer")
    back = load(tmp_path / "model.mercer")
    assert back.predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()
    assert back.predict(NEW).tolist() == model.predict(NEW).tolist()
    assert b"interp1d" not in (tmp_path / "model.mercer").read_bytes()
    # What is loaded can be saved again, and fitted again.
    save(back, tmp_path / "again.mercer")
    assert back.fit(X, y).predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()


def test_an_unfitted_one_comes_back(tmp_path):
    save(mercer.SVC(C=3.0).calibrated(), tmp_path / "model.mercer")
    assert load(tmp_path / "model.mercer").estimator.C == 3.0


def test_isotonic_regression_alone_comes_back_without_its_function(tmp_path):
    model = IsotonicRegression(out_of_bounds="clip").fit(X[:, 0], X[:, 0] + X[:, 1])
    save(model, tmp_path / "model.mercer")
    assert load(tmp_path / "model.mercer").predict(NEW[:, 0]).tobytes() == model.predict(NEW[:, 0]).tobytes()


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [("a_", np.nan, "a_ must be a finite number"), ("b_", "1", "b_ must be a number")],
)
def test_lies_about_a_calibrator_are_refused(attribute, value, message, tmp_path):
    model = mercer.SVC().calibrated(cv=3).fit(X, THREE)
    setattr(model.calibrated_classifiers_[0].calibrators[1], attribute, value)
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model.mercer")


def test_calibrators_that_are_missing_or_of_other_classes_are_refused(tmp_path):
    model = mercer.SVC().calibrated(cv=3).fit(X, THREE)
    one = model.calibrated_classifiers_[0]
    last = one.calibrators.pop()
    with pytest.raises(ModelFileError, match="parts do not match"):
        save(model, tmp_path / "model.mercer")
    one.calibrators.append(last)
    one.estimator = mercer.SVC().fit(X, TWO)
    with pytest.raises(ModelFileError, match="parts do not match"):
        save(model, tmp_path / "model.mercer")
