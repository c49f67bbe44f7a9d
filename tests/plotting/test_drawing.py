"""What displays share."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mercer import SVC, KernelRidge
from mercer._errors import MissingDependencyError
from mercer.kernels import RBF
from mercer.plotting import BoundaryDisplay, RelevanceDisplay, TubeDisplay
from mercer.plotting.drawing import shown_rows


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    display = TubeDisplay.from_predictions([0.0, 1.0], [0.0, 1.0], epsilon=0.1)
    kept = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return kept(name, *rest, **options)

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"TubeDisplay.plot needs .*'mercer\[plots\]'"):
        display.plot()


def test_given_axes_are_drawn_into() -> None:
    ax = Figure().subplots()
    display = TubeDisplay.from_predictions([0.0, 1.0], [0.0, 1.0], epsilon=0.1)
    assert display.plot(ax) is display and display.ax_ is ax and display.figure_ is ax.figure


def test_rows_are_drawn_once_each_with_a_seed() -> None:
    chosen = shown_rows(1000, 50, 3)
    assert len(set(chosen.tolist())) == 50 and (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, shown_rows(1000, 50, 3))


def test_names_with_dollar_signs_are_shown_as_they_are() -> None:
    names = ["$price_$", "$\\frac{"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=names)
    y = np.where(X[names[0]] > 0, "$a_{$", "b$")
    display = BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() == names[0]
    ridge = KernelRidge(kernel=RBF([1.0, 2.0])).fit(X, X[names[0]])
    RelevanceDisplay.from_estimator(ridge).plot().figure_.canvas.draw()
