"""The commands on tables with columns of text, which kernels compare letter by letter."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer import SVC
from mercer.cli import main
from mercer.cli.hold_out import hold_out
from mercer.data.readers import read_table
from mercer.data.target import read_target
from mercer.kernels import RBF, Spectrum

KERNEL = "Spectrum(2).normalized()"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def notes():
    """Words of two kinds of letters; a number that tells the kind too; and the share of one letter."""
    rng = np.random.default_rng(0)
    text = ["".join(rng.choice(list("abc" if i % 2 else "bcd"), rng.integers(3, 12))) for i in range(60)]
    frame = pd.DataFrame({"note": text, "age": rng.normal(np.arange(60) % 2, 0.5).round(2)})
    frame["kind"] = np.where(np.arange(60) % 2, "up", "down")
    frame["share"] = [t.count("b") / len(t) for t in text]
    frame.to_csv("notes.tsv", index=False, sep="\t")
    return frame


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_fit_predict_evaluate_inspect(capsys, notes):
    data = ("notes.tsv", "--target", "kind", "--text", "note", "--drop", "share")
    report = run_json(capsys, "fit", *data, "--kernel", KERNEL, "--no-refit")
    assert report["columns"] == "1 text column" and report["roles"] == {"note": "text"}
    assert report["left_out"] == {"age": "the kernel does not compare it", "share": "--drop"}
    assert report["kernel"] == "Spectrum(2).normalized().on(['note'])" and report["model"] == "SVC"
    assert list(report["scores"]) == ["SVC", "logistic regression on counts of letters", "most frequent class"]
    assert report["scores"]["SVC"]["accuracy"] > 0.7
    # The rows that were held out, as a program would do it.
    model = mercer.load("notes.mercer")
    rest = [i for i in range(60) if i not in set(_held_out(notes))]
    mine = SVC(kernel=Spectrum(2).normalized(), C=report["parameters"]["C"])
    mine.fit(notes["note"].iloc[rest], notes["kind"].iloc[rest])
    assert np.array_equal(model.predict(notes[["note", "age"]]), mine.predict(notes["note"]))
    assert run(capsys, "predict", "notes.mercer", "notes.tsv", "--drop", "share", "--out", "p.csv")[0] == 0
    assert np.array_equal(pd.read_csv("p.csv")["kind"], mine.predict(notes["note"]))
    # What the kernel does not compare may be missing from new tables.
    notes[["note", "kind"]].to_csv("few.csv", index=False)
    assert run_json(capsys, "evaluate", "notes.mercer", "few.csv")["scores"]["accuracy"] > 0.7
    code, out, _ = run(capsys, "inspect", "notes.mercer")
    assert code == 0 and "text as it is" in out and "Spectrum(2).normalized().on(['note'])" in out
    assert run_json(capsys, "inspect", "notes.mercer")["schema"] == {"note": "text"}


def _held_out(notes):
    from_fit = hold_out(read_target(notes["kind"], "kind"), 0.2, 0)
    return from_fit[1]


def test_text_beside_numbers(capsys, notes):
    data = ("notes.tsv", "--target", "kind", "--text", "note", "--drop", "share")
    report = run_json(capsys, "fit", *data, "--kernel", f'{KERNEL}.on(["note"]) * RBF(1.0).on(["age"])', "--no-refit")
    assert report["kernel"] == "Spectrum(2).normalized().on(['note']) * RBF(1.0).on(['age'])"
    assert report["columns"] == "1 number, 1 text column" and report["left_out"] == {"share": "--drop"}
    age = notes[["age"]].to_numpy()
    rest = np.setdiff1d(np.arange(60), _held_out(notes))
    scaled = pd.DataFrame({"note": notes["note"], "age": ((age - age[rest].mean()) / age[rest].std()).ravel()})
    kernel = Spectrum(2).normalized().on(["note"]) * RBF(1.0).on(["age"])
    mine = SVC(kernel=kernel, C=report["parameters"]["C"])
    mine.fit(scaled.iloc[rest], notes["kind"].iloc[rest])
    assert np.array_equal(mercer.load("notes.mercer").predict(notes[["note", "age"]]), mine.predict(scaled))
    code, out, _ = run(capsys, "inspect", "notes.mercer")
    assert code == 0 and "numbers to mean 0 and variance 1, text as it is" in out


def test_the_kernel_by_default_is_told(capsys, notes):
    alone = run_json(capsys, "fit", "notes.tsv", "-t", "kind", "--text", "note", "--drop", "share", "--drop", "age")
    assert "Spectrum(2).normalized()" in alone["kernel"] and "by default" in alone["chosen"]
    both = run_json(capsys, "fit", "notes.tsv", "-t", "kind", "--text", "note", "--drop", "share")
    assert both["kernel"] == "RBF(0.707).on(['age']) + Spectrum(3).normalized().on(['note'])"
    assert both["scores"]["SVC"]["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("model", "more"),
    [("ridge", ()), ("svr", ("-k", KERNEL)), ("gp", ("--kernel", f"1.0 * {KERNEL}")), ("nu-svr", ("-k", KERNEL))],
)
def test_numbers_from_text(capsys, notes, model, more):
    data = ("notes.tsv", "--target", "share", "--text", "note", "--drop", "kind", "--drop", "age")
    report = run_json(capsys, "fit", *data, "--model", model, *more)
    mine, linear = report["scores"][report["model"]], report["scores"]["linear (ridge) regression on counts of letters"]
    assert mine["r2"] > 0.5 and linear["r2"] > 0
    if model == "ridge":
        assert "by default" in report["chosen"] and "exact leave-one-out" in report["chosen"]


@pytest.mark.parametrize("model", ["logistic", "gpc", "nu-svc"])
def test_classes_from_text(capsys, notes, model):
    data = ("notes.tsv", "--target", "kind", "--text", "note", "--drop", "share", "--drop", "age")
    report = run_json(capsys, "fit", *data, "--model", model)
    assert report["scores"][report["model"]]["accuracy"] > 0.8


def test_the_sample_tells_its_own_text(capsys):
    report = run_json(capsys, "fit", "sample:messages", "--text", "message", "--kernel", KERNEL)
    assert report["scores"]["SVC"]["accuracy"] > 0.6 and list(report["left_out"]) == ["hour"]
    assert run_json(capsys, "fit", "sample:messages")["roles"] == {"message": "text"}
    assert "accuracy" in run_json(capsys, "evaluate", "messages.mercer", "sample:messages")["scores"]


def test_text_is_kept_letter_for_letter(tmp_path):
    path = tmp_path / "odd.tsv"
    path.write_text('label\ttext\na\t0012\nb\tNA\na\t"Hi" she said\nb\t"just begun\na\tnan?\nb\t  ?\n', "utf-8")
    table = read_table(path, ["text"])
    assert table.columns["text"].tolist() == ["0012", "NA", '"Hi" she said', '"just begun', "nan?", "?"]
    assert table.locate(3) == "line 5"
    # Whole quotations set fields apart, and may hold tabs and line breaks.
    path.write_text('label\ttext\na\t"one\ttab"\nb\t"two\nlines ""here"""\n', "utf-8")
    assert read_table(path, ["text"]).columns["text"].tolist() == ["one\ttab", 'two\nlines "here"']
    # A number is a number, and NA a gap, where nothing says that they are text.
    path.write_text("label\ttext\na\t12\nb\tNA\n", "utf-8")
    assert read_table(path).columns["text"].tolist()[0] == 12.0 and read_table(path).columns["text"].isna()[1]


