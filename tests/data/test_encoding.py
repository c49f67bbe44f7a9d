"""From a table to a matrix, and the check of new tables against the schema."""

from __future__ import annotations

import pickle
import re
from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from mercer._errors import DataError, MemoryBudgetError, MercerWarning, ParameterError, SchemaError
from mercer.data.encoding import TableEncoder, as_table
from mercer.data.raw_table import RawTable
from mercer.data.schema import infer_schema
from mercer.engine.settings import config


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [20.0, 30.0, 40.0, 60.0],
            "town": ["Ulm", "Zug", "Ulm", "Bonn"],
            "new": [True, False, False, True],
            "size": [1, 2, 3, 4],
        }
    )


def test_columns_of_every_kind(frame):
    encoder = TableEncoder().fit(frame)
    assert encoder.schema_.kinds == {"age": "number", "town": "category", "new": "boolean", "size": "number"}
    assert encoder.feature_names_ == ["age", "size", "new", "town=Bonn", "town=Ulm", "town=Zug"]
    assert encoder.positions("town") == [3, 4, 5]
    matrix = encoder.transform(frame)
    assert np.allclose(matrix[:, :2], StandardScaler().fit_transform(frame[["age", "size"]]))
    assert matrix[:, 2].tolist() == [1, 0, 0, 1]
    assert matrix[:, 3:].tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("normalize", "scaler"), [("standard", StandardScaler()), ("minmax", MinMaxScaler()), ("unit", Normalizer())]
)
def test_numbers_are_scaled_as_asked(frame, normalize, scaler):
    numbers = frame[["age", "size"]]
    assert np.allclose(TableEncoder(normalize).fit(numbers).transform(numbers), scaler.fit_transform(numbers))


def test_numbers_as_they_are(frame):
    numbers = frame[["age", "size"]]
    assert np.array_equal(TableEncoder("none").fit(numbers).transform(numbers), numbers.to_numpy())


def test_parameters_are_checked(frame):
    with pytest.raises(ParameterError, match=r"normalize='minmx' is unknown; choose one of standard, minmax"):
        TableEncoder("minmx").fit(frame)
    with pytest.raises(ParameterError, match=r"impute='zero' is unknown; choose one of mean, median"):
        TableEncoder(impute="zero").fit(frame)


def test_encoder_is_cloned_as_scikit_learn_expects():
    encoder = clone(TableEncoder("unit", "median"))
    assert (encoder.normalize, encoder.impute) == ("unit", "median")


def test_missing_values_are_an_error_that_names_the_columns(frame):
    frame.loc[[1, 2], "age"] = np.nan
    frame["new"] = pd.Series([True, None, True, False], dtype=object)
    with pytest.raises(DataError) as caught:
        TableEncoder().check(frame, source="a.csv", locate=lambda row: f"line {row + 2}")
    for words in ("a.csv", "'age' (2)", "'new' (1)", "line 3, column 'age'", "--impute median"):
        assert words in str(caught.value)


def test_missing_values_are_filled_in(frame):
    frame.loc[3, "age"] = np.nan
    frame.loc[3, "town"] = None
    frame["new"] = pd.Series([True, None, True, False], dtype=object)
    encoder = TableEncoder("none", impute="mean").fit(frame)
    matrix = encoder.transform(frame)
    assert matrix[3, 0] == 30.0
    assert matrix[1, 2] == 1.0
    assert matrix[3, encoder.feature_names_.index("town=(missing)")] == 1.0
    assert matrix[:, encoder.positions("town")].sum(axis=1).tolist() == [1.0] * 4
    assert np.isfinite(matrix).all()


def test_columns_that_are_filled_in_have_a_column_that_tells_where(frame):
    frame.loc[3, "age"] = np.nan
    frame["new"] = pd.Series([True, None, True, False], dtype=object)
    encoder = TableEncoder(impute="median").fit(frame)
    assert encoder.schema_.indicators == ["age", "new"]
    matrix = encoder.transform(frame)
    assert matrix.shape[1] == encoder.schema_.encoded_columns == len(encoder.feature_names_) == len(encoder.sources_)
    for name, gaps in (("age", [0, 0, 0, 1]), ("new", [0, 1, 0, 0])):
        assert matrix[:, encoder.feature_names_.index(f"{name}=(missing)")].tolist() == gaps
        assert len(encoder.positions(name)) == 2
    # Of a gap in a column that had none nothing is known, and it is filled in alone.
    later = TableEncoder(impute="median").fit(frame.drop(index=[1, 3]))
    assert later.schema_.indicators == [] and np.isfinite(later.transform(frame)).all()


