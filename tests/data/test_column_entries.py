"""The entries of single columns: kinds, numbers among text, dates with time zones, and what cannot be read."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mercer._errors import DataError, MercerWarning
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.column_entries import Column, dates, kind_of, numbers, read_columns


def column_of(entries: list[object]) -> Column:
    values = np.empty(len(entries), object)
    values[:] = entries
    return Column("it", values, np.array([entry is None for entry in entries]))


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ([1, 2.5, None], "number"),
        ([True, False, None], "number"),
        (["1", "2", "3"], "number"),
        (["3.14", " 2 ", "NA", "?", "", None, 5], "number"),
        (["", None, "nan"], "number"),
        (["1"] * 19 + ["old"], "number"),
        (["1"] * 18 + ["old"], "category"),
        (["007", "120", "NA"], "category"),
        (["a", 1.0, None], "category"),
        ([date(2024, 1, 1), date(2024, 5, 1), None], "date"),
        (["2024-01-01", "", "2024-02-01"], "date"),
        ([dt.time(8, 30), dt.time(14, 5), None], "date"),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00+02:00"], "date"),
        (["2024-01-01", "2024-13-01", None], "category"),
        ([f"word {i}" for i in range(21)], "text"),
        ([f"word {i}" for i in range(20)], "category"),
        ([f"guest {i} said that the room was loud" for i in range(12)] * 3, "text"),
    ],
)
def test_kinds(entries: list[object], kind: str) -> None:
    assert kind_of(column_of(entries)) == kind


@pytest.mark.parametrize("dtype", [object, np.str_, "pandas"])
def test_numbers_as_text_are_the_same_table(dtype: object) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[3, 1] = np.nan
    texts = np.array([[" NA " if np.isnan(entry) else f" {entry!r}" for entry in row] for row in X.tolist()])
    table = pd.DataFrame(texts, columns=["x0", "x1"]) if dtype == "pandas" else texts.astype(dtype)
    encoder, plain = ColumnEncoder().fit(table), ColumnEncoder().fit(X)
    assert encoder.kinds_ == {"x0": "number", "x1": "number"}
    np.testing.assert_array_equal(encoder.transform(table), plain.transform(X))
    np.testing.assert_array_equal(encoder.transform(X), plain.transform(X))
    np.testing.assert_array_equal(plain.transform(table), plain.transform(X))


def test_words_among_numbers_are_gaps_with_a_warning() -> None:
    frame = pd.DataFrame({"age": [str(i) for i in range(38)] + ["unknown", "n.d."]})
    with pytest.warns(MercerWarning, match=r"'age' holds numbers, and also 'n.d.', 'unknown', which count as missing"):
        encoder = ColumnEncoder().fit(frame)
    assert encoder.transform(pd.DataFrame({"age": ["unknown", "3"]}))[:, 1].tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match=r"column 'age' holds numbers, but 'old' in row 1 cannot be read as a number"):
        encoder.transform(pd.DataFrame({"age": ["old", "3"]}))
    # One in three is no exception.
    with pytest.raises(DataError, match=r"'n\.d\.' in row 3 cannot be read"):
        numbers(column_of(["1", "2", "n.d."]))


def test_a_new_gap_may_be_a_word() -> None:
    encoder = ColumnEncoder().fit(np.arange(5.0)[:, None])
    assert encoder.new_gaps(np.array([["?"], ["2"]], dtype=object)).tolist() == [[True], [False]]


def test_a_categorical_column_is_one_whatever_its_values() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2]), "b": pd.Categorical(["1", "2", "1", "2"])})
    assert [kind_of(column) for column in read_columns(frame)] == ["category", "category"]


def test_decimals_and_bytes_are_numbers_and_text() -> None:
    entries = [Decimal("1.25"), Decimal(3), None]
    frame = pd.DataFrame({"price": entries, "size": [b"7", b"8.5", None], "town": ["Zürich".encode(), b"Ulm", None]})
    price, size, town = read_columns(frame)
    assert numbers(price)[0].tolist() == [1.25, 3.0, 0.0] and numbers(size)[0].tolist() == [7.0, 8.5, 0.0]
    assert kind_of(town) == "category" and town.entries.tolist() == ["Zürich", "Ulm", None]
    (of_array,) = read_columns(np.array([[b"7"], [b"9"]]))
    assert numbers(of_array)[0].tolist() == [7.0, 9.0]
    with pytest.raises(DataError, match=r"bytes such as .*xff.* which are not UTF-8 text"):
        list(read_columns(pd.DataFrame({"it": [b"\xff\xfe", b"a"]})))


def test_times_of_day_are_those_of_one_day() -> None:
    (column,) = read_columns(pd.DataFrame({"at": [dt.time(0, 0, 1), None, dt.time(14, 5, tzinfo=UTC)]}))
    seconds, missing = dates(column)
    assert seconds[~missing].tolist() == [1.0, 14 * 3600 + 300.0]


def test_dates_with_time_zones_are_in_utc() -> None:
    naive = pd.date_range("2024-03-30", periods=40, freq="7h")
    expected = naive.to_numpy().astype("datetime64[us]").astype(np.float64) / 1e6
    frame = pd.DataFrame(
        {
            "zone": naive.tz_localize("UTC").tz_convert("Europe/Berlin"),
            "text": naive.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "objects": [stamp.to_pydatetime().replace(tzinfo=UTC) for stamp in naive],
            "offset": [
                (stamp.to_pydatetime() + timedelta(hours=2)).replace(tzinfo=timezone(timedelta(hours=2))).isoformat()
                for stamp in naive
            ],
        }
    ).astype({"objects": object})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for column in read_columns(frame):
            assert kind_of(column) == "date"
            np.testing.assert_array_equal(dates(column)[0], expected)
    assert isinstance(frame["objects"][0], datetime)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (np.array([1 + 2j, 3.0]), "Complex data not supported: column 'it' holds complex numbers such as"),
        ([1 + 2j, 3.0], "Complex data not supported: column 'it'"),
        ([[1, 2], [3]], r"column 'it' holds list values such as '\[1, 2\]', but an entry must be a single number"),
        ([{"a": 1}, 2, 3], "column 'it' holds dict values"),
        ([None, np.ones(2)], "column 'it' holds ndarray values"),
        ([(1, 2), (1, 2)], "column 'it' holds tuple values"),
    ],
)
def test_entries_that_are_no_single_values_are_named(entries: object, words: str) -> None:
    frame = pd.DataFrame({"fine": ["a", "b", "c"][: len(entries)], "it": pd.Series(entries)})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=words):
        list(read_columns(frame))


def test_many_columns_are_told_apart_in_time_linear_in_their_number() -> None:
    frame = pd.DataFrame(np.zeros((1, 30_000)), columns=[f"column {j}" for j in range(30_000)])
    start_time = time.process_time()
    next(iter(read_columns(frame)))
    # To compare all pairs takes ten seconds and more.
    assert time.process_time() - start_time < 3.0


def test_dates_that_are_none_have_their_place() -> None:
    days = np.array(["2024-01-01", "NA", "17.03.2024", "2024-03-17"], dtype=object)
    with pytest.raises(
        DataError, match=r"row 3, column 'day': '17\.03\.2024' is not a date such as .* \(1 of 4 rows\)"
    ):
        dates(Column("day", days, np.zeros(4, bool)))
