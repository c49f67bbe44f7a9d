"""Numbers with signs and marks between thousands, column by column."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import Blocks
from mercer._errors import DataError, MercerWarning
from mercer.data.date_columns import DateForm
from mercer.data.notation import Notation, notation_of, parse_numbers, read_notations
from mercer.data.readers import read_table


def place(row: int) -> str:
    return f"line {row + 2}"


@pytest.mark.parametrize(
    ("texts", "notation", "numbers"),
    [
        (["$5", "$1,100", "-$3.50"], Notation(".", "$"), [5, 1100, -3.5]),
        (["$-5", "$ -1,100", "-$3.50", "$2"], Notation(".", "$"), [-5, -1100, -3.5, 2]),
        (["1,100", "12", "1,234,567.5"], Notation(".", ""), [1100, 12, 1234567.5]),
        (["12 %", "5%", ".5 %"], Notation(".", "%"), [12, 5, 0.5]),
        (["1.100,5", "2,25"], Notation(",", ""), [1100.5, 2.25]),
        (["1,5", "2,25"], Notation(",", ""), [1.5, 2.25]),
        (["1 100", "2 200,5"], Notation(",", ""), [1100, 2200.5]),
        (["1'100.5", "7"], Notation(".", ""), [1100.5, 7]),
        (["€ 1.234.567", "€ 2"], Notation(",", "€"), [1234567, 2]),
        (["$1.100", "$2.5"], Notation(".", "$"), [1.1, 2.5]),
        (["63.7 kg", "1,064.2 kg", "7kg"], Notation(".", "kg"), [63.7, 1064.2, 7]),
        (["63,7 m", "2 m"], Notation(",", "m"), [63.7, 2]),
        (["EUR 63.7", "EUR1,100"], Notation(".", "EUR"), [63.7, 1100]),
        (["63.7k", "2M", "800"], Notation(".", ""), [63700, 2e6, 800]),
        (["$5k", "$1.5B"], Notation(".", "$"), [5000, 1.5e9]),
        (["63.7 ± 0.2 cm", "8 +/- 1 cm"], Notation(".", "cm"), [63.7, 8]),
        (["±0.5", "± 2"], Notation(".", "±"), [0.5, 2]),
        (["6.3D+01", "-1.5d-02"], Notation(".", ""), [63, -0.015]),
        (['="63.7"', '="8"'], Notation(".", ""), [63.7, 8]),
        (["\u221263.7", "8"], Notation(".", ""), [-63.7, 8]),
    ],
)
def test_a_column_has_one_notation(texts: list[str], notation: Notation, numbers: list[float]) -> None:
    assert notation_of(texts) == notation
    assert [notation.read(text) for text in texts] == numbers


OTHERS = [["5", "many"], ["1,10,0", "2,20,0"], ["2026-01-31"], ["Ulm"], ["-$-5"], []]
# Categories that look like numbers: packets, seats, houses, versions, phone numbers and codes.
CATEGORIES = [["500 g", "1 kg"], ["12a", "13a"], ["4A", "7A"], ["Q1", "Q2"], ["1.1", "1.2.3"], ["555-12"], ['="007"']]


@pytest.mark.parametrize("texts", OTHERS + CATEGORIES)
def test_other_texts_have_none(texts: list[str]) -> None:
    assert notation_of(texts) is None


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["$5", "€5"], "'\\$' and others have '€'"),
        (["12 %", "0.5"], "'%' and others have 'no sign'"),
        (["12 kg", "0.5"], "'kg' and others have 'no sign'"),
        (["1,100", "2.500"], "both possible"),
        (["1,100.5", "1.100,5"], "do not stand for the same"),
    ],
)
def test_a_column_of_several_notations_is_an_error_that_names_it(texts: list[str], words: str) -> None:
    with pytest.raises(DataError, match=f"a table: the column 'x' cannot be read by --parse-numbers.*{words}"):
        parse_numbers(pd.DataFrame({"x": texts}), "a table")


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2) + 0.0), min_size=1))
def test_what_is_written_is_read(numbers: list[float]) -> None:
    notation = Notation(".", "$")
    assert [notation.read(f"${number:,.2f}" if number >= 0 else f"-${-number:,.2f}") for number in numbers] == numbers


def test_only_columns_that_need_it_are_read() -> None:
    frame = pd.DataFrame(
        {"a": ["$5", None], "b": ["Ulm", "Zug"], "c": [1.0, 2.0], "d": ["1.5", "2"], "e": ["1,100", "2"]}
    )
    read, found = parse_numbers(frame, "a table", verbatim=["e"])
    assert found == {"a": Notation(".", "$")}
    assert read["a"].tolist()[0] == 5.0 and np.isnan(read["a"][1])
    pd.testing.assert_frame_equal(read.drop(columns="a"), frame.drop(columns="a"))
    assert frame["a"].tolist()[0] == "$5"


@pytest.mark.parametrize(
    ("texts", "form", "days"),
    [
        (["31-Aug-2024", "1-Sep-2024"], "day month year", ["2024-08-31", "2024-09-01"]),
        (["August 31, 2024", "Sept. 1, 2024"], "month day year", ["2024-08-31", "2024-09-01"]),
        (["31.08.2024", "1.9.2024 14:05"], "day month year", ["2024-08-31", "2024-09-01T14:05"]),
        (["8/31/2024", "9/1/2024 2:05 PM"], "month day year", ["2024-08-31", "2024-09-01T14:05"]),
        (["1.9.2024", "2.9.2024"], "day month year", ["2024-09-01", "2024-09-02"]),
        (["2024/08/31", "2024/9/1"], "year month day", ["2024-08-31", "2024-09-01"]),
        (["Aug 2024", "09/2024"], "month year", ["2024-08-01", "2024-09-01"]),
        (["14:05", "8:30:15"], "time", ["1970-01-01T14:05", "1970-01-01T08:30:15"]),
        (["12:05 AM", "12:05 pm"], "time", ["1970-01-01T00:05", "1970-01-01T12:05"]),
    ],
)
def test_dates_in_other_forms(texts: list[str], form: str, days: list[str]) -> None:
    read, found = parse_numbers(pd.DataFrame({"day": [*texts, None]}), "a table")
    assert found == {"day": DateForm(form)}
    np.testing.assert_array_equal(read["day"].to_numpy(), np.array([*days, "NaT"], dtype="datetime64[s]"))
    with pytest.raises(DataError, match=r"new.csv, line 2, column 'day': 'soon' is not a date as the model was fitted"):
        read_notations(pd.DataFrame({"day": ["soon"]}), found, "new.csv", place)


def test_dates_whose_day_may_be_the_month_are_an_error() -> None:
    with pytest.raises(DataError, match="'2/1/2024' may have the day or the month first"):
        parse_numbers(pd.DataFrame({"day": ["1/1/2024", "2/1/2024"]}), "a table")
    for texts in (["2024-08-31", "2024-09-01"], ["2024-08"], ["14:05", "24:00"], ["31-Sep-2024"], ["1-Foo-2024"]):
        assert parse_numbers(pd.DataFrame({"day": texts}), "a table")[1] == {}


@pytest.mark.parametrize("decimal", [".", ","])
def test_marks_that_a_column_leaves_open_are_those_of_the_others(decimal: str, tmp_path: Path) -> None:
    rows = [("x", "area", "count"), ("1.050", "1,050", "7"), ("0.758", "758", "8"), ("1.250", "2,000", "9")]
    swap = str.maketrans(".,", ",.")
    lines = [";".join(row) if decimal == "." else ";".join(row).translate(swap) for row in rows]
    for separator, name in ((";", "a.csv"), ("\t", "a.tsv")):
        (tmp_path / name).write_text("\n".join(lines).replace(";", separator))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = read_table(tmp_path / name)
        read, found = parse_numbers(table.columns, name, written=table.written())
        assert found["area"] == Notation(decimal, "") and "count" not in found
        np.testing.assert_array_equal(read.astype(float), [[1.05, 1050, 7], [0.758, 758, 8], [1.25, 2000, 9]])


def test_marks_that_all_columns_leave_open_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;area\n7;1,050\n8;2,000\n")
    with pytest.warns(
        MercerWarning, match="a.csv: 'area': three digits follow every comma, as in 1,050, which is read"
    ):
        table = read_table(tmp_path / "a.csv")
    assert table.columns["area"].tolist() == [1.05, 2.0]
    # The model knows how a column was written.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(tmp_path / "a.csv", texts=["area"]).columns["area"].tolist() == ["1,050", "2,000"]
    with pytest.warns(MercerWarning, match="three digits follow every comma"):
        assert Blocks(tmp_path / "a.csv").n == 2
    # A number far below shows the mark.
    (tmp_path / "a.csv").write_text("x;area\n" + "7;1,050\n" * 300 + "0.5;2,000\n")
    assert read_table(tmp_path / "a.csv").columns["area"].iloc[0] == "1,050"


def test_new_rows_are_read_as_the_first_ones_were() -> None:
    notations = {"a": Notation(".", "$"), "gone": Notation(".", "")}
    new = pd.DataFrame({"a": ["7", "$1,100", None]})
    assert read_notations(new, notations, "new.csv", place)["a"].tolist()[:2] == [7.0, 1100.0]
    assert read_notations(pd.DataFrame({"a": [7, 8]}), notations, "new.csv", place)["a"].tolist() == [7.0, 8.0]
    for text in ("€7", "1.100,5", "many", "$", "1,1", "--5"):
        with pytest.raises(DataError, match=r"new.csv, line 3, column 'a': .* is not a number as the model was"):
            read_notations(pd.DataFrame({"a": ["7", text]}), notations, "new.csv", place)


def test_several_units_are_reported_unless_they_are_categories() -> None:
    varied = pd.DataFrame({"m": [f"{50 + i}.5 kg" if i % 2 else f"{50_000 + i} g" for i in range(60)]})
    with pytest.warns(MercerWarning, match=r"m.csv: the column 'm' holds numbers in several units \('g', 'kg'\)"):
        frame, notations = parse_numbers(varied, "m.csv")
    assert frame.equals(varied) and notations == {}
    few = pd.DataFrame({"m": ["500 g", "1 kg", "2 kg"] * 20})
    assert parse_numbers(few, "m.csv")[1] == {}
