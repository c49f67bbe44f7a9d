"""Kernel matrices: the order is that of classes or leaves, and the values are those of the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import SVC
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF, Linear
from mercer.plotting import GramDisplay

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
NAMES = np.where(np.arange(40) % 2, "odd", "even")


def test_rows_of_a_class_stand_together() -> None:
    display = GramDisplay.from_kernel(RBF(1.0), X, NAMES).plot()
    assert display.labels.tolist() == sorted(NAMES) and sorted(display.order.tolist()) == list(range(40))
    np.testing.assert_allclose(display.image_.get_array(), RBF(1.0)(X[display.order]))
    assert [float(line.get_ydata()[0]) for line in display.lines_[:1]] == [19.5]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["even", "odd"]


def test_leaves_bring_near_rows_together() -> None:
    far = np.repeat([0.0, 50.0], 20)[RNG.permutation(40), None] + 0.1 * X[:, :1]
    display = GramDisplay.from_kernel(RBF(1.0), far)
    assert np.abs(np.diff(far[display.order, 0]) > 10).sum() + (np.diff(far[display.order, 0]) < -10).sum() == 1
    given = GramDisplay.from_kernel(RBF(1.0), far, order="given").plot()
    assert given.order.tolist() == list(range(40)) and given.ax_.get_xlabel() == "row"
    # Positions in this order are not those of the rows.
    assert display.plot().ax_.get_xlabel() == "rows, similar ones side by side"


def test_values_on_both_sides_of_zero_have_a_map_about_zero() -> None:
    image = GramDisplay.from_kernel(Linear(), X).plot().image_
    assert image.get_clim()[0] == -image.get_clim()[1] and image.get_cmap().name == "PuOr"
    assert GramDisplay.from_kernel(RBF(1.0), X).plot().image_.get_cmap().name == "cividis"


def test_of_many_rows_a_sample_is_shown() -> None:
    display = GramDisplay.from_kernel(RBF(1.0), X, NAMES, max_rows=10).plot()
    assert display.values.shape == (10, 10) and display.ax_.get_title() == "10 of 40 rows shown"
    assert display.frame().index.tolist() == display.order.tolist()


def test_the_kernel_of_a_fit_and_matrices() -> None:
    model = SVC(gamma=0.3).fit(X, NAMES)
    by_fit = GramDisplay.from_estimator(model, X, order="given")
    np.testing.assert_array_equal(by_fit.values, GramDisplay.from_matrix(by_fit.values, order="given").values)
    np.testing.assert_allclose(by_fit.values, model.kernel_(X))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="'class' needs y"):
        GramDisplay.from_kernel(RBF(1.0), X, order="class")
    with pytest.raises(DataError, match="NaN"):
        GramDisplay.from_kernel(RBF(1.0), np.full((3, 1), np.nan))
    with pytest.raises(NotFittedError):
        GramDisplay.from_estimator(SVC(), X)
    with pytest.raises(ParameterError, match="has no kernel of its own"):
        GramDisplay.from_estimator(SVC(kernel="precomputed").fit(X @ X.T, NAMES), X)