def test_indicators_of_a_whole_table_stand_in_its_parts_too(frame):
    frame.loc[3, "age"] = np.nan
    encoder = TableEncoder(impute="mean")
    part = encoder.fit(frame.iloc[:3], schema=encoder.check(frame)).transform(frame.iloc[:3])
    assert part.shape[1] == encoder.schema_.encoded_columns
    assert encoder.schema_.only(["town"], "not used").indicators == []


def test_indicators_beside_sparse_categories_and_text():
    n = 60
    rows = pd.DataFrame(
        {"code": [f"c{i % 30}" for i in range(n)], "x": [np.nan, *range(1, n)], "word": ["ab", "ba"] * 30}
    )
    encoder = TableEncoder(impute="mean").fit(rows[["code", "x"]])
    matrix = encoder.transform(rows[["code", "x"]])
    assert sp.issparse(matrix) and matrix[:, -1].toarray().ravel().tolist() == [1.0] + [0.0] * (n - 1)
    mixed = TableEncoder(impute="mean", roles={"word": "text"}).fit(rows)
    columns = mixed.transform(rows)
    assert mixed.sources_[-2:] == ["x", "word"] and columns.shape == (n, mixed.schema_.encoded_columns)


def test_empty_columns_are_left_out(frame):
    encoder = TableEncoder(impute="median").fit(frame.assign(notes=None, score=np.nan))
    assert encoder.schema_.left_out == {"notes": "empty in every row", "score": "empty in every row"}
    assert encoder.transform(frame.assign(notes="late", score=1.0)).shape == (4, 6)


def test_missing_categories_are_a_category_of_their_own(frame):
    whole = frame.assign(town=[None, None, None, "Bonn"])
    encoder = TableEncoder()
    encoder.fit(whole.iloc[:3], schema=encoder.check(whole))
    assert encoder.schema_.categories == {"town": ["Bonn", "(missing)"]}
    assert encoder.transform(whole)[:, encoder.positions("town")].tolist() == [[0, 1], [0, 1], [0, 1], [1, 0]]
    # To a model that has seen none it is one category more that it does not know.
    encoder = TableEncoder().fit(frame)
    with pytest.warns(MercerWarning, match=r"'\(missing\)' in 1 row"):
        matrix = encoder.transform(frame.assign(town=[*frame["town"][:3], None]))
    assert matrix[3, encoder.positions("town")].tolist() == [0.0] * len(encoder.positions("town"))


def test_matrix_that_does_not_fit_the_budget_is_refused_before_it_is_made(frame):
    with config(memory="100B"), pytest.raises(MemoryBudgetError, match=r"encoded table \(4 rows, 6 columns\)"):
        TableEncoder().check(frame)
    wide = sp.csr_matrix(([1.0], ([0], [2**31 - 2])), shape=(2, 2**31 - 1))
    with config(memory="1GiB"), pytest.raises(MemoryBudgetError, match=r"scales of 2147483647 columns"):
        TableEncoder().check(wide)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["1,100", "2,200"], "numbers in another notation such as '1,100'"),
        (["1.100,5", "2,5"], "numbers in another notation"),
        (["1 100", "$ 2"], "numbers in another notation"),
        (["€ .5", "+12"], "numbers in another notation"),
        (["5%", "10 %"], "numbers in another notation"),
        (["2020-01-31", "2020-1-2 10:00"], "dates such as '2020-01-31'"),
        (["31.01.2020", "1/2/2021"], "dates such as '31.01.2020'"),
        (["63.7 kg", "64 kg"], "numbers in another notation such as '63.7 kg'"),
        (["63.7k", "64", "7"], "numbers in another notation such as '63.7k'"),
        (["31-Aug-2024", "1-Sep-2024"], "dates such as '31-Aug-2024'"),
        (["14:05", "15:05"], "dates such as '14:05'"),
    ],
)
def test_quantities_written_as_text_are_no_categories(values, what):
    with pytest.raises(DataError, match=rf"row 1, column 'a': the column holds {re.escape(what)}.*--drop a"):
        TableEncoder().check(pd.DataFrame({"a": values}))


@pytest.mark.parametrize("names", [["1B", "2B", "3B"], ["64GB", "128GB"], ["12 V", "24 V"], ["1001-01", "1002-05"]])
def test_names_that_begin_like_quantities_are_categories(names):
    frame = pd.DataFrame({"name": names * 20, "x": range(20 * len(names))})
    assert TableEncoder().check(frame).kinds["name"] == "category"


