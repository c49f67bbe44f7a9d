"""What ``mercer fit`` prints of numbers in strange units, of columns without a signal, and as the next command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercer.cli import main
from mercer.cli.show import _is_vacuous
from mercer.engine.progress import watched
from mercer.reports.score_words import score_text

N = 60


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=N), rng.uniform(0, 9, N)
    y = np.sin(2 * a) + 0.3 * b
    frame = pd.DataFrame({"a": a, "b": b, "y": y, "nano": 1e-9 * y, "tera": 1e12 * y, "tiny": 1e-148 * y})
    frame.assign(kind=np.where(y > 1.2, "high", "low"), same=3.0).to_csv("t.csv", index=False)


def printed(capsys, *arguments):
    assert main(list(arguments)) == 0
    return " ".join(capsys.readouterr().out.split())


def fit(target, *options):
    others = [name for name in ("y", "nano", "tera", "tiny", "kind", "same") if name != target]
    drops = [word for name in others for word in ("--drop", name)]
    return ["fit", "t.csv", "-t", target, "-o", "m.mercer", *drops, *options]


RIDGE = ("--model", "ridge", "--set", "alpha=0.1")


@pytest.mark.parametrize(("target", "unit"), [("nano", 1e-9), ("tera", 1e12), ("tiny", 1e-148)])
def test_errors_have_four_digits_in_every_unit(capsys, target, unit):
    assert main([*fit("y", *RIDGE), "--json"]) == 0
    usual = json.loads(capsys.readouterr().out)["scores"]["KernelRidge"]
    out = printed(capsys, *fit(target, *RIDGE))
    row = f"KernelRidge {usual['r2']:.4f} {unit * usual['rmse']:.3e} {unit * usual['mae']:.3e}"
    assert row in out and "0.0000" not in out
    assert row in printed(capsys, "inspect", "m.mercer")
    scores = json.loads(printed(capsys, "evaluate", "m.mercer", "t.csv", "--json"))["scores"]
    out = printed(capsys, "evaluate", "m.mercer", "t.csv")
    assert f"KernelRidge {scores['r2']:.4f} {scores['rmse']:.3e} {scores['mae']:.3e}" in out
    assert 0.9 < scores["r2"] < 1.0 and 0.01 < scores["rmse"] / unit < 0.5


def test_errors_of_tens_of_thousands_have_no_decimals(capsys):
    frame = pd.read_csv("t.csv")
    frame.assign(y=5e4 * frame["y"]).to_csv("t.csv", index=False)
    assert main([*fit("y", *RIDGE), "--json"]) == 0
    rmse = json.loads(capsys.readouterr().out)["scores"]["mean of the target"]["rmse"]
    assert 1e4 < rmse < 1e5
    assert f" {round(rmse, -1):.0f} " in printed(capsys, *fit("y", *RIDGE))


def test_a_small_length_scale_is_printed_as_python_does(capsys):
    out = printed(capsys, *fit("y", "--kernel", "RBF(9.999946e-06)", "--set", "alpha=1", "--model", "ridge"))
    assert "kernel RBF(1e-05)" in out and "10e-06" not in out


@pytest.mark.parametrize(("target", "constant"), [("y", "mean of the target"), ("kind", "most frequent class")])
def test_a_linear_kernel_is_not_advised_where_columns_are_constant(capsys, target, constant):
    pd.read_csv("t.csv").assign(a=0.1, b=3.0).to_csv("t.csv", index=False)
    model = "ridge" if target == "y" else "svc"
    assert main([*fit(target, "--model", model), "--json"]) == 0
    advice = json.loads(capsys.readouterr().out)["advice"]
    assert advice["text"].startswith(f"The {constant} scores as high as")
    assert "may not tell the target" in advice["text"] and "Try" not in advice["text"] and advice["command"] == ""


def test_a_linear_kernel_that_loses_against_the_mean_is_not_advised(capsys):
    noise = np.random.default_rng(1).normal(size=N)
    pd.read_csv("t.csv").assign(y=noise).to_csv("t.csv", index=False)
    assert main([*fit("y", "--model", "ridge", "--set", "alpha=0.01"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    r2 = {name: values["r2"] for name, values in report["scores"].items()}
    assert r2["mean of the target"] > r2["linear (ridge) regression"] and "Try" not in report["advice"]["text"]


@pytest.mark.parametrize(
    ("target", "model"), [("y", "ridge"), ("y", "svr"), ("y", "gp"), ("kind", "svc"), ("kind", "logistic")]
)
def test_the_next_command_makes_use_of_a_calibration(capsys, target, model):
    given = ("--set", {"ridge": "alpha=0.1", "gp": "optimizer=None"}.get(model, "C=1"))
    assert main(fit(target, "--model", model, *given, "--calibrate")) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: mercer ")]
    assert line.endswith(" --interval 0.9")
    out = printed(capsys, *shlex.split(line.removeprefix("Next: mercer ").replace("NEW_DATA", "t.csv")))
    assert out.startswith(f"{target},{target} 90%" if target == "kind" else f"{target},{target} 5%,{target} 95%")
    assert main(fit(target, "--model", model, *given)) == 0
    # These have intervals of their own.
    assert ("--interval 0.9" in capsys.readouterr().out) == (model in ("ridge", "gp"))


def test_a_table_of_text_alone_is_compared_as_text_by_what_is_advised(capsys):
    notes = [f"order {i} came {'late' if i % 3 else 'in time'} from {['Ulm', 'Zug'][i % 2]}" for i in range(N)]
    late = np.array([1.0 if i % 3 else 0.0 for i in range(N)])
    y = late + 0.3 * np.random.default_rng(1).normal(size=N)
    pd.DataFrame({"note": notes, "y": y}).to_csv("text.csv", index=False)
    report = ["fit", "text.csv", "-t", "y", "--model", "auto", "--calibrate", "--json"]
    assert main(report) == 0
    found = json.loads(capsys.readouterr().out)
    linear = found["scores"]["linear (ridge) regression on counts of words"]["r2"]
    assert linear > found["scores"]["TabularRegressor"]["r2"]
    _, *arguments = shlex.split(found["advice"]["command"])
    assert "--calibrate" in arguments and arguments[-2:] == ["--text", "note"]
    assert "BagOfWords" in printed(capsys, *arguments)


def test_bounds_of_a_search_that_say_nothing_are_not_shown():
    assert _is_vacuous({"lower": None, "upper": None}) and _is_vacuous({"lower": 0.0, "upper": 1.0})
    assert not _is_vacuous({"lower": 0.2, "upper": 1.0}) and not _is_vacuous({"lower": -3.0, "upper": -1.0})


def test_a_mean_that_is_right_is_not_minus_zero():
    assert score_text("r2", -1e-5) == "0.0000" and score_text("r2", -0.5) == "-0.5000"


def test_the_model_that_decides_the_task_is_named(capsys):
    out = printed(capsys, *fit("y", *RIDGE, "--report", "page.html"))
    assert "target y: regression, because that is what --model ridge learns; 'y' holds numbers" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<dd>y: regression, because that is what --model ridge learns;" in page
    out = printed(capsys, *fit("y", *RIDGE, "--task", "regression"))
    assert "target y: regression, because that was asked for;" in out


def test_one_candidate_of_a_search_is_counted_as_one(capsys):
    counts = []
    with watched(lambda work: counts.append(work.count) if work.what == "search" else None):
        assert main(["tune", *fit("y", "--budget", "0.2s", "-q")[1:]]) == 0
    assert counts[0].startswith("1 candidate, best score") and all("candidates, best" in text for text in counts[1:])
