"""Searches: candidates with their scores, and those whose intervals say that they could be the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV as OtherSearch

from mercer import SVC, GridSearchCV, KernelSearchCV
from mercer._errors import DataError, ParameterError
from mercer.plotting import SearchDisplay

X = np.random.default_rng(0).normal(size=(45, 2))
SIDES = X[:, 0] > 0
GRID = {"C": [0.1, 1.0, 100.0], "gamma": [0.1, 1.0]}


def made(bounds: Any) -> KernelSearchCV:
    """A search with given results."""
    results = {
        "param_C": np.ma.masked_array([1.0, 10.0, 100.0, 5.0], [0, 0, 0, 1], dtype=object),
        "mean_test_score": np.array([0.6, 0.9, 0.8, 0.95]),
    }
    search = KernelSearchCV(SVC())
    search.cv_results_, search.bounds_ = results, np.array(bounds)
    return search


@pytest.mark.parametrize("search", [GridSearchCV(SVC(), GRID, cv=3), OtherSearch(svm.SVC(), GRID, cv=3)], ids=type)
def test_two_parameters_are_a_map(search: Any) -> None:
    display = SearchDisplay.from_search(search.fit(X, SIDES)).plot()
    assert display.names == ("C", "gamma") and (np.diff(display.scores) >= 0).all()
    np.testing.assert_array_equal(display.candidates_.get_array(), display.scores)
    assert display.best_.get_offsets()[0].tolist() == [display.values[-1, 0], display.values[-1, 1]]
    assert display.ax_.get_xscale() == "log" and display.ax_.get_yscale() == "linear"
    # The worst candidates have nearly the colour of a dark page.
    assert display.candidates_.get_linewidths()[0] > 0 and len(display.candidates_.get_edgecolors()) == 1
    half = search.cv_results_["std_test_score"].max() / np.sqrt(3)
    assert np.isclose(np.diff(display.intervals, axis=1).max(), 2 * half)


def test_candidates_that_reach_the_best_are_marked() -> None:
    display = SearchDisplay.from_search(made([[0.5, 0.7], [0.85, 0.95], [0.7, 0.86], [0.9, 1.0]])).plot()
    # The masked candidate has no C, and the worst one does not reach 0.85.
    assert display.frame()["C"].tolist() == [1.0, 100.0, 10.0] and display.open.tolist() == [False, True, False]
    assert display.open_.get_offsets().tolist() == [[100.0, 0.8]]
    assert [segment[:, 1].tolist() for segment in display.intervals_.get_segments()][1] == [0.7, 0.86]


def test_unknown_bounds_leave_the_scores() -> None:
    display = SearchDisplay.from_search(made(np.full((4, 2), np.nan)))
    assert not display.open.any() and len(display.scores) == 3


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(NotFittedError):
        SearchDisplay.from_search(GridSearchCV(SVC(), GRID))
    search = GridSearchCV(SVC(), {"C": [1.0], "kernel": ["rbf", "linear"]}, cv=3).fit(X, SIDES)
    with pytest.raises(ParameterError, match="Different numbers have been tried for: none"):
        SearchDisplay.from_search(search)
    with pytest.raises(DataError, match="no candidate of the search has a score and numbers for kernel"):
        SearchDisplay.from_search(search, parameters="kernel")
