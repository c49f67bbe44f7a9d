"""``mercer predict``: predictions for the rows of tables, and how sure they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._optional import optional
from mercer.cli.answers import answers, check_answers, kept_columns
from mercer.cli.files import write_atomically
from mercer.cli.options import STANDARD, PredictOptions
from mercer.cli.reading import Reading
from mercer.cli.show import Printer
from mercer.cli.standard_input import NAME, as_file
from mercer.cli.use import blocks_of, columns_of, is_in_blocks, load_model, words_of_work, write_in_blocks, written_rows
from mercer.data.blocks.written import is_written, written_columns
from mercer.data.table import Table
from mercer.data.unknown import one_note_a_column
from mercer.data.words import counted, printable
from mercer.engine.settings import config
from mercer.estimators.table import TableModel

# Whole numbers as Python writes them, all of which int64 holds.
_WHOLE = r"0|-?[1-9]\d{0,17}"
# The column that says from which of several files a row is.
_FILE = "file"

_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False, engine="pyarrow"),
}


def predict(options: PredictOptions) -> None:
    """Predict for every row of one or more tables; write or print the predictions."""
    printer = Printer(options.quiet, options.json)
    writer = writer_of(options.out)
    model = load_model(options.model)
    check_answers(options, model)
    with config(memory=options.memory, n_jobs=options.n_jobs), ExitStack() as stack:
        parts = [_Part(name, stack.enter_context(as_file(name)), options) for name in options.files]
        if any(is_in_blocks(part.options, model) for part in parts):
            with printer.progress("predict"):
                rows = write_in_blocks(options, _in_blocks(parts, model))
            printer.object(_result(options, model, rows))
            _say_written(printer, options, model, rows)
            return
        frame, words = _whole(parts, model, printer)
    if words:
        printer.begin(f"Intervals: {words}.")
    if options.out is not None:
        write_atomically(options.out, lambda draft: writer(frame, draft))
    printer.object(_result(options, model, len(frame), frame))
    if options.out is not None:
        _say_written(printer, options, model, len(frame))
    elif not options.json:
        text = frame.to_csv(index=False)
        # Another program gets the labels unchanged.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


class _Part:
    """One of the files that are predicted for."""

    def __init__(self, name: str, path: str, options: PredictOptions) -> None:
        # A name in another encoding than UTF-8 is not text that a table can hold.
        self.name = NAME if name == STANDARD else name.encode("utf-8", "replace").decode("utf-8")
        self.options = replace(options, data=path)
        self.is_one_of_several = len(options.files) > 1

    def whole(self, model: TableModel, printer: Printer) -> tuple[Any, dict[str, np.ndarray], str]:
        """Return the kept columns of a table, the predictions for all rows, and how intervals were computed."""
        options = self.options
        written = written_rows(options, model)
        source = NAME if self.name == NAME else written.source
        written = replace(written, source=source)
        table = Reading.of(model.report_).table(written)
        columns = columns_of(table, model)
        if options.keep and table.is_sparse:
            raise DataError(f"{source} has no named columns, so none can be kept; leave out --keep.")
        kept = kept_columns(options.keep, written.names, source)
        printer.begin(words_of_work(columns, model))
        with printer.progress("predict"):
            predicted, more, words = answers(columns, model, options, source, table.locate)
        return self._as_written(written, kept) if kept else None, _named(model.target, predicted, more), words

    def in_blocks(self, model: TableModel) -> Iterator[Any]:
        """The same, block by block."""
        options = self.options
        for X, kept, locate in blocks_of(options, model):
            predicted, more, _ = answers(X, model, options, options.data, locate)
            files = np.full(len(predicted), self.name, dtype=object) if self.is_one_of_several else None
            yield _frame(files, kept, _named(model.target, predicted, more))

    def _as_written(self, table: Table, names: list[str]) -> Any:
        """Columns of a table with the text of each entry in its file: as numbers where these are written so."""
        path, columns = Path(self.options.data), table.columns[names]
        if not path.is_file() or not is_written(path):
            return columns
        (written,) = written_columns(path, names, encoding=self.options.encoding)
        return written.assign(**{name: as_written(columns[name], written[name]) for name in names})


def _whole(parts: list[_Part], model: TableModel, printer: Printer) -> tuple[Any, str]:
    """Return the predictions for the rows of all files as one data frame, and how intervals were computed."""
    kept, predicted, words = [], [], ""
    for part in parts:
        columns, its_answers, words = part.whole(model, printer)
        kept.append(columns)
        predicted.append(its_answers)
    answers_by_name = {name: np.concatenate([its[name] for its in predicted]) for name in predicted[0]}
    names = np.array([part.name for part in parts], dtype=object)
    files = names.repeat([len(its[model.target]) for its in predicted]) if len(parts) > 1 else None
    out = parts[0].options.out
    typed = out is not None and out.suffix.lower() == ".parquet"
    return _frame(files, None if kept[0] is None else _rows_of_all(kept, typed), answers_by_name), words


def _rows_of_all(frames: list[Any], typed: bool) -> Any:
    """Return the rows of all data frames; a column whose types differ keeps its entries as they are.

    With ``typed`` it gets one type: text if it is text in one of them, and integers stay integers where another file
    lacks the column or has gaps.
    """
    kinds = {
        name: {frame[name].dtype.kind if name in frame else "" for frame in frames}
        for name in dict.fromkeys(name for frame in frames for name in frame)
    }
    several = {name: its for name, its in kinds.items() if len(its) > 1}
    if not typed:
        changes: dict[str, Callable[[Any], Any]] = dict.fromkeys(several, lambda column: column.astype(object))
    else:
        # Without these types, missing entries would turn integers into floats, which lose digits beyond 2**53.
        changes = {
            name: lambda column: column.convert_dtypes()
            for name, its in several.items()
            if its == {"b", ""} or (its & {"i", "u"} and its <= {"i", "u", "f", ""})
        } | {name: _as_text for name, its in several.items() if "O" in its}
    return optional("pandas", "writing predictions").concat(
        [frame.assign(**{name: changes[name](frame[name]) for name in changes.keys() & set(frame)}) for frame in frames]
    )


def as_written(column: Any, texts: Any) -> Any:
    """Return a column of a file with the types that were read, if they are written as it is, and else its text.

    Parameters
    ----------
    column : pandas.Series
        As it was read.
    texts : pandas.Series
        The fields as they are written, or of files with types the column itself.

    Examples
    --------
    >>> import pandas as pd
    >>> as_written(pd.Series([1.0, None]), pd.Series(["1", ""])).tolist()
    [1, <NA>]
    >>> as_written(pd.Series([1.1, None]), pd.Series(["1.10", "NA"])).tolist()
    ['1.10', 'NA']
    """
    if texts.dtype.kind != "O" or not texts.dropna().map(lambda entry: isinstance(entry, str)).all():
        return texts
    if column.dtype.kind != "O" and (_as_text(column).fillna("") == texts).all():
        return column
    gaps = texts == ""
    if texts.str.fullmatch(_WHOLE)[~gaps].all() and not gaps.all():
        return texts.where(~gaps, None).astype("string").astype("Int64")
    return texts.astype(object).where(~gaps, None)


def _as_text(column: Any) -> Any:
    """The entries as Python writes them, None for gaps."""
    return column.astype(object).map(str, na_action="ignore")


def _frame(files: np.ndarray | None, kept: Any, answers_by_name: dict[str, np.ndarray]) -> Any:
    """Return one data frame: the file, the kept columns, the predictions, and further columns."""
    names = set() if kept is None else set(kept.columns)
    columns: dict[str, Any] = {}
    if files is not None:
        columns[_unlike(_FILE, {*names, *answers_by_name})] = files
    if kept is not None:
        columns |= {name: kept[name].array for name in kept.columns}
    for name, values in answers_by_name.items():
        # A table that is itself a result, with all of its columns kept, also has the prefixed name.
        columns[_unlike(f"predicted {name}", names) if name in names else name] = values
    return optional("pandas", "writing predictions").DataFrame(columns)


def _named(target: str, predicted: np.ndarray, more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The predictions and further columns, which get another name if they are called like the target, as ``P(a)``."""
    return {target: predicted} | {_unlike(name, {target, *(more.keys() - {name})}): its for name, its in more.items()}


