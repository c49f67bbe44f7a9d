"""Whole tables: kinds of columns, what they become, and what is said of those that cannot be read."""

from __future__ import annotations

import ast
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.columns import MixedRows

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "rooms": pd.array([None, *RNG.integers(1, 6, N - 1)], dtype="Int64"),
        "old": RNG.random(N) < 0.5,
        "town": RNG.choice(["Ulm", "Zug", "Bonn"], N),
        "colour": pd.Categorical(RNG.choice(["red", "blue"], N)),
        "sold": pd.date_range("2024-01-01", periods=N, freq="13D"),
        "built": [f"19{i:02}-03-01" for i in range(N)],
        "note": [f"entry {i} of a list" for i in range(N)],
    }
)
KINDS = ["number", "number", "number", "category", "category", "date", "date", "text"]


def test_kinds_are_recognised() -> None:
    assert list(ColumnEncoder().fit(FRAME).kinds_.values()) == KINDS


def test_features_sources_and_groups_agree() -> None:
    encoder = ColumnEncoder().fit(FRAME)
    rows = encoder.transform(FRAME)
    assert isinstance(rows, MixedRows) and rows.shape == (N, len(encoder.sources_) + 1)
    assert encoder.texts_ == [7] and encoder.sources_.max() == 6
    assert len(encoder.groups_) == len(encoder.sources_)
    assert (np.diff(encoder.groups_) <= 1).all() and (np.diff(encoder.sources_) >= 0).all()
    # Indicators of a category are one group, and those of a missing number another than the number.
    of = {name: np.unique(encoder.groups_[encoder.sources_ == i]).size for i, name in enumerate(encoder.names_[:5])}
    assert of == {"size": 1, "rooms": 2, "old": 1, "town": 1, "colour": 1}


def test_the_rows_of_a_table_are_encoded_one_by_one() -> None:
    encoder = ColumnEncoder().fit(FRAME)
    whole, part = encoder.transform(FRAME), encoder.transform(FRAME.iloc[10:20])
    assert part == whole[np.arange(10, 20)]


def test_arrays_and_frames_of_numbers_are_the_same() -> None:
    X = RNG.normal(size=(30, 3))
    X[3, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = ColumnEncoder().fit(X).transform(X)
    for other in (frame, X.astype(object), frame.astype("Float64")):
        np.testing.assert_array_equal(ColumnEncoder().fit(other).transform(other), expected)
    assert ColumnEncoder().fit(X).names_ == ["x0", "x1", "x2"]


def test_kinds_may_be_given() -> None:
    frame = pd.DataFrame({"zip": [1, 2, 1, 2], "size": [1.0, 2.0, 3.0, 4.0]})
    encoder = ColumnEncoder({"zip": "category"}).fit(frame)
    assert encoder.transform(frame)[:, :3].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]]
    with pytest.raises(ParameterError, match="names the column 'zipp', which X lacks; did you mean 'zip'"):
        ColumnEncoder({"zipp": "category"}).fit(frame)
    with pytest.raises(ParameterError, match="no kind 'categories'"):
        ColumnEncoder({"zip": "categories"}).fit(frame)
    with pytest.raises(ParameterError, match="kinds must be a dict"):
        ColumnEncoder(["zip"]).fit(frame)  # type: ignore[arg-type]


def test_a_table_that_says_nothing_has_one_feature_of_zeros() -> None:
    frame = pd.DataFrame({"a": [1.0, 1.0], "b": ["x", "x"], "c": [None, None]})
    encoder = ColumnEncoder().fit(frame)
    assert encoder.transform(frame).tolist() == [[0.0], [0.0]]
    assert encoder.sources_.tolist() == encoder.groups_.tolist() == [0]


def test_other_types_at_prediction() -> None:
    encoder = ColumnEncoder().fit(FRAME[["size", "sold", "town"]])
    with pytest.raises(DataError, match=r"column 'size' holds numbers, but .* kinds=\{'size': \"category\"\}"):
        encoder.transform(FRAME[["size", "sold", "town"]].assign(size="large"))
    with pytest.raises(DataError, match="row 1, column 'sold': 'yesterday' is not a date"):
        encoder.transform(FRAME[["size", "sold", "town"]].assign(sold="yesterday"))
    numbers = encoder.transform(FRAME[["size", "sold", "town"]].assign(town=3))
    assert numbers[:, -1].tolist() == [1.0] * N


def test_numbers_that_are_not_finite() -> None:
    with pytest.raises(DataError, match="column 'x1' holds inf in row 1"):
        ColumnEncoder().fit(np.array([[1.0, np.inf], [2.0, 3.0]]))


def test_two_columns_of_one_name() -> None:
    with pytest.raises(DataError, match="several columns of the name 'a'"):
        ColumnEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_numbers_as_they_are_come_before_text() -> None:
    frame = pd.DataFrame({"town": list("UZUZ"), "pay": [1.0, 2.0, 3.0, 100.0], "words": ["a", "b", "c", "d"]})
    encoder = ColumnEncoder({"words": "text"}, numbers=True).fit(frame)
    features = encoder.transform(frame)
    assert encoder.numbers_.tolist() == [1]
    assert encoder.sources_.tolist() == [0, 0, 0, 1, 1]
    pay = frame["pay"].to_numpy()
    np.testing.assert_allclose(features.columns[4], (pay - pay.mean()) / pay.std())
    other, plain = encoder.without_numbers(features)
    assert [type(column).__name__ for column in plain.columns] == ["ndarray"] * 4 + ["Strings"]
    expected = ColumnEncoder({"words": "text"}).fit_transform(frame)
    for column, known in zip(plain.columns[:4], expected.columns[:4], strict=True):
        assert column.tolist() == known.tolist()
    assert other.sources_.tolist() == [0, 0, 0, 1]


def test_scores_that_are_cut_off_later_are_those_that_were_cut_off_from_the_start() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(size=500), "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(500), "D")}
    )
    frame["town"] = rng.choice(["Ulm", "Zug"], 500)
    far, near = ColumnEncoder(farthest=3.5).fit(frame), ColumnEncoder().fit(frame)
    scores = far.transform(frame)[:, :2]
    np.testing.assert_allclose(np.abs(scores).max(axis=0), norm.ppf(1 - 0.5 / 500))
    found = far.cut_off(2.5)
    np.testing.assert_array_equal(found.transform(frame), near.transform(frame))
    assert found.farthest == near.farthest == 2.5 and far.farthest == 3.5
    assert np.abs(near.transform(frame)[:, :2]).max() == 2.5


@pytest.mark.parametrize(
    ("entries", "what"), [(["5.5 kg", "7 kg"] * 3, "numbers"), (["31-Aug-2024", "1-Sep-2024"] * 3, "dates")]
)
def test_quantities_that_are_compared_as_text_are_said(entries: list[str], what: str) -> None:
    frame = pd.DataFrame({"it": entries})
    with pytest.warns(
        MercerWarning, match=f"column 'it' holds {what} in another|column 'it' holds {what} such"
    ) as seen:
        ColumnEncoder().fit(frame)
    (kinds,) = re.findall(r"kinds=(\{.*\})", str(seen[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ColumnEncoder(ast.literal_eval(kinds)).fit(frame)
        ColumnEncoder().fit(pd.DataFrame({"it": ["007", "012"] * 3}))
