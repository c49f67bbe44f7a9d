"""``mercer predict`` for files that are read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mercer._errors import ParameterError
from mercer._optional import optional
from mercer.cli.checks import is_several
from mercer.cli.options import UseOptions
from mercer.cli.show import Printer
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.sink import write_blocks
from mercer.data.words import counted
from mercer.engine.settings import config
from mercer.estimators.table import TableModel


def is_in_blocks(options: UseOptions) -> bool:
    """Whether the rows are read in blocks: those of a pattern, and those of a folder of tables."""
    data = Path(options.data)
    if data.is_dir():
        # A folder with a list of labels has a series in each of its files.
        tables = any(path.suffix.lower() in (".parquet", ".csv", ".tsv") for path in data.iterdir())
        return tables and not any((data / name).exists() for name in ("labels.csv", "labels.tsv"))
    return is_several(options.data)


def predict(options: UseOptions, model: TableModel) -> None:
    """Predict block by block, and write the predictions as they are made.

    Raises
    ------
    ParameterError
        If there is no file for the predictions, or they are to be intervals.
    DataError
        If a file lacks a column or holds entries of another kind.
    """
    printer = Printer(options.quiet, options.json)
    if options.out is None:
        raise ParameterError("predictions for several files are written block by block; name a file with --out.")
    if options.interval is not None:
        raise ParameterError("--interval is for one file; leave it out, or pass the files one by one.")
    with config(memory=options.memory, n_jobs=options.n_jobs), printer.progress("predict"):
        rows = write_blocks(options.out, _frames(options, model))
    printer.object(
        {
            "model": str(options.model),
            "data": options.data,
            "target": model.target,
            "rows": rows,
            "out": str(options.out),
            "predictions": None,
        }
    )
    printer.say(f"Wrote {counted(rows, 'prediction')} of {model.target} to {options.out}.", "bold green")


def _frames(options: UseOptions, model: TableModel) -> Iterator[Any]:
    frame_of = optional("pandas", "writing predictions").DataFrame
    names = Blocks(options.data).columns
    columns = None if names is None else [name for name in names if name not in (model.target, *options.drop)]
    for X, _, _ in Blocks(options.data, columns=columns).frames():
        columns_of_frame = {model.target: model.predict(X, source=options.data)}
        if options.probabilities:
            shares = model.predict_proba(X, source=options.data)
            columns_of_frame |= {f"P({label})": part for label, part in zip(model.classes_, shares.T, strict=True)}
        yield frame_of(columns_of_frame)
