"""Numbers with signs and marks between thousands, column by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer._errors import DataError
from mercer.data.notation import Notation, notation_of, parse_numbers, read_notations


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
    ],
)
def test_a_column_has_one_notation(texts: list[str], notation: Notation, numbers: list[float]) -> None:
    assert notation_of(texts) == notation
    assert [notation.read(text) for text in texts] == numbers


@pytest.mark.parametrize("texts", [["5", "many"], ["1,10,0", "2,20,0"], ["2026-01-31"], ["Ulm"], ["-$-5"], []])
def test_other_texts_have_none(texts: list[str]) -> None:
    assert notation_of(texts) is None


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["$5", "€5"], "'\\$' and others have '€'"),
        (["12 %", "0.5"], "'%' and others have 'no sign'"),
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


def test_new_rows_are_read_as_the_first_ones_were() -> None:
    notations = {"a": Notation(".", "$"), "gone": Notation(".", "")}
    new = pd.DataFrame({"a": ["7", "$1,100", None]})
    assert read_notations(new, notations, "new.csv", place)["a"].tolist()[:2] == [7.0, 1100.0]
    assert read_notations(pd.DataFrame({"a": [7, 8]}), notations, "new.csv", place)["a"].tolist() == [7.0, 8.0]
    for text in ("€7", "1.100,5", "many", "$", "1,1", "--5"):
        with pytest.raises(DataError, match=r"new.csv, line 3, column 'a': .* is not a number as the model was"):
            read_notations(pd.DataFrame({"a": ["7", text]}), notations, "new.csv", place)
