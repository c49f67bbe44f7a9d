"""``mercer predict``: several files, standard input and output, kept columns, and how sure a prediction is."""

from __future__ import annotations

import io
import json
import os
import sys
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer.cli import main, use
from mercer.data.blocks import reading

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"id": [f"h{i}" for i in range(60)], "size": RNG.uniform(0, 6, 60).round(2)})
TABLE["town"] = RNG.choice(["Ulm", "Zug"], 60)
TABLE["price"] = np.sin(TABLE["size"]) + 0.2 * RNG.normal(size=60)
TABLE["kind"] = np.digitize(TABLE["size"], [2.0, 4.0])
TABLE["kind"] = np.array(["low", "middle", "high"])[TABLE["kind"]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    TABLE.to_csv(folder / "houses.csv", index=False)
    for name, target, other, *options in (
        ("ridge", "price", "kind", "--model", "ridge", "--set", "alpha=0.1"),
        ("gp", "price", "kind", "--model", "gp", "--set", "optimizer=None"),
        ("svr", "price", "kind", "--model", "svr", "--set", "C=1"),
        ("svc", "kind", "price", "--model", "svc", "--set", "C=10"),
        ("logistic", "kind", "price", "--model", "logistic", "--set", "C=10"),
    ):
        files = [str(folder / "houses.csv"), "-o", str(folder / f"{name}.mercer")]
        assert (
            main(["fit", *files, "-t", target, "--drop", other, "--drop", "id", "--test-size", "0", *options, "-q"])
            == 0
        )
    return folder


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    TABLE.iloc[:40].drop(columns=["price", "kind"]).to_csv("may.csv", index=False)
    TABLE.iloc[40:].drop(columns=["price", "kind"]).to_csv("june.csv", index=False)


def run(capsys: Any, *arguments: Any) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def predicted(capsys: Any, *arguments: Any) -> pd.DataFrame:
    code, out, err = run(capsys, "predict", *arguments)
    assert code == 0, err
    return pd.read_csv(io.StringIO(out))


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_several_files_are_predicted_in_order_and_named(capsys: Any, models: Path) -> None:
    frame = predicted(capsys, models / "ridge.mercer", "may.csv", "june.csv")
    assert frame.columns.tolist() == ["file", "price"]
    assert frame["file"].tolist() == ["may.csv"] * 40 + ["june.csv"] * 20
    alone = predicted(capsys, models / "ridge.mercer", "june.csv")
    assert alone.columns.tolist() == ["price"]
    np.testing.assert_array_equal(frame["price"][40:], alone["price"])


def test_several_files_in_blocks_give_the_same_table(
    capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [models / "ridge.mercer", "may.csv", "june.csv", "--keep", "id,town", "--interval", "0.8"]
    assert run(capsys, "predict", *arguments, "-o", "whole.csv")[0] == 0
    monkeypatch.setattr(use, "_LARGE", 1)
    assert run(capsys, "predict", *arguments, "-o", "blocks.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("blocks.csv"), pd.read_csv("whole.csv"))
    code, _, err = run(capsys, "predict", *arguments, "-o", "blocks.tsv")
    assert code == 2 and "name a .csv or .parquet file" in refusal(err)


def test_standard_input_and_output(capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = predicted(capsys, models / "ridge.mercer", "may.csv")
    feed(monkeypatch, Path("may.csv").read_text())
    pd.testing.assert_frame_equal(predicted(capsys, models / "ridge.mercer", "-", "--out", "-"), expected)
    feed(monkeypatch, Path("may.csv").read_text())
    both = predicted(capsys, models / "ridge.mercer", "june.csv", "-")
    assert both["file"].unique().tolist() == ["june.csv", "standard input"]
    feed(monkeypatch, TABLE.to_csv(index=False))
    code, out, err = run(capsys, "evaluate", models / "ridge.mercer", "-", "--drop", "kind", "--drop", "id", "--json")
    assert code == 0, err
    assert json.loads(out)["data"] == "standard input"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "standard input is empty"),
        ("size,town\n", "standard input has no rows of data"),
        ("town\nUlm\n", "standard input"),
        ("size,town\nlarge,Ulm\n", "standard input"),
        ("size,town\n1.0\n", "standard input"),
    ],
)
def test_faults_of_standard_input_are_named_as_such(
    capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    feed(monkeypatch, text)
    code, out, err = run(capsys, "predict", models / "ridge.mercer", "-")
    assert code == 2 and not out
    assert words in refusal(err) and "mercer-" not in err and ".csv" not in refusal(err)


def test_a_closed_standard_input_is_named_as_such(capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run(capsys, "predict", models / "ridge.mercer", "-")
    assert code == 2 and "standard input is closed" in refusal(err)


def test_kept_columns_stand_before_the_predictions(capsys: Any, models: Path) -> None:
    TABLE.to_csv("all.csv", index=False)
    frame = predicted(
        capsys, models / "ridge.mercer", "all.csv", "--drop", "kind", "--keep", "town", "--keep", "id,price"
    )
    assert frame.columns.tolist() == ["town", "id", "price", "predicted price"]
    assert frame["id"].tolist() == TABLE["id"].tolist()
    np.testing.assert_allclose(frame["price"], TABLE["price"])
    everything = predicted(capsys, models / "ridge.mercer", "may.csv", "--keep", "all")
    assert everything.columns.tolist() == ["id", "size", "town", "price"]
    code, _, err = run(capsys, "predict", models / "ridge.mercer", "may.csv", "--keep", "twon")
    assert code == 2 and "may.csv has no column 'twon' to keep. Did you mean 'town'?" in refusal(err)


def test_kept_columns_named_as_predictions_stay(capsys: Any, models: Path) -> None:
    """As where the result of one command is the data of the next."""
    own = {"price": 1.5, "predicted price": 2.5, "file": "a"}
    TABLE.iloc[:5].drop(columns="kind").assign(**own).to_csv("old.csv", index=False)
    frame = predicted(capsys, models / "ridge.mercer", "old.csv", "may.csv", "--keep", "size")
    new = frame["price"].to_numpy()[:5]
    frame = predicted(capsys, models / "ridge.mercer", "old.csv", "old.csv", "--keep", "all").iloc[:5]
    assert frame.columns.tolist() == ["file_", "id", "size", "town", *own, "predicted price_"]
    assert (frame["price"] == 1.5).all() and (frame["predicted price"] == 2.5).all() and (frame["file"] == "a").all()
    np.testing.assert_allclose(frame["predicted price_"], new, rtol=1e-12)
    code, out, _ = run(capsys, "predict", models / "ridge.mercer", "old.csv", "--keep", "all", "--json")
    found = json.loads(out)
    assert code == 0 and found["predicted price"] == [2.5] * 5
    np.testing.assert_allclose(found["predictions"], new, rtol=1e-12)


@pytest.mark.parametrize("order", [("may.csv", "priced.csv"), ("priced.csv", "may.csv")])
def test_predictions_of_several_files_share_one_column(capsys: Any, models: Path, order: tuple[str, str]) -> None:
    """Also where only one of the files has a kept column with the name of the predictions."""
    own = {"price": 1.5, "predicted price": 2.5, "file": "a"}
    pd.read_csv("june.csv").assign(**own).to_csv("priced.csv", index=False)
    arguments = [models / "ridge.mercer", *order]
    expected = predicted(capsys, *arguments)
    frame = predicted(capsys, *arguments, "--keep", "all")
    assert frame.columns.tolist() == ["file_", "id", "size", "town", *own, "predicted price_"]
    np.testing.assert_array_equal(frame["file_"], expected["file"])
    np.testing.assert_array_equal(frame["predicted price_"], expected["price"])
    is_priced = frame["file_"] == "priced.csv"
    for name, value in own.items():
        assert (frame.loc[is_priced, name] == value).all() and frame.loc[~is_priced, name].isna().all()
    code, out, _ = run(capsys, "predict", *arguments, "--keep", "all", "--json")
    # Older versions of pandas lose a last digit of what they read.
    assert code == 0
    np.testing.assert_allclose(json.loads(out)["predictions"], expected["price"], rtol=1e-12)


def test_kept_columns_go_through_unchanged_where_a_file_lacks_them(capsys: Any, models: Path) -> None:
    number = 2**53 + 1
    day = pd.Timestamp("2026-05-01")
    own = {"number": number, "small": np.int8(-3), "is_new": True, "day": day, "share": 1.0, "code": "007"}
    may, june = pd.read_csv("may.csv"), pd.read_csv("june.csv")
    may.assign(**own).to_parquet("may.parquet")
    june.to_parquet("june.parquet")
    arguments = [models / "ridge.mercer", "june.parquet", "may.parquet", "--keep", "all"]
    for out in ("out.csv", "out.parquet"):
        assert run(capsys, "predict", *arguments, "-o", out)[0] == 0
    texts = pd.read_csv("out.csv", dtype=str, keep_default_na=False)[list(own)]
    assert texts.iloc[:20].eq("").all(axis=None)
    assert (texts.iloc[20:] == [str(number), "-3", "True", "2026-05-01", "1.0", "007"]).all(axis=None)
    frame = pd.read_parquet("out.parquet")[list(own)]
    assert frame.iloc[:20].isna().all(axis=None) and (frame.iloc[20:] == list(own.values())).all(axis=None)
    assert [str(dtype) for dtype in frame.dtypes[:3]] == ["Int64", "Int8", "boolean"]
    code, text, _ = run(capsys, "predict", *arguments, "--json")
    result = json.loads(text)
    assert code == 0 and result["number"] == [None] * 20 + [number] * 40
    assert result["is_new"] == [None] * 20 + [True] * 40
    assert result["day"] == [None] * 20 + ["2026-05-01T00:00:00"] * 40


def test_integers_stay_integers_where_another_file_has_gaps(capsys: Any, models: Path) -> None:
    number = 2**53 + 1
    may, june = pd.read_csv("may.csv"), pd.read_csv("june.csv")
    may.assign(number=number, half=1).to_csv("may.csv", index=False)
    june.assign(number=[5.0, np.nan] * 10, half=[0.5, np.inf] * 10).to_csv("june.csv", index=False)
    assert (
        run(capsys, "predict", models / "ridge.mercer", "may.csv", "june.csv", "--keep", "all", "-o", "p.csv")[0] == 0
    )
    frame = pd.read_csv("p.csv", dtype=str, keep_default_na=False)
    assert frame["number"].tolist() == [str(number)] * 40 + ["5.0", ""] * 10
    assert frame["half"].tolist() == ["1"] * 40 + ["0.5", "inf"] * 10
    arguments = [models / "ridge.mercer", "may.csv", "june.csv", "--keep", "all", "-o", "p.parquet"]
    assert run(capsys, "predict", *arguments)[0] == 0
    numbers = pd.read_parquet("p.parquet")["number"]
    assert str(numbers.dtype) == "Int64" and numbers[0] == number and numbers.isna().sum() == 10


WRITTEN = '''id,ok,version,note,day,code
12345678901234567,true,1.10,NA,1/2/2020,007
,false,1.1,"x, ""y""",,120
-3,,2,é,2020-01-01,
'''


@pytest.mark.parametrize("name", ["kept.csv", "kept.csv.gz", "kept.tsv"])
def test_kept_columns_of_text_are_those_of_the_file(
    capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own = pd.read_csv(io.StringIO(WRITTEN), dtype=str, na_filter=False)
    rows = pd.concat([own, pd.read_csv("may.csv")[["size", "town"]].head(3)], axis=1)
    rows.to_csv(name, index=False, sep="\t" if name.endswith("tsv") else ",")
    keep = ["--keep", ",".join(own), "-o", "out.csv"]
    for step in ("whole", "twice", "blocks"):
        if step == "blocks":
            monkeypatch.setattr(use, "_LARGE", 1)
            monkeypatch.setattr(reading, "_MOST_ROWS", 2)
        files = [name] * (1 + (step == "twice"))
        code, _, err = run(capsys, "predict", models / "ridge.mercer", *files, *keep)
        assert code == 0, err
        lines = Path("out.csv").read_text(encoding="utf-8").splitlines()[1:]
        prefix = [f"{name},"] * len(lines) if step == "twice" else [""] * len(lines)
        assert [line.rpartition(",")[0] for line in lines] == [
            before + line for before, line in zip(prefix, WRITTEN.splitlines()[1:] * len(files), strict=True)
        ]


def test_kept_columns_of_parquet_have_their_types_in_blocks(
    capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.read_csv("may.csv")
    frame["id"] = pd.array([2**53 + 1, None] * (len(frame) // 2), dtype="Int64")
    frame.to_parquet("kept.parquet", index=False)
    for step in ("whole", "blocks"):
        if step == "blocks":
            monkeypatch.setattr(use, "_LARGE", 1)
            monkeypatch.setattr(reading, "_MOST_ROWS", 16)
        for out in ("out.csv", "out.parquet"):
            assert run(capsys, "predict", models / "ridge.mercer", "kept.parquet", "--keep", "id", "-o", out)[0] == 0
        texts = pd.read_csv("out.csv", dtype=str, na_filter=False)["id"]
        assert texts.tolist() == [str(2**53 + 1), ""] * (len(frame) // 2)
        pd.testing.assert_series_equal(pd.read_parquet("out.parquet")["id"], frame["id"])


def test_kept_columns_of_parquet_may_be_decimals_and_times(capsys: Any, models: Path) -> None:
    frame = pd.read_csv("may.csv")
    frame["price"] = [Decimal(row) / 4 for row in range(len(frame))]
    frame["at"] = [time(row % 24) for row in range(len(frame))]
    frame.to_parquet("kept.parquet", index=False)
    given = ("predict", models / "ridge.mercer", "kept.parquet", "--keep", "price", "--keep", "at", "-o", "out.csv")
    assert run(capsys, *given)[0] == 0
    kept = pd.read_csv("out.csv", dtype=str)
    assert kept["price"].map(Decimal).tolist() == frame["price"].tolist()
    assert kept["at"].tolist() == frame["at"].map(str).tolist()


@pytest.mark.parametrize("out", [[], ["-o", "-"]])
def test_quiet_prints_the_predictions_alone(capsys: Any, models: Path, out: list[str]) -> None:
    _, expected, _ = run(capsys, "predict", models / "ridge.mercer", "may.csv")
    assert run(capsys, "predict", models / "ridge.mercer", "may.csv", "-q", *out) == (0, expected, "")
    assert len(expected.splitlines()) == 41


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_files_whose_names_are_not_utf8(capsys: Any, models: Path) -> None:
    name = os.fsdecode(b"may\xff.csv")
    Path("may.csv").rename(name)
    frame = predicted(capsys, models / "ridge.mercer", name, "june.csv")
    assert frame["file"].tolist() == ["may?.csv"] * 40 + ["june.csv"] * 20


def test_a_target_may_be_named_file(capsys: Any) -> None:
    TABLE.rename(columns={"price": "file"}).drop(columns=["kind", "id"]).to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "-t", "file", "--model", "ridge", "-q"]) == 0
    frame = predicted(capsys, "t.mercer", "may.csv", "june.csv")
    assert frame.columns.tolist() == ["file_", "file"] and frame["file_"].tolist()[-1] == "june.csv"
    assert np.isfinite(frame["file"]).all()


def test_a_process_says_its_deviations(capsys: Any, models: Path) -> None:
    frame = predicted(capsys, models / "gp.mercer", "may.csv", "--std", "--interval", "0.9")
    assert frame.columns.tolist() == ["price", "price std", "price 5%", "price 95%"]
    model = mercer.load(models / "gp.mercer")
    rows = model.encoder_.transform(TABLE.iloc[:40].drop(columns=["price", "kind"]))
    deviations = model.estimator_.predict(rows, return_std=True, observation=True)[1]
    np.testing.assert_allclose(frame["price std"], deviations * model.target_scale_)


@pytest.mark.parametrize("name", ["ridge", "gp"])
def test_intervals_contain_about_the_share_that_was_asked_for(capsys: Any, models: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    new = pd.DataFrame({"size": rng.uniform(0, 6, 400), "town": rng.choice(["Ulm", "Zug"], 400)})
    price = np.sin(new["size"]) + 0.2 * rng.normal(size=400)
    new.to_csv("new.csv", index=False)
    code, out, err = run(capsys, "predict", models / f"{name}.mercer", "new.csv", "--interval", "0.9")
    assert code == 0 and "Intervals: coverage 90 % by jackknife+ by exact leave-one-out" in err
    frame = pd.read_csv(io.StringIO(out))
    assert 0.82 < np.mean((frame["price 5%"] <= price) & (price <= frame["price 95%"])) < 0.98


def test_decision_values_have_a_column_for_each_class(capsys: Any, models: Path) -> None:
    frame = predicted(capsys, models / "svc.mercer", "may.csv", "--decision")
    assert frame.columns.tolist() == ["kind", "decision(high)", "decision(low)", "decision(middle)"]
    largest = frame.columns[1:].to_numpy()[frame.iloc[:, 1:].to_numpy().argmax(axis=1)]
    assert (largest == "decision(" + frame["kind"] + ")").all()
    TABLE[TABLE["kind"] != "middle"].drop(columns=["price", "id"]).to_csv("two.csv", index=False)
    assert run(capsys, "fit", "two.csv", "-t", "kind", "--model", "svc", "--set", "C=1", "-q")[0] == 0
    two = predicted(capsys, "two.mercer", "may.csv", "--decision")
    assert two.columns.tolist() == ["kind", "decision(low)"]
    assert ((two["decision(low)"] > 0) == (two["kind"] == "low")).all()


def test_probabilities_sum_to_one(capsys: Any, models: Path) -> None:
    frame = predicted(capsys, models / "logistic.mercer", "may.csv", "--proba")
    assert frame.columns.tolist() == ["kind", "P(high)", "P(low)", "P(middle)"]
    np.testing.assert_allclose(frame.iloc[:, 1:].sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("svc", ["--std"], "--std is for models of numbers, and"),
        ("svr", ["--std"], "SVR gives no standard deviations; fit it again with --model auto or gp."),
        ("ridge", ["--std"], "KernelRidge gives no standard deviations; fit it again with --model auto or gp."),
        (
            "svr",
            ["--interval", "0.9"],
            "SVR gives no intervals; fit it again with --calibrate, or with --model auto, ridge or gp.",
        ),
        ("ridge", ["--interval", "1.2"], "--interval must be between 0 and 1, but is 1.2"),
        ("ridge", ["--interval", "nan"], "--interval must be between 0 and 1"),
        ("ridge", ["--proba"], "--proba is for models of classes, and"),
        ("ridge", ["--decision"], "--decision is for models of classes, and"),
        (
            "svc",
            ["--proba"],
            "SVC gives no probabilities; fit it again with --calibrate, or with --model auto, logistic, ",
        ),
        ("svc", ["-"], "- stands for standard input"),
    ],
)
def test_what_a_model_cannot_say_is_an_error_before_any_row_is_read(
    capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str], words: str
) -> None:
    monkeypatch.setattr("mercer.cli.use.read_table", None)
    feed(monkeypatch, "")
    code, out, err = run(capsys, "predict", models / f"{name}.mercer", "-", *options, "-o", "out.csv")
    assert code == 2 and not out and words in refusal(err)
    assert not Path("out.csv").exists()


def test_the_model_is_not_read_from_standard_input(capsys: Any) -> None:
    code, _, err = run(capsys, "predict", "-", "may.csv")
    assert code == 2 and "the model must be a file" in refusal(err)


@pytest.mark.parametrize("out", ["may.csv", "june.csv"])
def test_no_input_is_overwritten(capsys: Any, models: Path, out: str) -> None:
    before = Path(out).read_bytes()
    code, _, err = run(capsys, "predict", models / "ridge.mercer", "may.csv", "june.csv", "-o", out)
    assert code == 2 and "would be overwritten" in refusal(err) and Path(out).read_bytes() == before


def test_one_bad_file_among_several_writes_nothing(capsys: Any, models: Path) -> None:
    Path("old.csv").write_text("kept\n")
    for text, words in (("size\n1.0\n", "town"), ("size,town\n", "no rows of data"), ("size,town\n?,Ulm\n", "size")):
        Path("bad.csv").write_text(text)
        code, out, err = run(capsys, "predict", models / "ridge.mercer", "may.csv", "bad.csv", "-o", "old.csv")
        assert code == 2 and not out and words in refusal(err)
        assert Path("old.csv").read_text() == "kept\n"


def test_a_stop_leaves_no_file(capsys: Any, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.KernelRidge.interval", stop)
    for large in (2**26, 1):
        monkeypatch.setattr(use, "_LARGE", large)
        arguments = ["predict", models / "ridge.mercer", "may.csv", "--interval", "0.9", "-o", "out.csv"]
        assert run(capsys, *arguments)[0] == 130
        assert sorted(path.name for path in Path().iterdir()) == ["june.csv", "may.csv"]


def test_one_row_has_all_answers(capsys: Any, models: Path) -> None:
    TABLE.iloc[:1].drop(columns=["price", "kind"]).to_csv("one.csv", index=False)
    assert predicted(capsys, models / "gp.mercer", "one.csv", "--interval", "0.9", "--std").shape == (1, 4)
    assert predicted(capsys, models / "logistic.mercer", "one.csv", "--proba", "--decision").shape == (1, 7)


def test_json_lists_every_column(capsys: Any, models: Path) -> None:
    code, out, _ = run(capsys, "predict", models / "gp.mercer", "may.csv", "june.csv", "--std", "--json")
    result = json.loads(out)
    assert code == 0 and result["data"] == ["may.csv", "june.csv"] and result["rows"] == 60
    assert len(result["predictions"]) == len(result["price std"]) == len(result["file"]) == 60


def test_kept_columns_named_like_keys_of_the_json_object_have_an_underscore(capsys: Any, models: Path) -> None:
    rows = pd.read_csv("may.csv").assign(predictions=7.0, rows="x", model="own")
    rows.to_csv("own.csv", index=False)
    code, out, _ = run(capsys, "predict", models / "ridge.mercer", "own.csv", "--keep", "all", "--json")
    result = json.loads(out)
    assert code == 0 and result["rows"] == 40 and len(set(result["predictions"])) > 1
    assert result["predictions_"] == [7.0] * 40 and result["rows_"] == ["x"] * 40 and result["model_"] == ["own"] * 40
