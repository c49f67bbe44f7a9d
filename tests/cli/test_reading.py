"""Numbers in other notations and dates, from the fit to predictions for new tables."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mercer
from cli_output import refusal
from mercer._errors import ModelFileError
from mercer.cli import main, use
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
    monkeypatch.setattr(use, "_LARGE", 1)
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
        {"numbers": {"size": ["date", "."]}, "dates": {}},
        {"numbers": {}, "dates": {}, "verbatim": [3]},
        {"numbers": {}, "dates": {"day": ["month"]}},
        {"numbers": {}, "dates": {"day": "year"}},
        {"numbers": {}},
    ):
        with pytest.raises(ModelFileError, match=r"the (reading|dates) of its report"):
            check_report({**report, "reading": forged}, Path("m.mercer"))


VERSIONS = {"1.1": 0.0, "1.10": 50.0, "2.0": 20.0, "12e4": 30.0, "true": 60.0}


def versions(path: str, names: list[str], **columns: Any) -> None:
    pd.DataFrame({"version": names, **columns}).to_csv(path, index=False)


def predicted(capsys: Any, model: str, *data: str) -> list[float]:
    code, _, err = run(capsys, "predict", model, *data, "-o", "p.csv", "-q")
    assert code == 0, err
    return pd.read_csv("p.csv").iloc[:, -1].tolist()


def test_a_category_is_the_text_as_it_stands(capsys: Any) -> None:
    # 1.10 alone in a file looks like the number 1.1, and true like a boolean.
    names = list(VERSIONS) * 8
    versions("old.csv", names, y=[VERSIONS[name] + 0.1 * (i % 3) for i, name in enumerate(names)])
    code, _, err = run(capsys, "fit", "old.csv", "-t", "y", "-o", "v.mercer")
    (kinds,) = re.findall("--set '(kinds=.*)'", refusal(err))
    code, _, err = run(capsys, "fit", "old.csv", "-t", "y", "-o", "v.mercer", "-q", "--set", kinds)
    assert code == 0, err
    Path("parts").mkdir()
    for number, name in enumerate(VERSIONS):
        versions(f"parts/{number}.csv", [name])
    versions("all.csv", list(VERSIONS))
    alone = [predicted(capsys, "v.mercer", f"parts/{number}.csv")[0] for number in range(len(VERSIONS))]
    truth = np.array(list(VERSIONS.values()))
    np.testing.assert_allclose(alone, truth + 0.1, atol=1.0)
    # Beside others, in blocks of several files, and by the estimator itself.
    np.testing.assert_allclose(predicted(capsys, "v.mercer", "all.csv"), alone, rtol=1e-9)
    np.testing.assert_allclose(predicted(capsys, "v.mercer", "parts"), alone, rtol=1e-9)
    frame = pd.read_csv("old.csv", dtype={"version": str})
    model = mercer.TabularRegressor(kinds={"version": "category"}, random_state=0).fit(frame[["version"]], frame["y"])
    np.testing.assert_allclose(model.predict(pd.DataFrame({"version": list(VERSIONS)})), alone, rtol=0.01, atol=0.01)


def test_labels_with_leading_zeros_are_codes(capsys: Any) -> None:
    zips = ["007", "012", "120"] * 15
    frame = pd.DataFrame({"x": [float(code) + i / 100 for i, code in enumerate(zips)], "zip": zips})
    frame.to_csv("old.csv", index=False)
    code, out, err = run(capsys, "fit", "old.csv", "-t", "zip", "--model", "svc", "-o", "z.mercer", "--json")
    report = json.loads(out)
    assert code == 0 and report["classes"] == ["007", "012", "120"], err
    assert report["why"] == "that is what --model svc learns; 'zip' holds codes with leading zeros, 3 different values"
    # A file whose labels have no leading zero, alone and as the first of a folder.
    Path("parts").mkdir()
    frame[frame["zip"] == "120"].to_csv("parts/a.csv", index=False)
    frame[frame["zip"] == "007"].to_csv("parts/b.csv", index=False)
    for data in ("parts/a.csv", "parts/b.csv", "parts"):
        code, out, err = run(capsys, "evaluate", "z.mercer", data, "--json")
        assert code == 0 and json.loads(out)["scores"]["accuracy"] == 1.0, err


def test_a_category_with_digits_alone_in_the_first_file_of_a_folder(capsys: Any) -> None:
    names = ["7", "12a", "b"] * 10
    versions("old.csv", names, y=[{"7": 1.0, "12a": 2.0, "b": 3.0}[name] for name in names])
    assert run(capsys, "fit", "old.csv", "-t", "y", "--model", "ridge", "-o", "v.mercer", "-q")[0] == 0
    Path("parts").mkdir()
    versions("parts/a.csv", ["7"])
    versions("parts/b.csv", ["12a"])
    versions("all.csv", ["7", "12a"])
    np.testing.assert_allclose(predicted(capsys, "v.mercer", "parts"), predicted(capsys, "v.mercer", "all.csv"))


def test_text_that_is_kept_letter_by_letter_is_said_in_the_model(capsys: Any) -> None:
    names = ["NA", "12.50", "abc"] * 10
    versions("old.csv", names, y=[{"NA": 1.0, "12.50": 2.0, "abc": 3.0}[name] for name in names])
    fit = ("fit", "old.csv", "-t", "y", "--model", "ridge", "--text", "version", "--kernel", "Spectrum(2)")
    code, _, err = run(capsys, *fit, "-o", "v.mercer", "-q")
    assert code == 0, err
    model = mercer.load("v.mercer")
    assert model.report_["reading"]["verbatim"] == ["version"]
    versions("new.csv", ["NA"])
    code, _, err = run(capsys, "predict", "v.mercer", "new.csv")
    assert code == 0, err


@pytest.mark.parametrize("options", [(), ("--model", "ridge"), ("--approximation", "nystroem")])
def test_types_of_parquet_that_are_neither_numbers_nor_text(capsys: Any, options: tuple[str, ...]) -> None:
    minutes = RNG.uniform(0.0, 1400.0, 80).round()
    columns = {
        "took": pa.array([dt.timedelta(minutes=m) for m in minutes]),
        "at": pa.array([dt.time(int(m) // 60, int(m) % 60) for m in minutes]),
        "price": pa.array([decimal.Decimal(f"{m:.2f}") for m in minutes]),
        "code": pa.array([b"late" if m > 700 else b"soon" for m in minutes]),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({name: column, "y": pa.array(minutes).cast(pa.float16(), safe=False)}), "old.parquet")
        code, out, err = run(capsys, "fit", "old.parquet", "-t", "y", "-o", "m.mercer", "--json", *options)
        assert code == 0 and "overflow" not in err, (name, err)
        r2 = next(iter(json.loads(out)["scores"].values()))["r2"]
        assert r2 > (0.99 if name != "code" else 0.5), name


def test_labels_of_parquet_that_are_bytes(capsys: Any) -> None:
    table = pa.table({"x": np.arange(60.0), "y": pa.array([b"%d" % (i // 20) for i in range(60)])})
    pq.write_table(table, "old.parquet")
    for options in (("--model", "logistic"), ("--approximation", "nystroem")):
        code, _, err = run(capsys, "fit", "old.parquet", "-t", "y", "-o", "m.mercer", "-q", *options)
        assert code == 0, err
        code, out, err = run(capsys, "evaluate", "m.mercer", "old.parquet", "--json")
        assert code == 0 and json.loads(out)["scores"]["accuracy"] > 0.95, err


def test_units_and_dates_in_other_forms(capsys: Any) -> None:
    values = RNG.uniform(1.0, 100.0, 60).round(1)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(values.round(), unit="D")
    for texts in ([f"{value} kg" for value in values], days.strftime("%d-%b-%Y")):
        pd.DataFrame({"x": texts, "y": values}).to_csv("old.csv", index=False)
        pd.DataFrame({"x": texts}).iloc[:1].to_csv("one.csv", index=False)
        code, _, err = run(capsys, "fit", "old.csv", "-t", "y", "-o", "u.mercer")
        assert code == 2 and "Read them with --parse-numbers" in refusal(err)
        code, out, err = run(capsys, "fit", "old.csv", "-t", "y", "-o", "u.mercer", "--parse-numbers", "--json")
        assert code == 0 and json.loads(out)["scores"]["TabularRegressor"]["r2"] > 0.99, err
        alone, whole = predicted(capsys, "u.mercer", "one.csv"), predicted(capsys, "u.mercer", "old.csv")
        np.testing.assert_allclose(alone, whole[:1], rtol=1e-9)


def test_thousands_are_read_as_in_the_fit(capsys: Any) -> None:
    areas = RNG.integers(700, 2500, 60)
    lines = [f"{0.7 + i / 100:.3f};{area:,};{area}" for i, area in enumerate(areas)]
    Path("old.csv").write_text("x;area;y\n" + "\n".join(lines))
    assert (
        run(capsys, "fit", "old.csv", "-t", "y", "--model", "ridge", "-o", "t.mercer", "-q", "--parse-numbers")[0] == 0
    )
    Path("one.csv").write_text("x;area\n1.050;2,000\n")
    np.testing.assert_allclose(predicted(capsys, "t.mercer", "one.csv"), [2000.0], rtol=1e-3)