def test_an_unnamed_measurement_in_order_is_a_number():
    seconds = np.cumsum(np.random.default_rng(0).integers(1, 30, 60))
    assert TableEncoder().check(pd.DataFrame({"Unnamed: 0": seconds, "x": seconds % 7})).kinds["Unnamed: 0"] == "number"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["2020-01-31", "2020-02-30", "2020-02-31"],
            r"row 2, column 'a': '2020-02-30' is not a date .* \(2 of 3 rows\)",
        ),
        (["2020-01-31", "2020-02-28", 7.5], r"row 3, column 'a': '7.5' is not a date such as .* \(1 of 3 rows\)"),
    ],
)
def test_the_entry_that_is_no_date_is_named(values, words):
    with pytest.raises(DataError, match=words):
        TableEncoder().check(pd.DataFrame({"a": values}))


@pytest.mark.parametrize("values", [["18-25", "26-35"], ["1.2.3", "1.2.4"], ["A1", "10 km"], ["1,2,3", "4,5"]])
def test_text_with_digits_is_a_category(values):
    assert TableEncoder().check(pd.DataFrame({"a": values})).kinds == {"a": "category"}


def test_numbers_too_large_to_be_squared_are_named(frame):
    frame.loc[2, "age"] = -1e200
    with pytest.raises(DataError, match=r"row 3, column 'age': the value is -1e\+200, and 1e\+150 is the largest"):
        TableEncoder().check(frame)


def test_infinite_values_are_named(frame):
    frame.loc[2, "age"] = np.inf
    with pytest.raises(DataError, match=r"a.csv, row 3, column 'age': the value is infinite \(1 of 4 rows\)"):
        TableEncoder().check(frame, source="a.csv")


def test_text_among_numbers_is_named_with_its_place():
    frame = pd.DataFrame({"age": ["20", "30", "x40", "50"]})
    with pytest.raises(DataError, match=r"a.csv, line 4, column 'age': 'x40' is text, but most"):
        TableEncoder().check(frame, source="a.csv", locate=lambda row: f"line {row + 2}")


def test_numbers_that_came_as_text_are_numbers():
    frame = pd.DataFrame({"age": pd.Series(["20", "30.5"], dtype=object)})
    assert TableEncoder("none").fit(frame).transform(frame).tolist() == [[20.0], [30.5]]


def test_dates_and_lists_are_refused():
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(DataError, match=r"column 'day': the column holds dates such as .*--drop day"):
        TableEncoder().fit(dates)
    with pytest.raises(DataError, match=r"the column 'the bag' holds list values.*--drop \"the bag\""):
        TableEncoder().fit(pd.DataFrame({"the bag": [[1], [2]]}))


def test_durations_times_decimals_and_bytes_are_read():
    frame = pd.DataFrame(
        {
            "took": pd.to_timedelta([90.0, 3600.5, None], unit="s"),
            "price": [Decimal("1.5"), None, Decimal(2)],
            "size": [b"7", b"8", b"9"],
        }
    )
    read = as_table(frame)
    np.testing.assert_array_equal(read["took"], [90.0, 3600.5, np.nan])
    np.testing.assert_array_equal(read["price"], [1.5, np.nan, 2.0])
    assert infer_schema(read, "a table", str).kinds == {"took": "number", "price": "number", "size": "number"}
    at = pd.DataFrame({"at": [time(8, 30), None, time(14, 5)]})
    expected = pd.to_datetime(["1970-01-01 08:30", None, "1970-01-01 14:05"])
    np.testing.assert_array_equal(RawTable().fit(at).transform(at)["at"], expected)
    months = pd.DataFrame({"month": ["2024-08", "2024-12"], "code": ["2024-08", "2024-13"]})
    assert RawTable().fit(months).schema_.kinds == {"month": "date", "code": "category"}


def test_names_and_row_counters_are_left_out():
    frame = pd.DataFrame(
        {"Unnamed: 0": range(50), "name": [f"n{i}" for i in range(50)], "town": ["a", "b"] * 25, "x": range(50)}
    )
    schema = TableEncoder().check(frame)
    assert set(schema.left_out) == {"Unnamed: 0", "name"}
    assert "50 different values in 50 rows" in schema.left_out["name"]
    assert list(schema.kinds) == ["town", "x"]
    with pytest.raises(DataError, match=r"no column to learn from: 'name' is left out"):
        TableEncoder().check(frame[["name"]])
    # Some of the rows, whose numbers are floats where they are read in blocks.
    kept = frame.drop(index=[3, 17, 30])
    for some in (kept, kept.astype({"Unnamed: 0": float})):
        assert "Unnamed: 0" in TableEncoder().check(some).left_out
    assert "Unnamed: 0" in TableEncoder().check(frame.astype({"Unnamed: 0": float}).iloc[::-1]).kinds