def test_gaps_in_text_are_an_error(capsys, notes):
    notes.loc[4, "note"] = ""
    notes.to_csv("notes.csv", index=False)
    words = ["notes.csv, line 6, column 'note': the text is missing (1 of 60 rows)"]
    _fails(capsys, ["notes.csv", "-t", "kind", "--text", "note"], *words)


def _fails(capsys, arguments, *words):
    code, out, err = run(capsys, "fit", *arguments)
    assert code == 2 and "Wrote" not in out
    message = refusal(err)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--text", "nota"], ["no column 'nota' to be the text", "Did you mean 'note'"]),
        (["--text", "kind"], ["the target 'kind' cannot be a --text too"]),
        (["--kernel", KERNEL], ["compares strings", "set it with --text COLUMN"]),
        (["--kernel", f"{KERNEL}.on('note')", "--drop", "age"], ["column 'note' holds", "--text note"]),
        (["--text", "note", "--kernel", "RBF(1.0)"], ["compares numbers", "'note' holds strings", "--drop"]),
        (["--text", "note", "--kernel", "rbf"], ["the kernel rbf compares numbers"]),
        (["--text", "note", "--kernel", "RBF(1.0).on('note')"], ["compares numbers, and", "'note' holds strings"]),
        (["--text", "note", "--kernel", f"{KERNEL}.on('age')"], ["'age' holds a number", "--text age"]),
        (
            ["--text", "note", "--kernel", f"{KERNEL}.on('nota')"],
            ["the kernel uses the column 'nota'", "did you mean 'note'"],
        ),
        (["--text", "note", "--kernel", f"{KERNEL} + RBF(1.0)"], ["compares strings and RBF(1.0) compares vectors"]),
        (
            ["--text", "note", "--text", "share", "--kernel", KERNEL],
            ["several columns hold them: 'note', 'share'. Choose one"],
        ),
        (["--drop", "age", "--drop", "share", "-m", "svc"], ["no column to learn from", "pass --text note"]),
        (["--text", "note", "--kernel", "Spectrum(0)"], ["length must be"]),
    ],
)
def test_kernels_that_do_not_fit_the_columns(capsys, notes, options, words):
    if ".on('note')" in options[1] and options[0] == "--kernel":
        # A category, which few different values are.
        notes.assign(note=["ab", "ba"] * 30).to_csv("notes.tsv", index=False, sep="\t")
    _fails(capsys, ["notes.tsv", "-t", "kind", *options], *words)


