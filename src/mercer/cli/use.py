"""``mercer evaluate``, and what ``mercer predict`` has in common with it: a model file and a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from mercer import persistence
from mercer._errors import DataError, ModelFileError
from mercer.cli import use_blocks
from mercer.cli.large import Predicted
from mercer.cli.options import STANDARD, UseOptions
from mercer.cli.reading import Reading
from mercer.cli.show import Printer
from mercer.cli.standard_input import NAME, as_file
from mercer.cli.stored import check_report, not_of_fit
from mercer.data.readers import read_table
from mercer.data.table import Table
from mercer.data.target import known_target
from mercer.data.words import counted
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.reports.scores import by_class

_MOST_CLASSES_SHOWN = 30


def load_model(path: Path) -> TableModel:
    """Return the model in a file that ``mercer fit`` wrote.

    Raises
    ------
    ModelFileError
        If the file contains another object.
    """
    model = persistence.load(path)
    if not isinstance(model, TableModel) or not hasattr(model, "report_"):
        raise ModelFileError(not_of_fit(path, type(model).__name__))
    check_report(model.report_, path)
    return model


def evaluate(options: UseOptions) -> None:
    """Score the model on a table that contains the target."""
    printer = Printer(options.quiet, options.json)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs), as_file(options.data) as path:
        given, options = options.data, replace(options, data=path)
        if use_blocks.is_in_blocks(options, model):
            with printer.progress("predict"):
                predicted, source = use_blocks.evaluate(options, model)
            target = model.target
        else:
            predicted, source, target = _evaluated(options, model, printer)
    classes = by_class(predicted.truth, predicted.predicted) if predicted.task == "classification" else {}
    printer.evaluated(
        {
            "model": model.report_["model"],
            "file": str(options.model),
            "data": source if given != STANDARD else NAME,
            "target": target,
            "rows": len(predicted.truth),
            "scores": predicted.scores(),
            "classes": dict(islice(classes.items(), _MOST_CLASSES_SHOWN)),
        }
    )


def _evaluated(options: UseOptions, model: TableModel, printer: Printer) -> tuple[Predicted, str, str]:
    """Predictions for a table that is read whole, its name, and the name of the target in it."""
    task = model.report_["task"]
    table = read_rows(options, model)
    target = target_in(table, model)
    _, values, _ = table.split(target)
    y = known_target(values, target, task, model.report_["classes"], table.locate)
    columns = columns_of(table, model)
    printer.begin(words_of_work(columns, model))
    with printer.progress("predict"):
        predicted = Predicted.of(model, [(columns, y)], table.source, table.locate)
    assert predicted is not None
    return predicted, table.source, target


def written_rows(options: UseOptions, model: TableModel) -> Table:
    """Return the table of a command as it is written."""
    verbatim, texts = Reading.of(model.report_).columns(model)
    way = {"encoding": options.encoding, "sheet": options.sheet}
    return read_table(options.data, verbatim, options.axes, texts, **way).drop(options.drop)


def read_rows(options: UseOptions, model: TableModel) -> Table:
    """Return the table of a command, read as the model reads its columns."""
    return Reading.of(model.report_).table(written_rows(options, model))


def target_in(table: Table, model: TableModel) -> str:
    """Return the name of the target of a model in a table."""
    if not table.has(model.target) and table.is_sparse and table.default_target is not None:
        # The label of a libsvm file has no name of its own.
        return table.default_target
    return model.target


def words_of_work(columns: Any, model: TableModel) -> str:
    """Return what is predicted for how many rows, and by what."""
    return f"Predicting {model.target} of {counted(columns.shape[0], 'row')} by {model.report_['model']} ..."


def columns_of(table: Table, model: TableModel) -> Any:
    """Return the columns to predict from: without the target, should the table hold it.

    Raises
    ------
    DataError
        If no column is left.
    """
    if table.is_sparse or model.target not in table.names:
        return table.columns
    if table.columns.shape[1] == 1:
        raise DataError(f"{table.source} holds only the target {model.target!r}, and no columns to predict it from.")
    return table.columns.drop(columns=[model.target])