def _unlike(name: str, names: set[str]) -> str:
    """The name, with as many underscores as make it a new one.

    >>> _unlike("file", {"file"})
    'file_'
    """
    while name in names:
        name += "_"
    return name


def _in_blocks(parts: list[_Part], model: TableModel) -> Iterator[Any]:
    with one_note_a_column():
        for part in parts:
            yield from part.in_blocks(model)


def _say_written(printer: Printer, options: PredictOptions, model: TableModel, rows: int) -> None:
    printer.say(f"Wrote {counted(rows, 'prediction')} of {model.target} to {options.out}.", "bold green")


def _result(options: PredictOptions, model: TableModel, rows: int, frame: Any = None) -> dict[str, Any]:
    """The predictions as plain values; those that were written are only counted."""
    lists = {} if frame is None or options.out is not None else {str(name): _entries(frame[name]) for name in frame}
    prefixed = f"predicted {model.target}"
    # Kept columns of such names stand before the predictions.
    named = [name for name in lists if name == model.target or name.rstrip("_") == prefixed.rstrip("_")]
    predicted = lists.pop(named[-1]) if named else None
    facts = {
        "model": str(options.model),
        "data": options.files[0] if len(options.files) == 1 else options.files,
        "target": model.target,
        "rows": rows,
        "out": None if options.out is None else str(options.out),
        "predictions": predicted,
    }
    for name, values in lists.items():
        # A kept column may have one of these names, too.
        facts[_unlike(name, {*facts, *(lists.keys() - {name})})] = values
    return facts


def _entries(column: Any) -> list[Any]:
    """Return the entries of a column as JSON has them: None for missing ones, text for dates."""
    known = [entry.isoformat() if hasattr(entry, "isoformat") else entry for entry in column.tolist()]
    return [None if is_missing else entry for entry, is_missing in zip(known, column.isna(), strict=True)]


def writer_of(out: Path | None) -> Callable[[Any, Path], None]:
    """Return what writes a table to a file.

    It is looked up before anything is read, since a long job must not end in a file that cannot be written.
    """
    suffix = ".csv" if out is None else out.suffix.lower()
    if suffix == ".parquet":
        optional("pyarrow", f"writing {out}")
    return _WRITERS[suffix]
