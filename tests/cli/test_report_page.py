"""``mercer report``, and ``mercer fit --report``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from cli_output import refusal
from mercer.cli import main, report_page

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _houses(n: int = 60) -> pd.DataFrame:
    frame = pd.DataFrame({"size": RNG.uniform(20, 200, n).round(1), "town": RNG.choice(["Ulm", "Zug"], n)})
    return frame.assign(price=frame["size"] ** 2 * np.where(frame["town"] == "Zug", 9, 5))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    _houses().to_csv(folder / "houses.csv", index=False)
    _houses(20).to_csv(folder / "more.csv", index=False)
    with contextlib.chdir(folder):
        assert main(["fit", "houses.csv", "-t", "price", "--model", "ridge", "-q"]) == 0
    return folder


@pytest.fixture
def houses(tmp_path, fitted):
    """The current folder, with two tables and a model."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    return tmp_path


def _run(capsys, *arguments):
    capsys.readouterr()
    code = main(list(arguments))
    return code, *capsys.readouterr()


def test_a_fit_is_reported_with_its_held_out_rows(houses, capsys, monkeypatch):
    assert main(["fit", "houses.csv", "-t", "price", "--model", "ridge", "--json", "--report", "again.html"]) == 0
    found = json.loads(capsys.readouterr().out)
    page = (houses / "again.html").read_text(encoding="utf-8")
    assert found["report"] == "again.html"
    assert "12 rows held out from the fit" in page
    for scores in found["scores"].values():
        # The same scores as the command prints.
        assert f"{scores['r2']:.4g}".replace("-", "−") in page
    assert "mercer fit houses.csv --target price --model ridge" in page
    assert hashlib.sha256((houses / "houses.csv").read_bytes()).hexdigest() in page
    monkeypatch.setattr(report_page, "compose", lambda _: _Saved())
    out = _run(capsys, "fit", "houses.csv", "-t", "price", "--model", "ridge", "--report", "r.html")[1]
    assert "Wrote r.html, the report on this fit: open it in a browser." in out


@pytest.mark.parametrize("step", ["held_out", "compose"])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (MemoryError(), 2), (TypeError(), 1)])
def test_a_report_that_cannot_be_made(houses, capsys, monkeypatch, step, error, code):
    """The model is written before: the work of the fit is not lost."""

    def fails(*_: object) -> str:
        raise error

    before = {path.name for path in houses.iterdir()}
    monkeypatch.setattr(report_page, step, fails)
    found, _, err = _run(
        capsys, *("fit", "houses.csv", "-t", "price", "--model", "ridge", "-o", "new.mercer", "--report", "new.html")
    )
    assert found == code and {path.name for path in houses.iterdir()} - before == {"new.mercer"}
    assert "Wrote new.mercer, but not its report." in err


@pytest.mark.slow
def test_a_model_alone_and_with_rows(houses, capsys):
    code, out, _ = _run(capsys, "report", "houses.mercer", "--json")
    result = json.loads(out)
    assert code == 0 and result["report"] == "houses.html" and len(result["verdict"]) == 3
    assert "12 rows held out by mercer fit" in result["verdict"][0]
    assert result["bytes"] == (houses / "houses.html").stat().st_size
    code, out, _ = _run(capsys, "report", "houses.mercer", "more.csv", "-o", "r.html")
    assert code == 0 and "20 rows given to the report" in " ".join(out.split()) and "Wrote r.html" in out
    assert "of its own fit" in " ".join(_run(capsys, "report", "houses.mercer", "houses.csv")[1].split())


