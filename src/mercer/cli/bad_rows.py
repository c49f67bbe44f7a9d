"""Where in the file the rows are that a kernel cannot compare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer._errors import DataError
from mercer.cli.job import Job
from mercer.estimators.table import TableModel

_ROW = re.compile(r"\brow (\d+)\b")


@contextmanager
def naming_lines(model: TableModel, job: Job) -> Iterator[None]:
    """Let an error about a row say where in the file it is.

    The block fits to a part of the rows, in which they have other numbers. So the rows of the whole table are compared
    with themselves, and what that raises counts them from 0 as they are in the file.

    Raises
    ------
    DataError
        What the block raises; where it names a row, that of the whole table, with the place in the file.
    """
    try:
        yield
    except DataError as error:
        if not _ROW.search(str(error)):
            raise
        message = _error_of_all_rows(model, job)
        numbers = dict.fromkeys(int(number) for number in _ROW.findall(message))
        if not numbers or max(numbers) >= len(job.target.values):
            raise
        places = [f"row {number} is {job.locate(number)}" for number in numbers]
        raise DataError(f"{message} In {job.source}, {' and '.join(places)}.") from error


def _error_of_all_rows(model: TableModel, job: Job) -> str:
    """The error of the kernel about the rows of the whole table; empty if it can compare each with itself."""
    try:
        whole = model.prepared(job.columns, job.target.values, schema=job.schema)
        estimator: Any = whole.estimator
        if hasattr(estimator, "kernel_for"):
            rows = estimator.checked_rows(whole.rows)
            kernel = estimator.kernel_for(rows)
            if kernel is not None:
                kernel.diagonal(rows)
                kernel.block(rows[:1], rows)
    except DataError as error:
        return str(error)
    return ""
