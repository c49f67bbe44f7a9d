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
from mercer.cli import use_blocks
from mercer.cli.answers import answers, check_answers, kept_columns
from mercer.cli.files import write_atomically
from mercer.cli.options import STANDARD, UseOptions
from mercer.cli.reading import Reading
from mercer.cli.show import Printer
from mercer.cli.standard_input import NAME, as_file
from mercer.cli.use import columns_of, load_model, words_of_work, written_rows
from mercer.data.table import row_place
from mercer.data.unknown import one_note_a_column
from mercer.data.words import counted, printable
from mercer.engine.settings import config
from mercer.estimators.table import TableModel

# The column that says from which of several files a row is.
_FILE = "file"

_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False, engine="pyarrow"),
}


def predict(options: UseOptions) -> None:
    """Predict for every row of one or more tables; write or print the predictions."""
    printer = Printer(options.quiet, options.json)
    writer = writer_of(options.out)
    model = load_model(options.model)
    check_answers(options, model)
    with config(memory=options.memory, n_jobs=options.n_jobs), ExitStack() as stack:
        parts = [_Part(name, stack.enter_context(as_file(name)), options) for name in options.files]
        if any(use_blocks.is_in_blocks(part.options, model) for part in parts):
            with printer.progress("predict"):
                rows = use_blocks.write(options, _in_blocks(parts, model))
            printer.object(_result(options, model, rows))
            _say_written(printer, options, model, rows)
            return
        frames, words = [], ""
        for part in parts:
            frame, words = part.whole(model, printer)
            frames.append(frame)
    frame = frames[0] if len(frames) == 1 else optional("pandas", "writing predictions").concat(frames)
    if words:
        printer.begin(f"Intervals: {words}.")
    if options.out is not None:
        write_atomically(options.out, lambda draft: writer(frame, draft))
    printer.object(_result(options, model, len(frame), frame))
    if options.out is not None:
        _say_written(printer, options, model, len(frame))
    elif not options.json and not options.quiet:
        text = frame.to_csv(index=False)
        # Another program gets the labels unchanged.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


class _Part:
    """One of the files that are predicted for."""

    def __init__(self, name: str, path: str, options: UseOptions) -> None:
        # A name in another encoding than UTF-8 is not text that a table can hold.
        self.name = NAME if name == STANDARD else name.encode("utf-8", "replace").decode("utf-8")
        self.options = replace(options, data=path, others=[])
        self.is_one_of_several = len(options.files) > 1

    def whole(self, model: TableModel, printer: Printer) -> tuple[Any, str]:
        """Predictions for all rows of a table, as a data frame; and how intervals were computed."""
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
            predicted: np.ndarray = model.predict(columns, source=source, locate=table.locate)
            more, words = answers(columns, model, options, source, table.locate)
        return self._frame(written.columns[kept] if kept else None, predicted, more, model), words

    def in_blocks(self, model: TableModel) -> Iterator[Any]:
        """The same, block by block."""
        options = self.options
        for X, whole in use_blocks.blocks_of(options, model):
            kept = kept_columns(options.keep, list(whole.columns), options.data)
            predicted = model.predict(X, source=options.data)
            more, _ = answers(X, model, options, options.data, row_place)
            yield self._frame(whole[kept] if kept else None, predicted, more, model)

    def _frame(self, kept: Any, predicted: np.ndarray, more: dict[str, np.ndarray], model: TableModel) -> Any:
        """One data frame: the file, the kept columns, the predictions, and further columns."""
        names = set() if kept is None else set(kept.columns)
        answers_by_name = {model.target: predicted} | more
        columns: dict[str, Any] = {}
        if self.is_one_of_several:
            file = _unlike(_FILE, {*names, *answers_by_name})
            columns[file] = np.full(len(predicted), self.name, dtype=object)
        if kept is not None:
            columns |= {name: kept[name].to_numpy() for name in kept.columns}
        for name, values in answers_by_name.items():
            # A table that is itself a result, with all of its columns kept, also has the prefixed name.
            columns[_unlike(f"predicted {name}", names) if name in names else name] = values
        return optional("pandas", "writing predictions").DataFrame(columns)


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


def _say_written(printer: Printer, options: UseOptions, model: TableModel, rows: int) -> None:
    printer.say(f"Wrote {counted(rows, 'prediction')} of {model.target} to {options.out}.", "bold green")


def _result(options: UseOptions, model: TableModel, rows: int, frame: Any = None) -> dict[str, Any]:
    """The predictions as plain values; those that were written are only counted."""
    lists = {} if frame is None or options.out is not None else {str(name): frame[name].tolist() for name in frame}
    prefixed = f"predicted {model.target}"
    # Kept columns of such names stand before the predictions.
    named = [name for name in lists if name == model.target or name.rstrip("_") == prefixed.rstrip("_")]
    predicted = lists.pop(named[-1]) if named else None
    return {
        "model": str(options.model),
        "data": options.data if not options.others else options.files,
        "target": model.target,
        "rows": rows,
        "out": None if options.out is None else str(options.out),
        "predictions": predicted,
        **lists,
    }


def writer_of(out: Path | None) -> Callable[[Any, Path], None]:
    """Return what writes a table to a file.

    It is looked up before anything is read, since a long job must not end in a file that cannot be written.
    """
    suffix = ".csv" if out is None else out.suffix.lower()
    if suffix == ".parquet":
        optional("pyarrow", f"writing {out}")
    return _WRITERS[suffix]
