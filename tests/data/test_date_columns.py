"""Dates as numbers and places in cycles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mercer._errors import DataError
from mercer.data.date_columns import expand_dates, find_dates


def test_cycles_that_the_dates_go_through_are_found() -> None:
    days = pd.date_range("2025-01-01", periods=400, freq="D")
    frame = pd.DataFrame(
        {
            "long": days,
            "text": days.strftime("%Y-%m-%d"),
            "hours": pd.date_range("2025-01-01", periods=400, freq="7min").astype(str),
            "mondays": pd.date_range("2025-01-06", periods=400, freq="7D"),
            "same": "2025-01-01",
            "word": ["a", "b"] * 200,
            "km": range(400),
            "empty": [None] * 400,
        }
    )
    assert find_dates(frame) == {
        "long": ["year", "week"],
        "text": ["year", "week"],
        "hours": ["day"],
        "mondays": ["year"],
        "same": [],
    }
    assert list(find_dates(frame, verbatim=["text", "long"])) == ["hours", "mondays", "same"]


def test_cycles_close() -> None:
    at = pd.to_datetime(["2024-01-01 00:00", "2024-01-08 00:00", "2024-01-01 12:00", "2024-01-02 00:00", None])
    read = expand_dates(pd.DataFrame({"a": range(5), "at": at, "b": range(5)}), {"at": ["year", "week", "day"]}, "t")
    assert read.columns.tolist() == [
        "a",
        "at",
        *[f"at ({p}, {f})" for p in ("year", "week", "day") for f in ("cos", "sin")],
        "b",
    ]
    assert (read["at"].diff()[1:4] == [7.0, -6.5, 0.5]).all() and np.isnan(read["at"][4])
    week, day = (read[[f"at ({part}, cos)", f"at ({part}, sin)"]].to_numpy() for part in ("week", "day"))
    # A Monday begins the week, and midnight the day.
    np.testing.assert_allclose(week[:2], [[1, 0], [1, 0]], atol=1e-8)
    np.testing.assert_allclose(week[3], [np.cos(2 * np.pi / 7), np.sin(2 * np.pi / 7)], atol=1e-8)
    np.testing.assert_allclose(day[:4, 0], [1, 1, -1, 1], atol=1e-8)
    assert np.isnan(week[4]).all()


def test_the_index_of_the_frame_stays() -> None:
    frame = pd.DataFrame({"at": ["2024-01-01", "2024-06-01"], "a": [1, 2]}, index=[7, 3])
    assert expand_dates(frame, {"at": ["year"]}, "t")["a"].to_dict() == {7: 1, 3: 2}


def test_what_is_no_date_is_an_error_with_its_place() -> None:
    frame = pd.DataFrame({"at": ["2024-01-01", None, "soon", "31.01.2024"]})
    with pytest.raises(
        DataError, match=r"new\.csv, row 3, column 'at': 'soon' is not a date such as .* \(2 of 4 rows\)"
    ):
        expand_dates(frame, {"at": ["year"]}, "new.csv")
    with pytest.raises(DataError, match=r"new\.csv, line 4, column 'at'"):
        expand_dates(frame, {"at": ["year"]}, "new.csv", lambda row: f"line {row + 2}")
