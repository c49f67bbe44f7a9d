"""Every learner on every awkward table: an answer that is compared with saying nothing, or one short paragraph."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli_output import messages, refusal
from mercer._registered import MODELS
from mercer.cli import main

_METRIC = {"classification": "accuracy", "regression": "r2"}
_BY_NOTHING = {"classification": "most frequent class", "regression": "mean of the target"}


def _plain(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n).round(3), rng.uniform(0, 9, n).round(3)
    return pd.DataFrame({"a": a, "b": b, "y": np.where(a + 0.1 * b > 0.4, 1, 0)})


def _with(**columns: object) -> Callable[[], pd.DataFrame]:
    return lambda: _plain(40).assign(**columns)


_TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "constant column": _with(c=3.0),
    "constant target": _with(y=1),
    "missing values": lambda: _plain(40).assign(b=lambda t: t["b"].mask(t.index % 7 == 0)),
    "missing target": lambda: _plain(40).assign(y=lambda t: t["y"].astype(float).mask(t.index == 5)),
    "missing categories": _with(town=["Ulm", None, "Zug", "Bonn"] * 10),
    "one row per class": lambda: _plain(12).assign(y=[f"c{i}" for i in range(12)]),
    "one class with one row": lambda: _plain(40).assign(y=["a", "b"] * 19 + ["a", "c"]),
    "text labels": lambda: _plain(40).assign(y=lambda t: np.where(t["y"] == 1, "yes, it is", "no")),
    "date column": _with(day=pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")),
    "duplicated rows": lambda: pd.concat([_plain(10)] * 4),
    "equal rows": lambda: pd.DataFrame({"a": [1.5] * 40, "b": [2.0] * 40, "y": [0, 1] * 20}),
    "equal rows, other labels": lambda: pd.concat([_plain(20), _plain(20).assign(y=lambda t: 1 - t["y"])]),
    "no rows": lambda: _plain(5).iloc[:0],
    "1 row": lambda: _plain(1),
    "2 rows": lambda: _plain(2).assign(y=[0, 1]),
    "3 rows": lambda: _plain(3).assign(y=[0, 1, 1]),
    "5 rows": lambda: _plain(5).assign(y=[0.5, 1.25, 1.5, 2.0, 0.25]),
    "more columns than rows": lambda: _plain(20).assign(**{f"x{j}": np.sin(np.arange(20) * j) for j in range(1, 60)}),
    "all-missing column": _with(gone=np.nan),
    "one huge value": lambda: _plain(40).assign(b=lambda t: t["b"].mask(t.index == 7, 1e300)),
    "tiny values": lambda: _plain(40).assign(b=lambda t: t["b"] * 1e-300),
    "infinite value": lambda: _plain(40).assign(b=lambda t: t["b"].mask(t.index == 7, np.inf)),
    "huge target": lambda: _plain(40).assign(y=lambda t: t["a"].mask(t.index == 7, 1e300)),
    "unicode names": lambda: (
        _plain(40).rename(columns={"a": "größe 名前", "b": "🙂"}).assign(**{"ciudad ñ": ["Köln", "東京"] * 20})
    ),
    "30 whole numbers": lambda: _plain(200).assign(y=np.arange(200) % 30),
    "numbers": lambda: _plain(40).assign(y=lambda t: t["a"] ** 2 + t["b"]),
    "booleans": lambda: _plain(40).assign(y=lambda t: t["y"] == 1, c=lambda t: t["a"] > 0),
    "no columns": lambda: _plain(40)[["y"]],
}
_SETTINGS: dict[str, list[str]] = {"all": [], "imputed": ["--impute", "median"], "no score": ["--test-size", "0"]}


def _run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        # What NumPy warns of would end the command as an internal error.
        warnings.simplefilter("error", RuntimeWarning)
        code = main([*arguments])
    return code, out.getvalue(), err.getvalue()


def _check(model: str, name: str, settings: list[str]) -> None:
    _TABLES[name]().to_csv("t.csv", index=False)
    code, out, err = _run("fit", "t.csv", "-t", "y", "--model", model, *settings)
    assert "Warning" not in err and "Traceback" not in out + err
    if code != 0:
        assert code == 2, err
        *notes, last = messages(err)
        assert all(line.startswith("mercer: note: ") for line in notes) and refusal(last)
        assert not Path("t.mercer").exists()
        return
    assert all(line.startswith("mercer: note: ") for line in messages(err)), err
    report = _report()
    scores = report["scores"]
    if scores:
        metric, mine = _METRIC[report["task"]], scores[report["model"]]
        nothing = scores[_BY_NOTHING[report["task"]]]
        # Of a single row R² does not exist, and is null.
        assert (mine[metric] is None) == (report["task"] == "regression" and report["rows"]["held_out"] == 1)
        if mine[metric] is not None and nothing[metric] >= mine[metric]:
            text = " ".join(out.split())
            assert "scores higher than" in text or "scores as high as" in text
    code, out, err = _run("predict", "t.mercer", "t.csv", "--json")
    assert code == 0, err
    predicted = json.loads(out)["predictions"]
    assert len(predicted) == report["rows"]["all"] and None not in predicted


def _report() -> dict:
    code, out, _ = _run("inspect", "t.mercer", "--json")
    assert code == 0
    return json.loads(out)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)


# Each table once, with the models in turn.
@pytest.mark.parametrize(("model", "name"), list(zip(itertools.cycle(MODELS), _TABLES, strict=False)))
def test_a_model_on_an_awkward_table(model, name):
    _check(model, name, [])


def test_notes_are_printed_once_and_with_options():
    _TABLES["30 whole numbers"]().to_csv("t.csv", index=False)
    narrow = "1.0 * RBF(1.0).bounded(length_scale=(0.9, 1.1))"
    code, _, err = _run("fit", "t.csv", "-t", "y", "--model", "gp", "--kernel", narrow)
    notes = messages(err)
    assert code == 0 and len(set(notes)) == len(notes)
    assert any(" bound" in note and "--kernel '1.0 * RBF(1.0).bounded(" in note for note in notes), notes
    _TABLES["3 rows"]().to_csv("t.csv", index=False)
    code, _, err = _run("fit", "t.csv", "-t", "y", "--model", "neighbors", "--test-size", "0")
    assert code == 2 and "--set n_neighbors=" in refusal(err)


_OTHERS = [(model, name) for i, model in enumerate(MODELS) for j, name in enumerate(_TABLES) if (i + j) % 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name", "settings"),
    # Each model on every second table, other ones than above, with the settings in turn.
    [(*pair, of) for pair, of in zip(_OTHERS, itertools.cycle(_SETTINGS), strict=False)],
)
def test_every_model_on_awkward_tables(model, name, settings):
    _check(model, name, _SETTINGS[settings])
