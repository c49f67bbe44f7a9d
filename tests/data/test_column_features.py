"""The encoding of single columns against definitions: ranks, indicators, the calendar."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import norm, rankdata
from sklearn.preprocessing import QuantileTransformer

from mercer.data.column_features import CategoryColumn, DateColumn, NumberColumn, TextColumn

NUMBERS = st.floats(-1e150, 1e150)


def seconds(dates: pd.DatetimeIndex) -> np.ndarray:
    return dates.to_numpy().astype("datetime64[s]").astype(np.float64)


@given(arrays.arrays(np.float64, st.integers(2, 60), elements=NUMBERS))
def test_scores_are_normal_quantiles_of_mean_ranks(values: np.ndarray) -> None:
    missing = np.zeros(len(values), bool)
    column = NumberColumn.fit(values, missing)
    found = column.encode(values, missing)
    if (values == values[0]).all():
        assert found.shape == (len(values), 0) and column.groups == ()
        return
    expected = norm.ppf((rankdata(values) - 0.5) / len(values)).clip(-2.5, 2.5)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-12)


@given(arrays.arrays(np.float64, 20, elements=NUMBERS), arrays.arrays(np.float64, 30, elements=NUMBERS))
def test_scores_rise_with_the_numbers_and_stay_inside(values: np.ndarray, new: np.ndarray) -> None:
    column = NumberColumn.fit(values, np.zeros(20, bool))
    scores = column.encode(np.sort(new), np.zeros(30, bool))
    assert (np.diff(scores, axis=0) >= -1e-12).all() and (np.abs(scores) <= 2.5).all()


def test_scores_of_many_numbers_are_nearly_those_of_scikit_learn() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=5000)
    column = NumberColumn.fit(values, np.zeros(5000, bool))
    assert len(column.values) == 1000
    peer = QuantileTransformer(output_distribution="normal", subsample=None).fit_transform(values[:, None])
    found = column.encode(values, np.zeros(5000, bool))
    np.testing.assert_allclose(found, peer.clip(-2.5, 2.5), atol=0.06)


def test_missing_numbers_have_the_score_of_the_median_and_an_indicator() -> None:
    values, missing = np.array([3.0, 0.0, 1.0, 2.0]), np.array([False, True, False, False])
    column = NumberColumn.fit(values, missing)
    assert column.groups == (1, 1)
    np.testing.assert_allclose(column.encode(values, missing)[:, 1], missing)
    assert column.encode(values, missing)[1, 0] == 0.0
    # What is missing for the first time at prediction has no indicator.
    assert NumberColumn.fit(values, np.zeros(4, bool)).encode(values, missing)[1].tolist() == [0.0]


def test_a_constant_number_says_something_by_its_gaps_alone() -> None:
    missing = np.array([False, True, False])
    column = NumberColumn.fit(np.full(3, 7.0), missing)
    assert column.encode(np.full(3, 7.0), missing).tolist() == [[0.0], [1.0], [0.0]]
    empty = NumberColumn.fit(np.zeros(3), np.ones(3, bool))
    assert empty.encode(np.ones(3), missing).shape == (3, 0)


def test_rare_and_new_categories_share_an_indicator() -> None:
    values = np.array(["a"] * 3 + ["b"] * 2 + ["c"], dtype=object)
    column = CategoryColumn.fit(values, np.zeros(6, bool))
    found = column.encode(np.array(["a", "b", "c", "d", None], dtype=object), np.array([False] * 4 + [True]))
    assert found.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    # A missing entry is a category if it is frequent.
    gaps = CategoryColumn.fit(values, np.array([False] * 3 + [True] * 3))
    assert gaps.values == ("(missing)", "a")


def test_of_many_categories_the_frequent_ones_have_indicators() -> None:
    values = np.array([f"v{i}" for i in range(80) for _ in range(i + 1)], dtype=object)
    column = CategoryColumn.fit(values, np.zeros(len(values), bool))
    assert set(column.values) == {f"v{i}" for i in range(30, 80)}


@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_a_number_is_the_same_category_in_any_type(dtype: type) -> None:
    column = CategoryColumn.fit(np.array([1, 2, 1, 2]), np.zeros(4, bool))
    found = column.encode(np.array([2, 1], dtype=dtype), np.zeros(2, bool))
    assert found.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_parts_of_dates_are_those_of_the_calendar() -> None:
    dates = pd.date_range("1969-11-01", "1971-03-01", freq="5h")
    values, missing = seconds(dates), np.zeros(len(dates), bool)
    column = DateColumn.fit(values, missing)
    assert column.parts == ("season", "weekday", "time") and column.groups == (1, 2, 7, 2)
    found = column.encode(values, missing)
    np.testing.assert_array_equal(found[:, 3:10].argmax(axis=1), dates.day_of_week)
    angle = 2 * np.pi * (dates.hour + dates.minute / 60) / 24
    np.testing.assert_allclose(found[:, 10:], np.c_[np.cos(angle), np.sin(angle)], atol=1e-9)
    np.testing.assert_allclose((found[:, 1:3] ** 2).sum(axis=1), 1.0)


def test_dates_that_are_missing_have_no_parts() -> None:
    dates = pd.date_range("2024-01-01", "2025-01-01", freq="D")
    missing = np.zeros(len(dates), bool)
    missing[3] = True
    column = DateColumn.fit(seconds(dates), missing)
    assert column.encode(seconds(dates), missing)[3].tolist() == [0.0, 1.0, *[0.0] * 9]
    empty = DateColumn.fit(np.zeros(4), np.ones(4, bool))
    assert empty.parts == () and empty.encode(np.zeros(4), np.ones(4, bool)).shape == (4, 0)


def test_missing_text_is_empty() -> None:
    texts = TextColumn().texts(np.array(["ab", None, 3.0], dtype=object), np.array([False, True, False]))
    assert texts == ["ab", "", "3"]


def test_texts_that_repeat_are_categories_as_well() -> None:
    notes, known = np.array(["a b", "a c", "a b", "a c", "d"], dtype=object), np.zeros(5, bool)
    column = TextColumn.fit(notes, known)
    assert column.groups == (3,) and column.encode(notes, known).argmax(axis=1).tolist() == [0, 1, 0, 1, 2]
    # Of texts that nearly all differ, those that repeat are chance.
    many = np.array([f"note {i // 2 if i < 4 else i}" for i in range(40)], dtype=object)
    assert TextColumn.fit(many, np.zeros(40, bool)).groups == ()
    assert TextColumn.fit(many, np.zeros(40, bool), np.full(40, 3.0)).groups == (39,)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e150])
def test_numbers_as_they_are_have_mean_zero_and_deviation_one(size: float) -> None:
    values = size * np.array([1.0, 2.0, 4.0, 9.0])
    weights = np.array([1.0, 1.0, 2.0, 1.0])
    missing = np.array([False, False, False, True])
    column = NumberColumn.fit(values, missing, weights)
    standard, gaps = column.standardise(values, missing).T
    assert gaps.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert abs(weights[:3] @ standard[:3]) < 1e-12
    assert weights[:3] @ standard[:3] ** 2 == pytest.approx(weights[:3].sum())
    assert standard[3] == 0.0
    assert np.isfinite(column.standardise(np.array([1e300, -1e300]), np.zeros(2, bool))).all()
    assert NumberColumn.fit(np.ones(3), np.zeros(3, bool)).standardise(np.ones(2), np.zeros(2, bool)).shape == (2, 0)