def test_rows_without_the_target_have_no_scores(houses, capsys):
    pd.read_csv("more.csv").drop(columns="price").to_csv("new.csv", index=False)
    code, out, _ = _run(capsys, "report", "houses.mercer", "new.csv", "--json")
    assert code == 0 and "mercer fit" in json.loads(out)["verdict"][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "missing.mercer"], "missing.mercer"),
        (["report", "houses.csv"], "houses.csv"),
        (["report", "houses.mercer", "none.csv"], "none.csv"),
        (["report", "houses.mercer", "other.csv"], "size"),
        (["report", "houses.mercer", "gaps.csv"], "line 3"),
        (["report", "houses.mercer", "*.csv"], "pattern"),
        (["report", "houses.mercer", "-o", "none/r.html"], "does not exist"),
        (["report", "houses.mercer", "-o", "houses.mercer"], "would be overwritten"),
        (["report", "houses.mercer", "more.csv", "-o", "more.csv"], "would be overwritten"),
        (["fit", "houses.csv", "-t", "price", "--report", "none/r.html"], "--report"),
        (["fit", "houses.csv", "-t", "price", "--report", "houses.mercer"], "also the model file"),
        (["fit", "houses.csv", "-t", "price", "--approximation", "nystroem", "--report", "r.html"], "--report"),
    ],
)
def test_mistakes(houses, capsys, arguments, words):
    pd.DataFrame({"length": [1.0, 2.0], "price": [1.0, 2.0]}).to_csv("other.csv", index=False)
    gaps = pd.read_csv("more.csv")
    gaps.loc[1, "price"] = None
    gaps.to_csv("gaps.csv", index=False)
    code, _, err = _run(capsys, *arguments)
    assert code == 2 and words in refusal(err)
    assert not list(houses.glob("r.html"))


def test_old_model_files_have_reports(houses, monkeypatch, capsys):
    from mercer import persistence  # noqa: PLC0415 - after the fit

    model = persistence.load("houses.mercer")
    for name in ("command", "data_sha256", "versions"):
        model.report_.pop(name)
    persistence.save(model, "old.mercer")
    assert _run(capsys, "report", "old.mercer", "more.csv")[0] == 0


def test_rows_held_out_are_compared_with_the_training_part(houses, monkeypatch, capsys):
    found = []
    monkeypatch.setattr(report_page, "compose", lambda material: found.append(material) or _Saved())
    assert _run(capsys, "fit", "houses.csv", "-t", "price", "--model", "ridge", "-q", "--report", "r.html")[0] == 0
    # The model that is written has been fitted to all rows, and so would be at distance 0 from each.
    assert len(found[0].train[1]) == 60 and len(found[0].far.new) == 12 and (found[0].far.new > 0).all()


class _Saved:
    def to_html(self):
        return "<p>"


@pytest.mark.slow
def test_a_note_on_a_table_is_made_once(houses, capsys):
    assert main(["fit", "more.csv", "-t", "price", "-q", "-o", "auto.mercer"]) == 0
    pd.read_csv("more.csv").assign(town="Rome").to_csv("rome.csv", index=False)
    code, _, err = _run(capsys, "report", "auto.mercer", "rome.csv", "-q")
    assert code == 0 and err.count("Rome") == 1


def test_a_fit_without_held_out_rows(houses, capsys):
    arguments = ["fit", "houses.csv", "-t", "price", "--model", "ridge", "-q", "--test-size", "0", "--report", "z.html"]
    assert _run(capsys, *arguments)[0] == 0
    page = (houses / "z.html").read_text(encoding="utf-8")
    assert "not known here" in page and 'id="scores"' not in page and 'id="kernel"' in page


def test_a_report_on_the_rows_of_the_fit_begins_with_the_score_of_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80)}).assign(
        y=lambda rows: np.sin(rows["a"]) + 0.5 * rng.normal(size=80)
    )
    frame.to_csv("rows.csv", index=False)
    assert main(["fit", "rows.csv", "-t", "y", "--model", "ridge", "--set", "alpha=0.001", "--json"]) == 0
    held_out = json.loads(capsys.readouterr().out)["scores"]["KernelRidge"]["r2"]
    assert main(["report", "rows.mercer", "rows.csv", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict[0].startswith(f"On 16 rows held out by mercer fit, KernelRidge has R² {held_out:.3g}; ")
    assert "on 80 rows of its own fit" in verdict[0] and "flatter" in verdict[2]
