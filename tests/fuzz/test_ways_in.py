"""One random table by all ways in: the same predictions from every file, frame and order of rows and columns."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer.main

import mercer
from fuzz.table_cases import Table, random_form, random_table, write
from mercer.cli import main

MODELS = {"regression": "ridge", "classification": "logistic"}
WAYS = {"whole": ["--impute", "median"], "blocks": ["--approximation", "nystroem", "--landmarks", "20"], "auto": []}
CLASSES = {"regression": mercer.TabularRegressor, "classification": mercer.TabularClassifier}


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """As for the other tests of the command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


class Refused(Exception):
    """A command ended with a message for the user."""


def command(*words: object) -> None:
    """Run a command; a table that it refuses is no error, but a traceback is."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    assert code in (0, 2), err.getvalue()
    if code:
        raise Refused(err.getvalue())


def fitted(data: Path, table: Table, *options: str) -> Path:
    """The model file of a fit to all rows."""
    model = data.parent / f"{data.name}.mercer"
    task = ("--task", table.task, "--test-size", "0", "-q")
    command("fit", data, "--target", table.target, *task, *options, "--out", model)
    return model


def predicted(model: Path, data: Path, table: Table) -> pd.DataFrame:
    """Labels as text, and numbers: predictions, or the probabilities of classes."""
    out = model.with_name("predicted.parquet")
    command("predict", model, data, "--out", out, "-q", *(["--proba"] if table.task == "classification" else []))
    return pd.read_parquet(out)


def same(answers: pd.DataFrame, expected: pd.DataFrame) -> bool:
    """Whether predictions agree up to rounding; labels, where no class is nearly as probable."""
    if list(answers) != list(expected) or len(answers) != len(expected):
        return False
    numbers = [name for name in expected if expected[name].dtype.kind == "f"]
    close = np.allclose(answers[numbers], expected[numbers], rtol=1e-6, atol=1e-6)
    others = expected.drop(columns=numbers)
    return close and bool((answers[others.columns].astype(str) == others.astype(str)).all().all())


def parts_of(folder: Path, table: Table, suffix: str) -> Path:
    """A folder with the table in two files."""
    folder.mkdir()
    cut = table.rows // 3
    for number, rows in enumerate((range(cut), range(cut, table.rows))):
        part = table.take(list(rows))
        if suffix == ".csv":
            write(folder / f"{number}", part)
        else:
            part.frame().to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def files(folder: Path, table: Table, rng: np.random.Generator) -> Iterator[tuple[str, Path, Table]]:
    """The same rows in other files; the table is that of the file."""
    form = random_form(rng, table)
    yield f"as {form}", write(folder / "form", table, form), table
    table.frame().to_parquet(folder / "typed.parquet", index=False)
    yield "Parquet", folder / "typed.parquet", table
    yield "a folder of CSV", parts_of(folder / "csv", table, ".csv"), table
    yield "a folder of Parquet", parts_of(folder / "parquet", table, ".parquet"), table
    columns = table.in_order(list(rng.permutation(list(table.columns))))
    yield "other order of columns", write(folder / "columns", columns), table
    without = table.in_order([name for name in table.columns if name != table.target])
    yield "without the target", write(folder / "without", without), table


def rows_alone(folder: Path, table: Table, rng: np.random.Generator) -> Iterator[tuple[str, Path, np.ndarray]]:
    """Some of the rows in files of their own, alone and in another order, and their numbers."""
    for number, rows in enumerate([[row] for row in rng.permutation(table.rows)[:3]] + [rng.permutation(table.rows)]):
        part = table.take(list(rows))
        yield f"rows {list(rows)[:5]}", write(folder / f"rows{number}", part), np.asarray(rows)
        part.frame().to_parquet(folder / f"rows{number}.parquet", index=False)
        yield f"rows {list(rows)[:5]} in Parquet", folder / f"rows{number}.parquet", np.asarray(rows)


def differences(seed: int, folder: Path, way: str) -> list[str]:
    """What does not give the predictions of the plain CSV file.

    Raises
    ------
    Refused
        If the command does not fit the table.
    """
    rng, table = np.random.default_rng([seed, 1]), random_table(seed)
    options = ["--model", "auto" if way == "auto" else MODELS[table.task], *WAYS[way]]
    base = write(folder / "base", table)
    model = fitted(base, table, *options)
    expected = predicted(model, base, table)
    wrong = []

    def compare(what: str, data: Path, rows: np.ndarray | slice) -> None:
        try:
            answers = predicted(model, data, table)
        except Refused as error:
            wrong.append(f"{what}: {error}")
            return
        if not same(answers, expected.iloc[rows].reset_index(drop=True)):
            wrong.append(what)

    others = list(files(folder, table, rng))
    for what, data, _ in others:
        compare(what, data, slice(None))
    for what, data, rows in rows_alone(folder, table, rng):
        compare(what, data, rows)
    # A folder is fitted in blocks alone.
    for what, data, of_file in others[: 4 if way == "blocks" else 2]:
        try:
            answers = predicted(fitted(data, of_file, *options), base, table)
        except Refused as error:
            wrong.append(f"fit to {what}: {error}")
            continue
        if not same(answers, expected):
            wrong.append(f"fit to {what}")
    return wrong


def differences_in_python(seed: int, folder: Path) -> list[str]:
    """Where an estimator of tables differs from the command that fits it."""
    table = random_table(seed)
    expected = predicted(fitted(write(folder / "base", table), table, "--model", "auto"), folder / "base.csv", table)
    wrong = []
    for what, frame in (("typed", table.frame()), ("text", table.texts())):
        X, y = frame.drop(columns=table.target), table.frame()[table.target].to_numpy()
        model = CLASSES[table.task](random_state=0).fit(X, y)
        values = model.predict(X)
        answers = pd.DataFrame({table.target: values})
        if table.task == "classification":
            numbers = model.predict_proba(X)
            answers = pd.concat([answers, pd.DataFrame(numbers, columns=list(expected)[1:])], axis=1)
        if not same(answers, expected):
            wrong.append(f"an estimator on {what} columns")
    return wrong


@pytest.mark.parametrize("seed", [4])
def test_a_table_by_all_ways_in(tmp_path: Path, seed: int) -> None:
    assert differences(seed, tmp_path, "whole") == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.parametrize("way", WAYS)
def test_many_tables_by_all_ways_in(tmp_path: Path, way: str, seed: int) -> None:
    try:
        assert differences(seed, tmp_path, way) == []
    except Refused as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 240))
def test_the_command_and_the_estimators_of_tables(tmp_path: Path, seed: int) -> None:
    try:
        assert differences_in_python(seed, tmp_path) == []
    except Refused as error:
        pytest.skip(str(error))
