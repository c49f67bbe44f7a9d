"""``mercer evaluate``, and what ``mercer predict`` has in common with it: a model file and rows, whole or in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from mercer import persistence
from mercer._errors import DataError, ModelFileError, ParameterError
from mercer.cli.answers import kept_columns
from mercer.cli.checks import is_several
from mercer.cli.options import STANDARD, PredictOptions, UseOptions
from mercer.cli.reading import Reading
from mercer.cli.show import Printer
from mercer.cli.standard_input import NAME, as_file
from mercer.cli.stored import check_report, not_of_fit
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.sink import write_blocks
from mercer.data.blocks.written import written_columns
from mercer.data.readers import read_table
from mercer.data.schema import Locate
from mercer.data.table import Table, row_place, shifted
from mercer.data.target import known_target
from mercer.data.text_files import suffix_of
from mercer.data.unknown import one_note_a_column
from mercer.data.words import counted
from mercer.engine.settings import config
from mercer.estimators.table import TableModel
from mercer.reports.scores import by_class, probability_scores, scores

_MOST_CLASSES_SHOWN = 30
# Tables in one file that are read in blocks where they are larger, in bytes.
_LARGE = 2**26
_TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv", ".tab", ".txt")

# A part of a table: a data frame, and its targets.
Part = tuple[Any, np.ndarray]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Targets of rows and what a model predicts for them; probabilities (n, k) of ``classes`` where it has them."""

    task: str
    truth: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None = None
    shares: np.ndarray | None = None

    @classmethod
    def of(cls, model: TableModel, parts: Iterable[Part], source: str, locate: Locate = row_place) -> Predicted | None:
        """Predict block by block; None without rows."""
        classes = getattr(model, "classes_", None)
        truth, predicted, shares, first = [], [], [], 0
        for frame, y in parts:
            rows = model.encoder_.transform(frame, source=source, locate=shifted(locate, first))
            first += len(y)
            truth.append(y)
            has_shares = classes is not None and hasattr(model, "predict_proba")
            together = model.predict_together(rows, probabilities=has_shares)
            predicted.append(together.predicted)
            if has_shares:
                its = together.probabilities
                shares.append(model.predict_proba_encoded(rows) if its is None else its)
        if not truth:
            return None
        task, labels = ("regression", []) if classes is None else ("classification", classes.tolist())
        y = known_target(np.concatenate(truth), model.target, task, labels, locate)
        return cls(task, y, np.concatenate(predicted), classes, np.concatenate(shares) if shares else None)

    def scores(self) -> dict[str, float]:
        """Those of the task, and those of the probabilities."""
        values = scores(self.task, self.truth, self.predicted)
        if self.shares is not None and self.classes is not None:
            values.update(probability_scores(self.truth, self.shares, self.classes))
        return values

    def constant(self, learned: np.ndarray) -> tuple[str, Predicted]:
        """The same rows with a constant prediction from the targets that were learned: mean, or most frequent class."""
        n = len(self.truth)
        if self.classes is None:
            return "mean of the target", Predicted(self.task, self.truth, np.full(n, learned.mean()))
        counts = np.array([np.count_nonzero(learned == label) for label in self.classes], dtype=np.float64)
        frequent = np.full(n, self.classes[np.argmax(counts)])
        constant = None if self.shares is None else np.tile(counts / counts.sum(), (n, 1))
        return "most frequent class", Predicted(self.task, self.truth, frequent, self.classes, constant)


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
        judge = _judged_in_blocks if is_in_blocks(options, model) else _judged
        predicted, source, target = judge(options, model, printer)
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


def _judged(options: UseOptions, model: TableModel, printer: Printer) -> tuple[Predicted, str, str]:
    """Predictions for a table that is read whole, its name, and the name of the target in it."""
    table = read_rows(options, model)
    target = target_in(table, model)
    _, values, _ = table.split(target)
    y = known_target(values, target, model.report_["task"], model.report_["classes"], table.locate)
    columns = columns_of(table, model)
    printer.begin(words_of_work(columns, model))
    with printer.progress("predict"):
        predicted = Predicted.of(model, [(columns, y)], table.source, table.locate)
    assert predicted is not None
    return predicted, table.source, target


def _judged_in_blocks(options: UseOptions, model: TableModel, printer: Printer) -> tuple[Predicted, str, str]:
    """The same for rows that are read in blocks."""
    (names, dtype), reading = _columns_in_blocks(options, model), Reading.of(model.report_)
    blocks = Blocks(options.data, model.target, columns=names, dtype=dtype, encoding=options.encoding)

    def parts() -> Iterator[Part]:
        first = 0
        for X, y, _ in blocks.frames():
            assert y is not None
            yield reading.frame(X, options.data, shifted(row_place, first)), y
            first += len(X)

    with printer.progress("predict"), one_note_a_column():
        predicted = Predicted.of(model, parts(), options.data)
    # Blocks without rows raise an error.
    assert predicted is not None
    return predicted, options.data, model.target


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


def is_in_blocks(options: UseOptions, model: TableModel) -> bool:
    """Whether the rows are read in blocks: those of a pattern, of a folder of tables, and of a large table.

    Objects such as text are read whole, because readers of blocks do not keep them letter by letter.
    """
    data = Path(options.data)
    if data.is_dir():
        # A folder with a list of labels has a series in each of its files.
        tables = any(suffix_of(path, inside=False) in (".parquet", ".csv", ".tsv") for path in data.iterdir())
        return tables and not any((data / name).exists() for name in ("labels.csv", "labels.tsv"))
    if is_several(options.data):
        return True
    is_plain = suffix_of(data, inside=False) in _TABLES and not model.schema_.roles and model.schema_.width is None
    return is_plain and data.is_file() and data.stat().st_size > _LARGE


def write_in_blocks(options: PredictOptions, frames: Iterator[Any]) -> int:
    """Write predictions as they are made, block by block, and return their number.

    Raises
    ------
    ParameterError
        If there is no file for the predictions, or one of another format.
    DataError
        If a file lacks a column or holds entries of another kind.
    """
    if options.out is None or options.out.suffix.lower() == ".tsv":
        raise ParameterError(
            "predictions for large or several files are written block by block; name a .csv or .parquet file: --out."
        )
    return write_blocks(options.out, frames)


def blocks_of(options: PredictOptions, model: TableModel) -> Iterator[tuple[Any, Any, Locate]]:
    """Yield the rows in blocks of data frames: columns to predict from, those that are kept or None, and places."""
    names, dtype = _columns_in_blocks(options, model)
    blocks = Blocks(options.data, columns=names, dtype=dtype, encoding=options.encoding).frames()
    every = Blocks(options.data, encoding=options.encoding).columns or ()
    kept = kept_columns(options.keep, every, options.data)
    written = written_columns(options.data, kept, blocks.rows_per_block, options.encoding) if kept else repeat(None)
    reading, first = Reading.of(model.report_), 0
    for (block, _, _), columns in zip(blocks, written, strict=bool(kept)):
        locate = shifted(row_place, first)
        yield reading.frame(block, options.data, locate), columns, locate
        first += len(block)


def _columns_in_blocks(options: UseOptions, model: TableModel) -> tuple[list[str] | None, dict[str, str] | None]:
    """The columns to predict from, and those that are text for the model, whatever they look like in one file."""
    names = Blocks(options.data, encoding=options.encoding).columns
    if names is None:
        return None, None
    verbatim, texts = Reading.of(model.report_).columns(model)
    dtype = {name: "str" for name in (*verbatim, *texts) if name in names}
    return [name for name in names if name not in (model.target, *options.drop)], dtype
