"""Steps of fits: kept where that is asked for, bounded, and the same fit."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer._errors import ParameterError
from mercer.engine.trace import MOST, Recorder, Step, Trace, portions, record, wanted
from mercer.kernels import RBF

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(100, 3))
Y = np.sin(X).sum(axis=1) + 0.2 * RANDOM.normal(size=100)
CLASSES = np.digitize(Y, [-0.5, 0.5])
BINARY = (Y > 0).astype(int)
LEARNERS: dict[str, tuple[Any, Any, str]] = {
    "svc": (mercer.SVC(C=10.0), BINARY, "dual"),
    "three classes": (mercer.SVC(), CLASSES, "dual"),
    "nu": (mercer.NuSVC(nu=0.3), BINARY, "dual"),
    "tube": (mercer.SVR(), Y, "dual"),
    "one class": (mercer.OneClassSVM(nu=0.1), None, "dual"),
    "projected": (mercer.SVC(solver="projected-gradient", C=0.1), BINARY, "dual"),
    "linear": (mercer.SVC(kernel="linear", C=10.0), BINARY, "dual"),
    "descent": (mercer.KernelSGDClassifier(random_state=0), BINARY, "dual"),
    "several kernels": (mercer.MultipleKernelSVC(kernel=RBF(1.0) + RBF(3.0)), BINARY, "dual"),
    "logistic": (mercer.KernelLogisticRegression(), CLASSES, "dual"),
    "landmarks": (
        mercer.KernelLogisticRegression(approximation="nystroem", n_landmarks=20, random_state=0),
        BINARY,
        "dual",
    ),
    "ridge over landmarks": (
        mercer.KernelRidge(0.1, kernel="rbf", approximation="nystroem", n_landmarks=20, random_state=0),
        Y,
        "dual",
    ),
    "machine": (mercer.KernelMachine("huber"), Y, "dual"),
    "ridge": (mercer.KernelRidge(0.1, kernel="rbf", solver="cg"), Y, "residual"),
    "ordinal": (mercer.KernelOrdinalRegression(), CLASSES, "primal"),
    "process": (mercer.GaussianProcessRegressor(RBF(1.0)), Y, "evidence"),
    "classes": (mercer.GaussianProcessClassifier(RBF(1.0), optimizer=None), BINARY, "violation"),
    "means": (mercer.KernelKMeans(3, random_state=0), None, "inertia"),
    "perceptron": (mercer.KernelPerceptron(random_state=0), BINARY, "mistakes"),
    "gradient descent": (mercer.KernelLMS(), Y, "primal"),
    "online": (mercer.OnlineKernelRegressor(random_state=0), Y, "loss"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_keep_their_steps_and_are_what_they_were(name: str) -> None:
    model, y, value = LEARNERS[name]
    plain = model.fit(X, y)
    assert not hasattr(plain, "trace_")
    ask = "decision_function" if hasattr(plain, "decision_function") else "predict"
    expected = np.asarray(getattr(plain, ask)(X), dtype=float)
    with mercer.config(trace=True):
        model.fit(X, y)
    # Steps of machines go another way to the same tolerance.
    size = max(float(np.abs(expected).max()), 1.0)
    tolerance = 5e-3 if value == "dual" else 1e-12
    np.testing.assert_allclose(np.asarray(getattr(model, ask)(X), dtype=float), expected, atol=tolerance * size)
    trace = model.trace_
    assert 1 <= len(trace) <= MOST and value in trace.names
    assert all(step.seconds >= 0 for step in trace)
    for problem in {step.problem for step in trace}:
        counts = [step.iteration for step in trace if step.problem == problem]
        assert counts == sorted(counts)
    if "dual" in trace.names and "primal" in trace.names:
        primal, dual = np.array(trace.column("primal")), np.array(trace.column("dual"))
        assert (primal - dual >= -1e-6 * np.abs(primal)).all()
    # The next fit without it leaves no steps of an earlier one.
    model.fit(X, y)
    assert not hasattr(model, "trace_")


def test_the_last_step_is_the_answer() -> None:
    with mercer.config(trace=True):
        model = mercer.SVC(C=10.0).fit(X, BINARY)
    last = model.trace_.steps[-1]
    certificate = model.certificate_
    assert last.iteration == certificate.iterations
    assert last.values["primal"] == pytest.approx(certificate.primal, rel=1e-9)
    assert last.values["dual"] == pytest.approx(certificate.dual, rel=1e-9)


def test_long_traces_are_thinned() -> None:
    recorder = Recorder(None)
    for number in range(30_000):
        recorder.add("passes", number, {"loss": 1.0 / (1 + number)})
    trace = recorder.trace()
    assert MOST / 8 <= len(trace) <= MOST
    assert trace.steps[0].iteration == 0 and trace.steps[-1].iteration == 29_999


def test_many_problems_are_bounded() -> None:
    recorder = Recorder(None)
    for _ in range(1000):
        for step in range(3):
            recorder.add("steps", step, {"dual": float(step)})
    assert len(recorder.trace()) <= MOST


def test_a_table_has_gaps_where_a_solver_knew_nothing() -> None:
    frame = Trace([Step("a", 0, 1, 0.1, {"x": 1.0}), Step("b", 1, 1, 0.2, {"z": 2.0})]).frame()
    assert list(frame.columns) == ["work", "problem", "iteration", "seconds", "x", "z"]
    assert frame["x"].isna().tolist() == [False, True]


def test_nothing_is_kept_unless_asked_for() -> None:
    assert not wanted()
    record("passes", 1, lambda: pytest.fail("values are not computed"))
    assert list(portions(50, 7)) == [50]
    with pytest.raises(ParameterError, match="trace must be True or False"):
        mercer.config(trace="yes")


def test_portions_add_up() -> None:
    from_zero: list[int] = []
    with mercer.config(trace=True):

        class Learner(mercer.KernelRidge):
            def fit(self, X: Any, y: Any = None) -> Any:
                from_zero.extend(portions(1000, 0))
                return super().fit(X, y)

        Learner().fit(X[:5], Y[:5])
    assert sum(from_zero) == 1000 and from_zero[0] == 1 and len(from_zero) > 20


def test_fits_of_a_search_keep_their_own(tmp_path: Path) -> None:
    with mercer.config(trace=True):
        search = mercer.GridSearchCV(mercer.SVC(), {"C": [1.0, 10.0]}, cv=2).fit(X, BINARY)
    assert len(search.best_estimator_.trace_)
    model = search.best_estimator_
    mercer.save(model, tmp_path / "m.mercer")
    assert not hasattr(mercer.load(tmp_path / "m.mercer"), "trace_")
    assert len(pickle.loads(pickle.dumps(model)).trace_) == len(model.trace_)
