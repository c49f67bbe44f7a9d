"""How many rows a learner is fitted on, decided before the work by the time and the memory that it would take."""

from __future__ import annotations

from dataclasses import dataclass

from mercer._errors import MemoryBudgetError
from mercer.cli.compare import command_line
from mercer.cli.job import Job
from mercer.cli.learners import default_model
from mercer.cli.options import FitOptions
from mercer.engine.memory import budget, describe
from mercer.kernels.vector.dot import Linear

# Bytes for each pair of rows that a learner may come to need (measured; ridge tries half of that first, and falls back
# to a float64 factor); those that are not here work on parts of the matrix.
_BYTES = {"ridge": 8, "gp": 8, "gpc": 12}
# The time of these grows with the cube of the rows; with more of them the learner by default takes a sample.
_MOST_BY_DEFAULT = {"ridge": 20_000}
_SAMPLE = 10_000
# A learner for the same task, whose memory does not grow with the square of the rows.
_FRUGAL = {"ridge": "svr", "gp": "svr", "gpc": "svc"}
_MANY_ROWS = 50_000


@dataclass(frozen=True)
class Size:
    """The most rows that a fit takes, None for all; and what is said of it before the fit."""

    most: int | None
    words: str


def choose_size(options: FitOptions, job: Job) -> Size:
    """The rows that a fit takes.

    Raises
    ------
    MemoryBudgetError
        If the learner that was asked for would not fit the budget on so many rows; with what would.
    """
    task, n = job.target.task, len(job.target.values if options.refit else job.train)
    name = options.model or default_model(task)
    if options.rows is not None:
        n = min(n, options.rows)
    if name == "ridge" and _is_low_rank(options, job):
        return Size(options.rows, f"Fitting on {n} rows (a linear kernel, for which no kernel matrix is made) ...")
    room = _most_rows(name)
    most = _MOST_BY_DEFAULT.get(name) if options.model is None and options.rows is None else None
    if most is not None and n > min(most, room or most):
        count = min(_SAMPLE, room or _SAMPLE)
        return Size(
            count,
            f"{n} rows are many for a {name} regression, whose time grows with their cube: it is fitted on {count} of "
            f"them, drawn at random. For more use --rows {2 * count}, or all of them by --model {_FRUGAL[name]}.\n"
            f"{_announcement(count)}",
        )
    if room is not None and n > room:
        tried = FitOptions(**{**vars(options), "rows": min(room, _SAMPLE)})
        raise MemoryBudgetError(
            f"{name} on {n} rows may need {describe(_BYTES[name] * n * n)}, and the memory budget is "
            f"{describe(budget())}, which is enough for {room} rows. Fit it on some of them, drawn at random "
            f"({command_line(tried)}), or all of them by --model {_FRUGAL[name]}."
        )
    return Size(options.rows, _announcement(n))


def _most_rows(name: str) -> int | None:
    """The most rows for which the budget has room, to two digits; None where it does not limit them."""
    if name not in _BYTES:
        return None
    exact = int((budget() / _BYTES[name]) ** 0.5)
    unit = 10 ** max(0, len(str(exact)) - 2)
    return max(2, exact // unit * unit)


def _is_low_rank(options: FitOptions, job: Job) -> bool:
    """Whether the kernel is linear in few columns, for which ridge regression makes no matrix of all pairs."""
    linear = options.kernel is not None and options.kernel.strip() in ("linear", repr(Linear()))
    return linear and 16 * job.schema.encoded_columns <= len(job.train)


def _announcement(n: int) -> str:
    """What the fit has before it."""
    cost = f"Fitting on {n} rows (kernel matrix {describe(8.0 * n * n)}, memory budget {describe(budget())}) ..."
    if n <= _MANY_ROWS:
        return cost
    return f"{cost}\nThe time grows with the square of the rows, or faster, and may be hours; Ctrl-C ends it."
