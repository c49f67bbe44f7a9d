"""What text in a column is taken for: numbers and gaps, codes, categories, sentences."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from mercer.data.code_columns import may_have_codes
from mercer.data.readers import read_table
from mercer.data.text_columns import MISSING_WORDS, are_codes, is_text, read_numbers

SENTENCES = [f"guest {i} said that the room was loud" for i in range(60)]


@pytest.mark.parametrize(
    ("text", "number"),
    [("3.14", 3.14), (" 7 ", 7.0), ("-1e3", -1000.0), (".5", 0.5), ("5.", 5.0), ("+2", 2.0), ("-inf", -np.inf)],
)
def test_numbers_in_digits(text: str, number: float) -> None:
    read = read_numbers([text])
    assert read.values.tolist() == [number] and not len(read.strange)


@pytest.mark.parametrize("text", ["1_000", "1,5", "0x1f", "ten", "5 %", "1e", "."])
def test_what_is_no_number(text: str) -> None:
    read = read_numbers(["1", text])
    assert read.strange.tolist() == [1] and np.isnan(read.values[1])


@pytest.mark.parametrize("word", sorted(MISSING_WORDS))
def test_missing_words_are_gaps_in_memory_and_in_files(word: str, tmp_path: object) -> None:
    read = read_numbers([word, f" {word} "])
    assert np.isnan(read.values).all() and not len(read.strange)
    path = tmp_path / "a.csv"  # type: ignore[operator]
    path.write_text(f"a,b\n{word},1\n2.5,2\n", "utf-8")
    column = read_table(path).columns["a"]
    assert column.isna().tolist() == [True, False] and column[1] == 2.5


def test_nearly_all_entries_are_counted_with_weights() -> None:
    read = read_numbers(["1"] * 19 + ["?", "old"])
    assert read.are_nearly_all()
    weights = np.ones(21)
    weights[-1] = 2.0
    assert not read.are_nearly_all(weights)


def test_codes_have_a_leading_zero_and_digits_alone() -> None:
    assert are_codes(["007", "1200", ""])
    for entries in (["7", "1200"], ["007", "1.5"], ["007", "x"], ["0", "10"]):
        assert not are_codes(entries)


@pytest.mark.parametrize(
    ("values", "rows", "text"),
    [
        (SENTENCES[:12], 40, True),
        (SENTENCES[:12], 400, False),
        (SENTENCES[:2], 12, False),
        (SENTENCES, 5000, True),
        (["red", "green", "blue"], 6, False),
        ([f"town {i}" for i in range(20)], 20, False),
        ([f"town {i}" for i in range(21)], 21, True),
        ([f"town {i}" for i in range(21)], 50, False),
    ],
)
def test_text_or_categories(values: list[str], rows: int, text: bool) -> None:
    assert is_text(values, rows) == text


def test_codes_in_a_file_keep_their_zeros(tmp_path: object) -> None:
    path = tmp_path / "a.csv"  # type: ignore[operator]
    rows = "".join(f"{i},{i},{i / 7:08.3f},1{i:03}\n" for i in range(100, 400))
    path.write_text(f'zip,age,size,id\n{rows}"007", 7,0012.5,1001\n,,,\n', "utf-8")
    frame = read_table(path).columns
    assert frame["zip"].tolist()[-2] == "007" and frame["zip"][0] == "100" and frame["zip"].isna().tolist()[-1]
    assert all(pd.api.types.is_numeric_dtype(frame[name]) for name in ("age", "size", "id"))


@pytest.mark.parametrize("field", ["007", '"007"', " 007 ", '" 007"'])
@pytest.mark.parametrize("line", ["{},1.5,0.07", "1,{},0.5", "0.5,10,{}"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_codes_are_found_wherever_they_stand(field: str, line: str, end: str) -> None:
    text = f"a,b,c\n0.5,100,7\n{line.format(field)}{end}"
    assert may_have_codes(io.StringIO(text), ",")
    assert not may_have_codes(io.StringIO(text.replace("007", "0.07")), ",")
