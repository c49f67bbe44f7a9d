"""Numbers in other notations and dates, from the fit to predictions for new tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer._errors import ModelFileError
from mercer.cli import main, use_blocks
from mercer.cli.stored import check_report

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2024-01-01", periods=120, freq="5D")
SIZE = RNG.uniform(500, 3000, 120).round()
TABLE = pd.DataFrame(
    {
        "size": [f"{size:,.0f} $" for size in SIZE],
        "day": DAYS.strftime("%Y-%m-%d"),
        "price": [f"{value:,.1f}" for value in SIZE + 500 * np.cos(2 * np.pi * DAYS.day_of_year / 365.25)],
    }
)


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    TABLE.to_csv("old.csv", index=False)
    TABLE.iloc[:30].to_csv("new.csv", index=False)


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


FIT = ("fit", "old.csv", "-t", "price", "--model", "ridge", "--parse-numbers", "-o", "m.mercer")


def test_a_model_reads_new_tables_as_it_read_the_first(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(capsys, *FIT)
    assert code == 0, err
    assert "size: read as numbers without '$', with the decimal mark '.'" in out
    assert "price: read as numbers with the decimal mark '.'" in out
    assert "day: a date, read as a number and its place in the year and week" in " ".join(out.split())
    code, out, err = run(capsys, "evaluate", "m.mercer", "new.csv", "--json")
    assert code == 0 and json.loads(out)["scores"]["r2"] > 0.95, err
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv", "--keep", "day,size")
    whole = pd.read_csv(io.StringIO(out))
    assert code == 0 and whole["size"].tolist() == TABLE["size"][:30].tolist()
    monkeypatch.setattr(use_blocks, "_LARGE", 1)
    assert run(capsys, "predict", "m.mercer", "new.csv", "--keep", "day,size", "-o", "p.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("p.csv"), whole)


def test_without_the_option_the_message_names_it(capsys: Any) -> None:
    code, _, err = run(capsys, "fit", "old.csv", "-t", "price", "--model", "ridge")
    assert code == 2 and "--parse-numbers" in refusal(err)
    TABLE.assign(price=SIZE).to_csv("old.csv", index=False)
    code, _, err = run(capsys, "fit", "old.csv", "-t", "price", "--model", "ridge")
    assert code == 2 and "column 'size'" in refusal(err) and "Read them with --parse-numbers" in refusal(err)


def test_auto_reads_dates_itself(capsys: Any) -> None:
    arguments = ["fit", "old.csv", "-t", "price", "--parse-numbers", "-o", "a.mercer", "--json", "--no-refit"]
    code, out, _ = run(capsys, *arguments)
    report = json.loads(out)
    assert code == 0 and report["reading"]["dates"] == {} and set(report["reading"]["numbers"]) == {"size", "price"}
    assert report["columns"] == "1 number, 1 date"


@pytest.mark.parametrize(
    ("column", "entry", "words"),
    [
        ("size", "7 €", "line 2, column 'size': '7 €' is not a number as the model was fitted on, without '$'"),
        ("size", "many", "'many' is not a number"),
        ("day", "soon", "new.csv, line 2, column 'day': 'soon' is not a date such as 2026-01-31"),
        ("day", "2024-02-30", "new.csv, line 2, column 'day': '2024-02-30' is not a date"),
    ],
)
def test_entries_that_are_written_otherwise_are_errors(capsys: Any, column: str, entry: str, words: str) -> None:
    assert run(capsys, *FIT, "-q")[0] == 0
    new = TABLE.iloc[:3].copy()
    new.loc[0, column] = entry
    new.to_csv("new.csv", index=False)
    code, out, err = run(capsys, "predict", "m.mercer", "new.csv")
    assert code == 2 and not out and words in refusal(err)


def test_a_column_of_several_units_is_an_error(capsys: Any) -> None:
    TABLE.assign(size=["5 €", *TABLE["size"][1:]]).to_csv("old.csv", index=False)
    code, _, err = run(capsys, *FIT)
    assert code == 2 and "column 'size' cannot be read by --parse-numbers" in refusal(err)


def test_forged_readings_are_found(capsys: Any) -> None:
    assert run(capsys, *FIT, "-q")[0] == 0
    report = mercer.load("m.mercer").report_
    for forged in (
        {"numbers": {"size": [".", 3]}, "dates": {}},
        {"numbers": {"size": ["x", "$"]}, "dates": {}},
        {"numbers": {"size": ["."]}, "dates": {}},
        {"numbers": {}, "dates": {"day": ["month"]}},
        {"numbers": {}, "dates": {"day": "year"}},
        {"numbers": {}},
    ):
        with pytest.raises(ModelFileError, match=r"the (reading|dates) of its report"):
            check_report({**report, "reading": forged}, Path("m.mercer"))
