"""Relevance: length scales of the one part that has them, or scores lost by permutation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC, KernelRidge
from mercer._errors import ParameterError
from mercer.kernels import RBF, Linear, Matern
from mercer.plotting import RelevanceDisplay

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["size", "age", "noise"])
Y = np.sin(TABLE["size"]) + 0.2 * TABLE["age"]


def test_length_scales_with_names() -> None:
    model = KernelRidge(kernel=2.0 * RBF([1.0, 2.0, 50.0]) + Linear()).fit(TABLE, Y)
    display = RelevanceDisplay.from_estimator(model).plot()
    np.testing.assert_allclose(display.values, [1.0, 0.5, 0.02])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["noise", "age", "size"]
    np.testing.assert_allclose(display.points_.get_offsets()[:, 0], [0.02, 0.5, 1.0])
    assert display.ax_.get_xlabel() == "1 / length scale" and display.deviations_ is None
    # Half the height of a point is more than nothing.
    assert display.ax_.get_ylim() == (-0.6, 2.6)


def test_permutations_have_deviations_and_few_features_can_be_shown() -> None:
    model = KernelRidge(0.1, kernel="rbf").fit(TABLE, Y)
    display = RelevanceDisplay.from_permutation(model, TABLE, Y, n_repeats=3).plot(max_features=2)
    assert display.values.argmax() == 0 and len(display.deviations_.get_segments()) == 2
    assert display.ax_.get_title() == "2 of 3 features shown"
    assert display.frame()["feature"].tolist() == ["size", "age", "noise"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(NotFittedError):
        RelevanceDisplay.from_estimator(SVC())
    for kernel, count in ((RBF(1.0), 0), (RBF([1.0] * 3) + Matern([1.0] * 3), 2)):
        with pytest.raises(ParameterError, match=f"has {count} parts with a length scale"):
            RelevanceDisplay.from_estimator(KernelRidge(kernel=kernel).fit(TABLE, Y))


@pytest.mark.parametrize("names", [None, ["p", "q", "r", "s"]])
def test_kernels_on_some_columns_have_the_names_of_these(names):
    X = np.random.default_rng(0).normal(size=(40, 4))
    rows = X if names is None else pd.DataFrame(X, columns=names)
    model = KernelRidge(kernel=0.5 * RBF([1.0, 4.0]).on([3, 1])).fit(rows, X[:, 3])
    expected = ("feature 3", "feature 1") if names is None else ("s", "q")
    assert RelevanceDisplay.from_estimator(model).names == expected