def test_new_tables_are_checked(capsys, notes):
    run(capsys, "fit", "notes.tsv", "-t", "kind", "--text", "note", "--drop", "share", "-k", KERNEL, "-o", "m.mercer")
    notes.rename(columns={"note": "Note"})[["Note"]].to_csv("new.csv", index=False)
    code, _, err = run(capsys, "predict", "m.mercer", "new.csv")
    assert code == 2 and "lacks 1 of the 1 columns" in err and "did you mean 'Note'" in err
    # Digits alone are text to a column of text, in tables that have types as well.
    pd.DataFrame({"note": [12, 13]}).to_parquet("new.parquet")
    assert run(capsys, "predict", "m.mercer", "new.parquet")[0] == 0


def test_a_text_that_is_the_only_column_is_compared_as_text(capsys, notes):
    alone = ("notes.tsv", "-t", "kind", "--drop", "share", "--drop", "age")
    report = run_json(capsys, "fit", *alone)
    assert report["roles"] == {"note": "text"} and report["model"] == "SVC"
    assert report["kernel"] == run_json(capsys, "fit", *alone, "--text", "note")["kernel"]
    assert run_json(capsys, "fit", *alone, "--model", "auto")["model"] == "TabularClassifier"
    assert "accuracy" in run_json(capsys, "evaluate", "notes.mercer", "notes.tsv")["scores"]


def test_a_text_with_gaps_is_left_to_the_learner_of_tables(capsys, notes):
    frame = notes[["note", "kind"]].copy()
    frame.loc[3, "note"] = None
    frame.to_csv("gaps.csv", index=False)
    assert run_json(capsys, "fit", "gaps.csv", "-t", "kind")["model"] == "TabularClassifier"


def test_the_length_of_substrings_is_chosen(capsys):
    """Which of two triples is in a text tells its label: longer substrings are as many as there are texts."""
    rng = np.random.default_rng(0)
    texts, kinds = [], []
    for row in range(120):
        letters = rng.permutation(list("abcdefgh" * 2)).tolist()
        place = rng.integers(0, 13)
        letters[place : place + 5] = "aebdc" if row % 2 else "cbead"
        texts.append("".join(letters))
        kinds.append("pq"[row % 2])
    pd.DataFrame({"text": texts, "kind": kinds}).to_csv("long.csv", index=False)
    report = run_json(capsys, "fit", "long.csv", "-t", "kind")
    assert report["kernel"] != "Spectrum(3).normalized().on(['text'])"
    assert "substrings among 9 choices by exact leave-one-out on 96 rows" in report["chosen"]
    assert report["scores"]["SVC"]["accuracy"] == 1.0