def test_columns_may_come_in_another_order(frame):
    encoder = TableEncoder().fit(frame)
    assert np.array_equal(encoder.transform(frame[["size", "new", "town", "age"]]), encoder.transform(frame))


def test_renamed_missing_and_extra_columns(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.raises(SchemaError) as caught:
        encoder.transform(frame.rename(columns={"age": "Age"}).drop(columns="size"), source="new.csv")
    for words in ("new.csv lacks 2 of the 4 columns", "'age' (did you mean 'Age', which is there?)", "'size'"):
        assert words in str(caught.value)
    with pytest.warns(MercerWarning, match=r"has 1 column that the model was not fitted on, which is ignored: 'id'"):
        more = encoder.transform(frame.assign(id=1))
    assert np.array_equal(more, encoder.transform(frame))


def test_columns_that_were_left_out_may_come_again():
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(50)], "x": range(50)})
    encoder = TableEncoder().fit(frame)
    assert np.array_equal(encoder.transform(frame), encoder.transform(frame[["x"]]))


def test_text_where_a_number_is_expected(frame):
    encoder = TableEncoder().fit(frame)
    new = frame.astype({"age": object})
    new.loc[1, "age"] = "thirty"
    with pytest.raises(SchemaError, match=r"new.csv, line 3, column 'age': a number is expected, but 'thirty'"):
        encoder.transform(new, source="new.csv", locate=lambda row: f"line {row + 2}")
    with pytest.raises(SchemaError, match=r"column 'new': true or false is expected, but 'maybe' was found"):
        encoder.transform(frame.assign(new=["maybe", "true", "false", "true"]))


def test_unknown_categories_are_zeros_and_are_said(frame):
    encoder = TableEncoder().fit(frame)
    with pytest.warns(MercerWarning, match=r"new.csv: column 'town' holds 'Rom' in 2 rows"):
        matrix = encoder.transform(frame.assign(town=["Rom", "Ulm", "Rom", "Zug"]), source="new.csv")
    assert matrix[:, 3:].sum(axis=1).tolist() == [0, 1, 0, 1]


def test_whole_numbers_as_categories_read_the_same_with_gaps():
    encoder = TableEncoder(impute="median").fit(pd.DataFrame({"zip": ["7", "7a", "8b", "7"], "x": [1, 2, 3, 4]}))
    matrix = encoder.transform(pd.DataFrame({"zip": [7.0, np.nan], "x": [1, 2]}))
    assert matrix[0, encoder.feature_names_.index("zip=7")] == 1.0


def test_sparse_tables_keep_their_zeros():
    X = sp.random(60, 200, density=0.02, format="csr", random_state=0)
    encoder = TableEncoder().fit(X)
    matrix = encoder.transform(X)
    assert sp.issparse(matrix) and matrix.nnz == X.nnz
    assert np.allclose(matrix.toarray(), StandardScaler(with_mean=False).fit_transform(X).toarray())


def test_features_without_names_take_no_room_in_a_model():
    X = sp.random(20, 100_000, density=0.001, format="csr", random_state=0)
    encoder = TableEncoder("none").fit(X)
    assert encoder.feature_names_[-1] == "99999" and encoder.positions("7") == [7]
    assert len(pickle.dumps(encoder)) < 10_000


def test_full_sparse_tables_become_dense():
    X = sp.csr_matrix(np.random.default_rng(0).normal(size=(20, 3)))
    matrix = TableEncoder().fit(X).transform(X)
    assert np.allclose(matrix, StandardScaler().fit_transform(X.toarray()))


def test_sparse_tables_are_checked_by_their_width():
    X = sp.random(20, 6, density=0.1, format="csr", random_state=0)
    encoder = TableEncoder().fit(X)
    assert encoder.transform(X[:, :4]).shape == (20, 6)
    wide = sp.csr_matrix(np.eye(8))
    with pytest.raises(SchemaError, match=r"up to number 7, and the model was fitted on features up to number 5"):
        encoder.transform(wide)
    with pytest.raises(SchemaError, match=r"fitted on a libsvm file with 6 numbered columns"):
        encoder.transform(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(SchemaError, match=r"fitted on named columns .1 number., but"):
        TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0]})).transform(X)


def test_sparse_tables_with_nan_are_refused():
    X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(DataError, match=r"a.libsvm, row 2, feature 1: the value is nan"):
        TableEncoder().check(X, source="a.libsvm")


def test_a_category_that_only_held_out_rows_have_is_known(frame):
    encoder = TableEncoder().fit(frame.iloc[:3], schema=TableEncoder().check(frame))
    matrix = encoder.transform(frame)
    assert matrix[3, encoder.feature_names_.index("town=Bonn")] == 1.0
