"""What a fit will cost: memory, kernel values and time, and what would fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._registered import command_line_of
from mercer.costs.speed import Speed
from mercer.costs.ways import Case, Way, landmark_bytes, ways_of
from mercer.data.blocks.blocks import Blocks
from mercer.engine import memory, settings
from mercer.estimators.shared.on_blocks import count_of
from mercer.gram import Gram

# Rows on which the kernel is timed.
_ROWS = 512
# More rows than anybody has.
_NO_END = 2**40


@dataclass(frozen=True)
class Estimate:
    """What a fit will cost; see :func:`estimate`.

    Attributes
    ----------
    learner : str
        Name of the class.
    n, d : int
        Rows and columns.
    way : str
        How the learner would solve the problem within the memory budget.
    nbytes : int
        The most memory that it holds at once, beside the data.
    budget : int
        How much of the memory budget is left.
    kernel_values : int
        How many are evaluated: ``values_before`` and ``passes`` times ``values_of_pass``.
    values_before, values_of_pass : int
        Kernel values that are evaluated once, and in each pass over the rows or product with the matrix.
    passes : int
        How many passes a typical fit takes; 0 for none.
    seconds : float or None
        On ``threads`` threads of this machine; None if it cannot be estimated.
    threads : int
    most_rows : int or None
        The largest n that would fit, whatever time it takes; None if memory does not grow with n.
    most_landmarks : int or None
        The largest number of landmarks for these rows that would fit; None for learners without them.
    others : tuple of (str, int)
        The other ways of the learner, with their bytes.
    note : str
        What the figures do not cover.
    """

    learner: str
    n: int
    d: int
    way: str
    nbytes: int
    budget: int
    values_before: int
    values_of_pass: int
    passes: int
    seconds: float | None
    threads: int
    most_rows: int | None
    most_landmarks: int | None
    others: tuple[tuple[str, int], ...] = ()
    note: str = ""

    @property
    def fits(self) -> bool:
        """Whether the memory suffices."""
        return self.nbytes <= self.budget

    @property
    def kernel_values(self) -> int:
        """How many kernel values are evaluated."""
        return self.values_before + self.passes * self.values_of_pass

    def __repr__(self) -> str:
        rows = [
            ("way", self.way),
            (
                "memory",
                f"{memory.describe(self.nbytes)} of {memory.describe(self.budget)}, which "
                f"{'fits' if self.fits else 'does not fit'}",
            ),
            ("kernel values", self._values()),
            ("time", "not known" if self.seconds is None else f"about {in_words(self.seconds)}, {self._threads()}"),
            ("at most", self._limits()),
            *(("or", f"{name}: {memory.describe(nbytes)}") for name, nbytes in self.others),
        ]
        if self.note:
            rows.append(("note", self.note))
        head = f"{self.learner} on {self.n:,} rows" + (f" with {self.d:,} columns" if self.d else "")
        return "\n".join([head, *(f"  {name:<14}{value}" for name, value in rows)])

    def _values(self) -> str:
        if not self.passes:
            return f"{self.kernel_values:,}"
        return f"{self.kernel_values:,}, of which {self.values_of_pass:,} in each of about {self.passes} passes"

    def _threads(self) -> str:
        return "one thread" if self.threads == 1 else f"{self.threads} threads"

    def _limits(self) -> str:
        rows = "any number of rows" if self.most_rows is None else f"{self.most_rows:,} rows"
        return rows if self.most_landmarks is None else f"{rows}; {self.most_landmarks:,} landmarks for these"


def estimate(model: Any, X: Any, y: Any = None) -> Estimate:
    """Estimate what a fit of a model will cost, without a fit.

    Memory follows from what the solvers reserve, and kernel values from the algorithm. Seconds follow from a few tiles
    of the model's own kernel that are timed on one thread, and from what more threads gain in a product with a kernel
    matrix and in a factorisation, which is timed once for each number of threads. Steps that only one thread can take
    are not divided.

    Parameters
    ----------
    model : estimator
        Unfitted, or fitted; it is not changed.
    X : array-like, sparse matrix, objects or Blocks, or tuple (n, d)
        The rows, a few of which are used; or the shape of data that do not exist yet.
    y : array-like of shape (n,) or (n, t), optional
        Gives the number of classes or targets; by default two classes, or one target.

    Returns
    -------
    Estimate

    Raises
    ------
    ParameterError
        If the model is not one of Mercer's learners, or a parameter has an invalid value.
    DataError
        If a fit could not use the rows.

    Notes
    -----
    ``seconds`` assume that as many threads are free as at the first estimate, and of iterative methods a typical number
    of passes: they are right within a factor of about three. Peaks of memory are those of arrays that the memory budget
    counts.

    Examples
    --------
    >>> from mercer import KernelRidge, config, estimate
    >>> with config(memory="1GiB", n_jobs=1):
    ...     whole = estimate(KernelRidge(kernel="rbf", solver="cholesky"), (100_000, 10))
    ...     some = estimate(KernelRidge(kernel="rbf", approximation="nystroem"), (100_000, 10))
    >>> whole.fits, whole.nbytes, whole.most_rows
    (False, 40000000000, 16384)
    >>> some.fits, some.values_of_pass
    (True, 100000000)
    """
    is_learner = hasattr(model, "kernel") or command_line_of(type(model)).raw
    if not hasattr(model, "get_params") or not hasattr(model, "fit") or not is_learner:
        raise ParameterError(
            f"estimate needs a learner of Mercer with a kernel, such as KernelRidge(), but got {type(model).__name__}."
        )
    return _estimated(model, *_case(model, X, y))


def estimate_for(model: Any, X: Any, y: Any, n: int) -> Estimate:
    """The same for n rows of which ``X`` and ``y`` are a sample.

    Parameters
    ----------
    model, X, y
        As for :func:`estimate`.
    n : int

    Returns
    -------
    Estimate
    """
    case, rows = _case(model, X, y)
    return _estimated(model, case.of_rows(n), rows)


def _estimated(model: Any, case: Case, rows: Any) -> Estimate:
    kernel = None
    if hasattr(model, "kernel_for"):
        rows = model.checked_rows(rows)
        kernel = model.kernel_for(rows)
    if kernel is not None:
        gram = Gram(kernel, rows, dtype=np.float32)
        costly = gram.expensive or (gram.width >= 32 and case.n <= 12_288)
        case = replace(case, cheap=gram.cheap, costly=costly, definite=kernel.definiteness == "positive")
        # Other rows of objects have other counted features.
        features = gram.explicit_features(case.n) if case.d else None
        if features is not None:
            m, p = features.shape
            entries, row_bytes = features.entries / m, features.nbytes / m
            case = replace(case, features=p, entries=entries, is_sparse=features.is_sparse, row_bytes=row_bytes)
    ways = ways_of(model, case)
    room = memory.budget()
    taken = next((way for way in ways if way.nbytes <= room), min(ways, key=lambda way: way.nbytes))
    workers = settings.current().n_jobs if getattr(model, "n_jobs", None) is None else model.n_jobs
    workers = settings.resolve_jobs(workers)
    given = kernel is None and hasattr(model, "kernel_for")
    seconds = Speed.of(kernel, rows, workers).seconds(taken, case.n) if taken.known else None
    return Estimate(
        learner=type(model).__name__,
        n=case.n,
        d=case.d,
        way=taken.name,
        nbytes=int(taken.nbytes),
        budget=int(room),
        values_before=0 if given else int(taken.before),
        values_of_pass=0 if given else int(taken.a_pass),
        passes=taken.passes,
        seconds=None if seconds is None else clean(seconds),
        threads=workers,
        most_rows=most(lambda n: _least(ways_of(model, case.of_rows(n))), room),
        most_landmarks=_most_landmarks(model, case, room),
        others=tuple((way.name, int(way.nbytes)) for way in ways if way is not taken),
        note=taken.note,
    )


def _least(ways: list[Way]) -> int:
    return min(way.nbytes for way in ways)


def _most_landmarks(model: Any, case: Case, room: float) -> int | None:
    if not case.landmarks:
        return None
    largest = most(lambda m: landmark_bytes(model, replace(case, landmarks=m)), room)
    return case.n if largest is None else min(case.n, largest)


def _case(model: Any, X: Any, y: Any) -> tuple[Case, Any]:
    """The size of a fit, and a few of its rows."""
    if isinstance(X, tuple) and len(X) == 2 and all(isinstance(side, Integral) for side in X):
        n, d = int(X[0]), int(X[1])
        if min(n, d) < 1:
            raise DataError(f"estimate needs a shape of at least one row and one column, but got {X}.")
        rows: Any = np.random.default_rng(0).standard_normal((min(n, _ROWS), d))
    elif isinstance(X, Blocks):
        first = next(iter(X))
        n, d, rows = X.n, X.d, first.X[:_ROWS]
        y = first.y if y is None else y
    else:
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        rows = X.iloc if hasattr(X, "iloc") else X
        rows = rows[:: max(1, n // _ROWS)][:_ROWS]
        if getattr(model, "kernel", None) == "precomputed":
            rows = np.asarray(X)[: len(rows), : len(rows)]
        d = int(X.shape[1]) if getattr(X, "ndim", 1) == 2 else 0
    landmarks = count_of(model) if hasattr(model, "landmarks") else 0
    case = Case(n, d, landmarks=landmarks, blocks=isinstance(X, Blocks))
    if y is None:
        return case, rows
    targets = np.asarray(y)
    if getattr(model, "_estimator_type", "") != "classifier" and not hasattr(model, "classes_") and targets.ndim == 2:
        case = replace(case, targets=targets.shape[1])
    if targets.ndim == 1 and len(targets):
        counts = np.unique(targets, return_counts=True)[1] if _is_classifier(model) else ()
        case = replace(case, classes=tuple(max(1, round(n * int(count) / len(targets))) for count in counts))
    return case, rows


def _is_classifier(model: Any) -> bool:
    return hasattr(type(model), "predict_proba") or hasattr(type(model), "decision_function")


def in_words(seconds: float) -> str:
    """Return seconds as text.

    >>> in_words(0.013), in_words(75.0), in_words(9000.0)
    ('0.013 s', '1 min 15 s', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s"
    if seconds < 3600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    return f"{seconds / 3600:.1f} h"


def most(nbytes: Callable[[int], float], room: float) -> int | None:
    """The largest number whose ``nbytes``, which grow with it, fit ``room``; None if there is no end, 0 for none.

    >>> most(lambda n: 8 * n * n, 8_000_000), most(lambda n: 8, 10), most(lambda n: 8, 1)
    (1000, None, 0)
    """
    if nbytes(1) > room:
        return 0
    end = 1
    while nbytes(2 * end) <= room:
        end *= 2
        if end > _NO_END:
            return None
    begin, end = end, 2 * end
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (middle, end) if nbytes(middle) <= room else (begin, middle)
    return begin


def clean(value: float) -> float:
    """A number of seconds with two digits.

    >>> clean(12.345), clean(0.0)
    (12.0, 0.0)
    """
    return 0.0 if value == 0 else round(value, 1 - math.floor(math.log10(abs(value))))
