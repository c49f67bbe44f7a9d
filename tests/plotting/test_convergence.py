"""The steps of a fit as a picture."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer._errors import DataError, ParameterError
from mercer.engine.trace import Step, Trace
from mercer.plotting import ConvergenceDisplay

X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def test_objectives_meet_and_the_gap_is_between_them() -> None:
    with mercer.config(trace=True):
        model = mercer.KernelLogisticRegression().fit(X, Y > 0)
    display = ConvergenceDisplay.from_estimator(model).plot()
    frame = display.frame()
    np.testing.assert_array_equal(display.lines_["primal"].get_ydata(), frame["primal"])
    np.testing.assert_array_equal(display.lines_["violation"].get_ydata(), model.trace_.column("violation"))
    assert display.gap_ is not None and display.right_ax_.get_yscale() == "log"
    assert frame["primal"].iloc[-1] - frame["dual"].iloc[-1] < 1e-3 * frame["primal"].iloc[-1]
    seconds = ConvergenceDisplay.from_estimator(model).plot(x="seconds")
    np.testing.assert_array_equal(seconds.lines_["dual"].get_xdata(), frame["seconds"])
    assert seconds.ax_.get_xlabel() == "seconds"


def test_steps_are_whole_numbers() -> None:
    trace = Trace(
        [Step("steps of k-means", 0, number, 0.1 * number, {"inertia": 1.0 / number}) for number in (2, 3, 4)]
    )
    display = ConvergenceDisplay.from_trace(trace).plot()
    assert display.ax_.get_xlabel() == "steps of k-means"
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


def test_one_of_several_problems_is_shown() -> None:
    with mercer.config(trace=True):
        model = mercer.SVC().fit(X, Y)
    display = ConvergenceDisplay.from_estimator(model).plot()
    assert display.problems == 3
    assert display.ax_.get_legend().get_title().get_text() == f"problem {display.problem + 1} of 3"
    other = ConvergenceDisplay.from_estimator(model, problem=(display.problem + 1) % 3)
    assert other.problem != display.problem
    with pytest.raises(ParameterError, match="there is no problem 3"):
        ConvergenceDisplay.from_estimator(model, problem=3)


def test_one_value_alone_has_one_axis() -> None:
    with mercer.config(trace=True):
        model = mercer.KernelKMeans(3, random_state=0).fit(X)
        ridge = mercer.KernelRidge(0.1, kernel="rbf", solver="cg").fit(X, X[:, 0])
    display = ConvergenceDisplay.from_estimator(model).plot()
    assert display.right_ax_ is None and display.gap_ is None and list(display.lines_) == ["inertia"]
    display = ConvergenceDisplay.from_estimator(ridge).plot()
    assert display.right_ax_ is display.ax_ and display.ax_.get_yscale() == "log"


def test_fits_without_steps_are_named() -> None:
    with pytest.raises(DataError, match="fit it within"):
        ConvergenceDisplay.from_estimator(mercer.SVC().fit(X, Y))
    with mercer.config(trace=True):
        direct = mercer.KernelRidge(0.1).fit(X, X[:, 0])
    with pytest.raises(DataError, match="its solver is direct"):
        ConvergenceDisplay.from_estimator(direct)
    with pytest.raises(DataError, match="a trace with steps"):
        ConvergenceDisplay.from_trace([1, 2])  # type: ignore[arg-type]
    with mercer.config(trace=True):
        model = mercer.KernelPerceptron().fit(X, Y > 0)
    with pytest.raises(ParameterError, match="x must be 'iteration' or 'seconds'"):
        ConvergenceDisplay.from_estimator(model).plot(x="days")
