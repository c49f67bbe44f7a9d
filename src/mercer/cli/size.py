"""The number of rows for a fit, decided in advance by the time and the memory that they would take."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mercer
from mercer._errors import MemoryBudgetError
from mercer._registered import CommandLine, model_class
from mercer.cli.command import command_line
from mercer.cli.job import Job
from mercer.cli.learners import usage
from mercer.cli.options import FitOptions
from mercer.engine.memory import budget, describe
from mercer.kernels.vector.dot import Linear

_SAMPLE = 10_000
_MANY_ROWS = 50_000
# Rows below which a sample of a table is not worth a fit.
_FEWEST = 50


@dataclass(frozen=True)
class Size:
    """The most rows that a fit takes, None for all, and the message about it before the fit."""

    most: int | None
    words: str


def choose_size(options: FitOptions, job: Job) -> Size:
    """Choose the number of rows for a fit.

    Raises
    ------
    MemoryBudgetError
        If the requested learner would exceed the budget on the requested rows; the message says what would fit.
    """
    task, n = job.target.task, len(job.target.values if options.refit else job.train)
    name, use = job.model, usage(job.model, task)
    if options.rows is not None:
        n = min(n, options.rows)
    if use.low_rank and _is_low_rank(options, job):
        return Size(options.rows, f"Fitting on {n} rows (a linear kernel, for which no kernel matrix is made) ...")
    room = None if use.pair_bytes is None else _most_rows(use.pair_bytes)
    if use.raw:
        return _size_of_tables(use, n, room or n, options)
    most = use.most_rows if options.model is None and options.rows is None else None
    if most is not None and n > min(most, room or most):
        count = min(_SAMPLE, room or _SAMPLE)
        return Size(
            count,
            f"{n} rows are many for a {name} regression, whose time grows with their cube. It is fitted on a random "
            f"sample of {count}. For more rows use --rows {2 * count}, or all of them with --model {use.frugal}.\n"
            f"{_announcement(count)}",
        )
    if use.pair_bytes is not None and room is not None and n > room:
        variant = replace(options, rows=min(room, _SAMPLE))
        raise MemoryBudgetError(
            f"{name} on {n} rows may need {describe(use.pair_bytes * n * n)}, and the memory budget is "
            f"{describe(budget())}, which is enough for {room} rows. Fit it on some of them, drawn at random "
            f"({command_line(variant)}), or all of them with --model {use.frugal}{_over_landmarks(job, n)}."
        )
    return Size(options.rows, _announcement(n))


def _size_of_tables(use: CommandLine, n: int, room: int, options: FitOptions) -> Size:
    """That of a learner that needs no choice: a table of any size is fitted, on some of its rows if they are many."""
    most = use.most_rows if options.rows is None and use.most_rows is not None else n
    count = min(n, most, room)
    if count < min(n, _FEWEST):
        assert use.pair_bytes is not None
        raise MemoryBudgetError(
            f"the memory budget is {describe(budget())}, which is enough for {room} of the {n} rows; with fewer than "
            f"{_FEWEST} there is little to learn. Raise the budget with --memory to at least "
            f"{describe(1.3 * use.pair_bytes * _FEWEST**2)}."
        )
    if count == n:
        return Size(n, _announcement(n))
    why = "as many as the memory budget allows" if room < most else "which takes minutes"
    more = "For more rows raise --memory" if room < most else f"For more rows use --rows {2 * count}"
    return Size(
        count,
        f"{n} rows are many for a model whose time grows with their cube. It is fitted on a random sample of {count}, "
        f"{why}. {more}, or fit all rows of a CSV or Parquet file, without columns of text, over landmarks with "
        f"--approximation nystroem.\n{_announcement(count)}",
    )


def _over_landmarks(job: Job, n: int) -> str:
    """What reads all rows in blocks, with the memory that it takes, for the models that can."""
    if job.model not in ("ridge", "logistic"):
        return ""
    model = model_class(job.model, job.target.task)(kernel="rbf", approximation="nystroem")
    # Loaded by its first use: most commands need no estimate.
    need = mercer.estimate(model, (n, job.schema.encoded_columns)).nbytes
    return f", or all of them in blocks with --approximation nystroem ({describe(need)})"


def _most_rows(pair_bytes: int) -> int:
    """The most rows for which the budget has room, to two digits."""
    exact = int((budget() / pair_bytes) ** 0.5)
    unit = 10 ** max(0, len(str(exact)) - 2)
    return max(2, exact // unit * unit)


def _is_low_rank(options: FitOptions, job: Job) -> bool:
    """Whether the kernel is linear in few columns, for which some learners make no matrix of all pairs."""
    linear = options.kernel is not None and options.kernel.strip() in ("linear", repr(Linear()))
    return linear and 16 * job.schema.encoded_columns <= len(job.train)


def _announcement(n: int) -> str:
    """What the fit has before it."""
    cost = f"Fitting on {n} rows (kernel matrix {describe(8.0 * n * n)}, memory budget {describe(budget())}) ..."
    if n <= _MANY_ROWS:
        return cost
    return f"{cost}\nThe time grows with the square of the rows, or faster, and may be hours; Ctrl-C ends it."
