"""``mercer predict`` and ``mercer evaluate``: apply a model file to a table."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from mercer import persistence
from mercer._errors import DataError, MercerWarning, ModelFileError, ParameterError
from mercer._optional import optional
from mercer.cli import use_blocks
from mercer.cli.files import write_atomically
from mercer.cli.large import Predicted
from mercer.cli.options import UseOptions
from mercer.cli.show import Printer
from mercer.cli.stored import check_report, not_of_fit
from mercer.data.readers import read_table
from mercer.data.roles import VERBATIM
from mercer.data.schema import Locate
from mercer.data.table import Table, row_place
from mercer.data.target import known_target
from mercer.data.words import counted, printable
from mercer.engine.settings import config
from mercer.estimators.table import TableModel

_MOST_CLASSES_SHOWN = 30
_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False, engine="pyarrow"),
}


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


def predict(options: UseOptions) -> None:
    """Predict for every row of a table; write or print the predictions."""
    printer = Printer(options.quiet, options.json)
    writer = _writer(options.out)
    model = load_model(options.model)
    if use_blocks.is_in_blocks(options, model):
        _predict_in_blocks(options, model, printer)
        return
    with config(memory=options.memory, n_jobs=options.n_jobs):
        table = read_rows(options, model)
        _check_uncertainty(options, model)
        predicted = _predicted(table, model, printer)
        more = _uncertainty(columns_of(table, model), model, options, table.source, table.locate)
    frame = optional("pandas", "writing predictions").DataFrame({model.target: predicted, **more})
    if options.out is not None:
        write_atomically(options.out, lambda draft: writer(frame, draft))
    lists = {name: values.tolist() for name, values in more.items()} if options.out is None else {}
    printer.object(_result(options, model, len(predicted), predicted) | lists)
    if options.out is not None:
        printer.say(f"Wrote {counted(len(frame), 'prediction')} of {model.target} to {options.out}.", "bold green")
    elif not options.json and not options.quiet:
        text = frame.to_csv(index=False)
        # To another program the labels go as they are.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def _predict_in_blocks(options: UseOptions, model: TableModel, printer: Printer) -> None:
    _check_uncertainty(options, model)
    with config(memory=options.memory, n_jobs=options.n_jobs), printer.progress("predict"):
        rows = use_blocks.predict(options, model, lambda X: _uncertainty(X, model, options, options.data, row_place))
    printer.object(_result(options, model, rows))
    printer.say(f"Wrote {counted(rows, 'prediction')} of {model.target} to {options.out}.", "bold green")


def _result(options: UseOptions, model: TableModel, rows: int, predicted: np.ndarray | None = None) -> dict[str, Any]:
    """The predictions as plain values; those that were written are only counted."""
    return {
        "model": str(options.model),
        "data": options.data,
        "target": model.target,
        "rows": rows,
        "out": None if options.out is None else str(options.out),
        "predictions": None if predicted is None or options.out is not None else predicted.tolist(),
    }


def evaluate(options: UseOptions) -> None:
    """Score the model on a table that contains the target."""
    printer = Printer(options.quiet, options.json)
    model = load_model(options.model)
    with config(memory=options.memory, n_jobs=options.n_jobs):
        if use_blocks.is_in_blocks(options, model):
            with printer.progress("predict"):
                found, source = use_blocks.evaluate(options, model)
            target = model.target
        else:
            found, source, target = _evaluated(options, model, printer)
    printer.evaluated(
        {
            "model": model.report_["model"],
            "file": str(options.model),
            "data": source,
            "target": target,
            "rows": len(found.truth),
            "scores": found.scores(),
            "classes": _by_class(found.truth, found.predicted) if found.task == "classification" else {},
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
    printer.begin(_words(columns, model))
    with printer.progress("predict"):
        found = Predicted.of(model, [(columns, y)], table.source, table.locate)
    assert found is not None
    return found, table.source, target


def _writer(out: Path | None) -> Callable[[Any, Path], None]:
    """Looked up before anything is read, since a long job must not end in a file that cannot be written."""
    suffix = ".csv" if out is None else out.suffix.lower()
    if suffix == ".parquet":
        optional("pyarrow", f"writing {out}")
    return _WRITERS[suffix]


def read_rows(options: UseOptions, model: TableModel) -> Table:
    """Return the table of a command, read as the model reads its columns."""
    verbatim = [name for name, role in model.schema_.roles.items() if role in VERBATIM]
    return read_table(options.data, verbatim, options.axes).drop(options.drop)


def target_in(table: Table, model: TableModel) -> str:
    """Return the name of the target of a model in a table."""
    if not table.has(model.target) and table.is_sparse and table.default_target is not None:
        # The label of a libsvm file has no name of its own.
        return table.default_target
    return model.target


def _predicted(table: Table, model: TableModel, printer: Printer) -> np.ndarray:
    columns = columns_of(table, model)
    printer.begin(_words(columns, model))
    with printer.progress("predict"):
        predicted: np.ndarray = model.predict(columns, source=table.source, locate=table.locate)
    return predicted


def _words(columns: Any, model: TableModel) -> str:
    return f"Predicting {model.target} of {counted(columns.shape[0], 'row')} by {model.report_['model']} ..."


def _check_uncertainty(options: UseOptions, model: TableModel) -> None:
    """Raise unless the model has the intervals or probabilities that are requested."""
    name, numbers = model.report_["model"], model.report_["task"] == "regression"
    if options.interval is not None and not numbers:
        raise ParameterError(
            f"--interval is for models of numbers, and {options.model} predicts classes; use --probabilities."
        )
    if options.probabilities and numbers:
        raise ParameterError(
            f"--probabilities are for models of classes, and {options.model} predicts numbers; use --interval 0.9."
        )
    for wanted, there, what in (
        (options.interval is not None, hasattr(model, "predict_quantiles"), "intervals"),
        (options.probabilities, hasattr(model, "predict_proba"), "probabilities"),
    ):
        if wanted and not there:
            raise ParameterError(f"{name} gives no {what}; fit it again with --model auto, whose model does.")


def _uncertainty(
    columns: Any, model: TableModel, options: UseOptions, source: str, locate: Locate
) -> dict[str, np.ndarray]:
    """Further columns of the predictions: the ends of intervals, or the probabilities of classes."""
    if options.interval is None and not options.probabilities:
        return {}
    with warnings.catch_warnings():
        # Whatever there was to say of the table was said with the predictions.
        warnings.simplefilter("ignore", MercerWarning)
        if options.probabilities:
            shares = model.predict_proba(columns, source=source, locate=locate)
            return {f"P({label})": column for label, column in zip(model.classes_, shares.T)}
        assert options.interval is not None
        levels = [0.5 - options.interval / 2, 0.5 + options.interval / 2]
        ends = model.predict_quantiles(columns, levels, source=source, locate=locate)
    return {f"{model.target} {name}": column for name, column in zip(_percentages(levels), ends.T, strict=True)}


def _percentages(levels: Sequence[float]) -> list[str]:
    """The levels as percentages that differ, with as few digits as that needs.

    >>> _percentages([0.05, 0.95]), _percentages([0.4999999995, 0.5000000005])
    (['5%', '95%'], ['49.99999995%', '50.00000005%'])
    """
    short = [f"{100 * level:g}%" for level in np.round(levels, 9)]
    return short if len(set(short)) == len(levels) else [f"{100 * level:.15g}%" for level in levels]


def columns_of(table: Table, model: TableModel) -> Any:
    """Return the columns to predict from: without the target, should the table hold it.

    Raises
    ------
    DataError
        If the table holds only the target.
    """
    if table.is_sparse or model.target not in table.names:
        return table.columns
    if table.columns.shape[1] == 1:
        raise DataError(f"{table.source} holds only the target {model.target!r}, and no columns to predict it from.")
    return table.columns.drop(columns=[model.target])


def _by_class(y: np.ndarray, predicted: np.ndarray) -> dict[str, dict[str, float]]:
    labels = np.unique(y)[:_MOST_CLASSES_SHOWN]
    precision, recall, _, rows = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=np.nan)
    return {
        str(label): {"rows": int(n), "precision": float(p), "recall": float(r)}
        for label, n, p, r in zip(labels, rows, precision, recall, strict=True)
    }
