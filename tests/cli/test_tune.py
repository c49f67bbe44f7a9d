"""``mercer tune`` and ``mercer fit --tune``: what is searched, what is printed, and how a search goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer
from cli_output import refusal
from mercer._errors import ParameterError
from mercer.cli import main
from mercer.cli.options import parse_seconds
from mercer.engine.locks import lock


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def rings(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(70, 2)), columns=["a", "b"])
    frame["ring"] = np.where(np.hypot(frame["a"], frame["b"]) > 1.1, "out", "in")
    frame.to_csv("rings.csv", index=False)
    return frame


DATA = ("rings.csv", "-t", "ring", "--folds", "2")


def test_a_search_prints_its_best_candidates_and_writes_the_best(capsys, rings):
    code, out, err = run(capsys, "tune", *DATA, "--log", "t.jsonl", "-o", "m.mercer")
    words = " ".join(out.split())
    assert code == 0, err
    for part in ("The best of", "by 2 folds", "gamma", "±", "logistic regression", "most frequent class"):
        assert part in words
    assert ", the default for a classification by a search" in words
    assert max(map(len, out.splitlines())) <= 80
    scores = [np.mean(line["scores"]) for line in map(json.loads, Path("t.jsonl").read_text().splitlines()[1:])]
    ties = int(np.isclose(scores, max(scores), rtol=0.0, atol=1e-12).sum()) - 1
    assert ties > 1
    assert f"No other of the {len(scores)} candidates can score higher on these folds; {ties} others have the" in words
    code, shown, _ = run(capsys, "inspect", "m.mercer")
    assert code == 0 and "by 2 folds" in shown
    lines = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    # Run again, it takes all from the log, and ends the same.
    report = run_json(capsys, "tune", *DATA, "--log", "t.jsonl", "-o", "again.mercer")
    best = report["search"]["table"][0]
    assert lines == [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    first, second = mercer.load("m.mercer").estimator_, mercer.load("again.mercer").estimator_
    assert (first.C, first.gamma) == (second.C, second.gamma) == (best["parameters"]["C"], best["parameters"]["gamma"])
    assert best["score"] == max(np.mean(line["scores"]) for line in lines[1:] if line["tol"] is None)
    assert report["search"]["folds"] == 2 and report["scores"]["SVC"]["accuracy"] > 0.6
    # The search sees the training part alone.
    assert report["search"]["rows"] == 56 and report["rows"] == {"all": 70, "fitted": 70, "held_out": 14}
    code, _, err = run(capsys, "tune", *DATA, "--seed", "1", "--log", "t.jsonl")
    assert code == 2 and "is that of another search: rows differ" in refusal(err)


@pytest.mark.slow
def test_fit_searches_too_and_for_text(capsys, rings):
    report = run_json(capsys, "fit", "rings.csv", "-t", "a", "--drop", "ring", "--tune", "5s", "--rows", 40)
    assert report["model"] == "KernelRidge" and report["search"]["metric"] == "r2" and report["tune"] == ""
    kinds = ["ab", "ba"] * 20
    texts = [f"{kind * (1 + i % 3)}{'cd'[i % 2]}" for i, kind in enumerate(kinds)]
    pd.DataFrame({"text": texts, "kind": kinds}).to_csv("text.csv", index=False)
    kernels = ("--text", "text", "-k", "Spectrum(1)", "-k", "Spectrum(2)")
    report = run_json(capsys, "tune", "text.csv", "-t", "kind", *kernels, "--folds", 2)
    assert report["kernel"].startswith("Spectrum(") and report["scores"]["SVC"]["accuracy"] == 1.0
    assert {row["parameters"]["kernel"][:11] for row in report["search"]["table"]} <= {"Spectrum(1)", "Spectrum(2)"}
    assert mercer.load("text.mercer").predict(pd.DataFrame({"text": ["ababc"]})).tolist() == ["ab"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "soon"], ["--budget takes a time above 0 such as 60s, 5m or 1h, but got 'soon'"]),
        (["--budget", "0s"], ["above 0"]),
        (["--model", "auto"], ["auto chooses everything itself", "svc or ridge"]),
        (["--folds", "1"], ["--folds must be at least 2"]),
        (["--folds", "60"], ["too few for 60 folds", "pass --folds"]),
        (["-t", "a", "--folds", "50"], ["56 rows are too few for 50 folds of two rows or more; pass --folds 28"]),
        (["--log", "no/t.jsonl"], ["cannot write no/t.jsonl", "choose another --log"]),
        (["--log", "rings.csv"], ["cannot write rings.csv", "a file that is read"]),
        (["--set", "C=10"], ["C is chosen by the search", "--set C=10"]),
        (["--kernel", "RBFF(1.0)"], ["no kernel 'RBFF'"]),
    ],
)
def test_searches_that_cannot_be(capsys, rings, options, words):
    code, _, err = run(capsys, "tune", "rings.csv", "-t", "ring", *options)
    assert code == 2
    for word in words:
        assert word in refusal(err)


def test_times_are_read():
    assert [parse_seconds(text) for text in ("60", "60s", "5m", "1h", "0.5 h")] == [60, 60, 300, 3600, 1800]
    for text in ("", "m", "-3s", "1d", "1m30s", "nan", "inf"):
        with pytest.raises(ParameterError, match=r"--tune takes a time above 0"):
            parse_seconds(text, "--tune")


@pytest.mark.parametrize(
    ("command", "name"),
    [(["tune", "--model", "svr"], "houses.csv"), (["tune"], "houses.parquet"), (["fit", "--tune", "5s"], "houses.csv")],
)
def test_dates_are_read_and_gaps_name_the_model_that_reads_them(capsys, command, name):
    first, *options = command
    houses = pd.DataFrame({"size": [60.0, 80.0] * 10, "sold": ["2023-01-05", "2023-02-01"] * 10})
    houses["price"] = houses["size"] * 2.5
    frame = houses if name.endswith("csv") else houses.assign(sold=pd.to_datetime(houses["sold"]))
    write = frame.to_csv if name.endswith("csv") else frame.to_parquet
    write(name, index=False)
    code, out, err = run(capsys, first, name, "-t", "price", "--dry-run", *options)
    assert code == 0 and "sold: a date, read as a number and its place in the week" in " ".join(out.split()), err
    frame.loc[3, "size"] = None
    write(name, index=False)
    code, _, err = run(capsys, first, name, "-t", "price", "--drop", "sold", *options)
    assert code == 2 and "--impute median" in refusal(err) and "mercer fit --model auto" in refusal(err)


def test_a_fit_by_a_learner_says_how_to_search(capsys, rings):
    _, out, _ = run(capsys, "fit", "rings.csv", "-t", "ring", "--model", "svc", "--set", "C=1")
    assert "mercer tune rings.csv --target ring --model svc --budget 60s" in " ".join(out.split())
    _, out, _ = run(capsys, "fit", "rings.csv", "-t", "ring")
    assert out.splitlines()[-1] == "Next: mercer predict rings.mercer NEW_DATA --probabilities"


def _started(tmp_path, *options):
    """A search that lasts some seconds, in a process of its own, after its first candidates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    np.savez(tmp_path / "big.npz", X=X, y=np.where(np.sin(3 * X[:, 0]) + 0.5 * rng.normal(size=400) > 0, "u", "v"))
    command = [sys.executable, "-m", "mercer", "tune", "big.npz", "--log", "t.jsonl", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "t.jsonl").exists() or (tmp_path / "t.jsonl").read_bytes().count(b"\n") < 4:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_a_search_that_is_killed_goes_on(tmp_path, capsys):
    process = _started(tmp_path)
    process.kill()
    process.communicate()
    before = (tmp_path / "t.jsonl").read_bytes()
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(b'{"parameters": {"C": "1')
    resumed = run_json(capsys, "tune", "big.npz", "--log", "t.jsonl", "--budget", "1h")
    after = (tmp_path / "t.jsonl").read_bytes()
    assert after.startswith(before) and len(after) > len(before)
    alone = run_json(capsys, "tune", "big.npz", "--budget", "1h")
    assert resumed["search"]["table"][0] == alone["search"]["table"][0] and resumed["scores"] == alone["scores"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_writes_the_best_so_far(tmp_path):
    process = _started(tmp_path, "--budget", "1h")
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and "Traceback" not in err
    assert "interrupted" in " ".join(out.split()) and (tmp_path / "big.mercer").exists()


def test_kernels_may_be_named_by_words(capsys, rings):
    report = run_json(capsys, "tune", *DATA, "--kernel", "rbf", "--kernel", "linear", "--budget", "1", "-o", "m.mercer")
    assert {row["parameters"]["kernel"] for row in report["search"]["table"]} <= {"rbf", "linear"}
    assert run(capsys, "predict", "m.mercer", "rings.csv", "-o", "p.csv")[0] == 0


def test_a_setting_that_no_candidate_can_be_fitted_with(capsys, rings):
    code, _, err = run(capsys, "tune", *DATA, "--set", "C=abc", "--budget", "1")
    assert code == 2
    assert "SVC cannot be searched with C=abc" in err
    assert "C must be a number above 0" in err


@pytest.mark.parametrize(
    ("command", "option"), [(("tune", "--folds", "2", "--budget"), "--budget"), (("fit", "--tune"), "--tune")]
)
def test_a_budget_for_one_candidate_names_the_option(capsys, rings, command, option):
    _, out, err = run(capsys, command[0], "rings.csv", "-t", "ring", *command[1:], "0.000001s")
    words, notes = " ".join(out.split()), " ".join(err.split())
    for text in (words, notes):
        assert f"so nothing was compared; raise {option}." in text and "time_budget" not in text
    assert "The best of 1 candidate, by" in words and "a search of 1 candidate," in words
    assert "KernelSearchCV" not in notes


def test_messages_of_a_search_name_no_argument_of_python(capsys, rings):
    _, _, err = run(capsys, "tune", *DATA, "--kernel", "linear", "--set", "C=cv")
    assert "kernels=" not in err and "--kernel several times" in refusal(err)
    rings["b"] = 1.0
    rings.to_csv("rings.csv", index=False)
    noise = ("tune", "rings.csv", "-t", "a", "--drop", "ring", "--model", "svr", "--folds", "2", "--budget", "2s")
    _, _, err = run(capsys, *noise)
    assert "kernels=" not in err and "Try other kernels (--kernel)" in " ".join(err.split())


def test_a_second_run_with_the_same_log_is_told(capsys, rings):
    with open("t.jsonl", "ab") as file:
        assert lock(file)
        code, _, err = run(capsys, "tune", *DATA, "--log", "t.jsonl", "--budget", "1s")
    assert code == 2 and "the log t.jsonl is in use by another search" in refusal(err)


def test_a_single_prediction_is_one(capsys, rings):
    assert run(capsys, "fit", "rings.csv", "-t", "ring", "--model", "svc", "--set", "C=1", "-o", "m.mercer")[0] == 0
    rings[:1].to_csv("one.csv", index=False)
    _, out, err = run(capsys, "predict", "m.mercer", "one.csv", "-o", "p.csv")
    assert "Wrote 1 prediction of ring to p.csv." in " ".join(out.split())
    assert "Predicting ring of 1 row by" in " ".join(err.split())
