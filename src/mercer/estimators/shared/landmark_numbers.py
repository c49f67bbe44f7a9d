"""``n_landmarks="auto"``: fits with more and more landmarks, until a held-out error no longer falls."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_consistent_length

from mercer._errors import DataError, LatestWarnings, MemoryBudgetError, ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.data.blocks.hold_out import HeldOutRows
from mercer.data.seeds import generator
from mercer.engine.progress import Progress
from mercer.engine.settings import current
from mercer.estimators.shared.base import adopt
from mercer.estimators.shared.certificates import warn_if_stopped
from mercer.estimators.shared.expansion import values_of
from mercer.estimators.shared.landmark_path import FEW_ROWS, LandmarkPath
from mercer.estimators.shared.on_blocks import refuse_sides
from mercer.estimators.shared.weights import check_sample_weight
from mercer.losses import Loss, Quantile
from mercer.solvers.solution import Status

Learner = TypeVar("Learner", bound=Any)

AUTO = "auto"
# The first number of landmarks; each next one is twice the last.
_FIRST = 100
# The share of the rows that are held out, and how many at most: differences of errors are then known well enough.
_SHARE, _MOST = 0.2, 5000
# A smaller share of the loss is not worth twice the landmarks, however certain it is.
_WORTH = 1e-3


def is_left_open(learner: Any) -> bool:
    """Whether the number of landmarks is to be chosen; an earlier choice is forgotten.

    Raises
    ------
    ParameterError
        If it is to be chosen for given landmarks.
    """
    vars(learner).pop("landmark_path_", None)
    if not (learner.is_on_landmarks and isinstance(learner.n_landmarks, str) and learner.n_landmarks == AUTO):
        return False
    if not isinstance(learner.landmarks, str):
        raise ParameterError(
            "n_landmarks='auto' chooses how many landmarks there are, and landmarks are given already; leave out "
            "n_landmarks, or pass the name of a method as landmarks."
        )
    return True


def fit_along_numbers(learner: Learner, X: Any, y: Any, sample_weight: Any) -> Learner:
    """Choose the number of landmarks on held-out rows, fit to all rows with it, and return the learner.

    Each fit starts from the function of the one before. Of blocks the rows are drawn in one pass. A warning of several
    fits is given once.

    Raises
    ------
    ParameterError
        For collections of Dask, and with a checkpoint.
    MemoryBudgetError
        If the first number does not fit the memory budget.
    """
    if is_dask(X):
        raise ParameterError(
            "n_landmarks='auto' holds rows out, which it does not for collections of Dask. Pass "
            "mercer.Blocks.from_dask(X, y), whose rows are read on this machine, or a number."
        )
    if getattr(learner, "checkpoint", None) is not None:
        raise ParameterError(
            "n_landmarks='auto' makes several fits, and a checkpoint is that of one. Leave it out, or pass the number "
            "that a fit to a sample of the rows has chosen (landmark_path_.chosen)."
        )
    # The same draws in each fit.
    seed = int(generator(learner.random_state).randint(2**31 - 1))
    random = np.random.RandomState(seed)
    rows = _of_blocks(learner, X, y, sample_weight, random) if isinstance(X, Blocks) else None
    with LatestWarnings():
        rows = rows or _of_arrays(learner, X, y, sample_weight, random)
        best, path = _follow(learner, rows, seed)
        if path.ending == "interrupted":
            final = _kept(best, rows)
        else:
            final = _copy(learner, path.chosen if path.chosen < rows.n else rows.total, seed, best)
            final.fit(*rows.whole)
    adopt(learner, final)
    learner.landmark_path_ = path
    return learner


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows, and those that fits with different numbers learn from and are judged by.

    Parameters
    ----------
    whole, train : tuple
        The arguments of ``fit``.
    total, n : int
        Rows of the two.
    held_out : tuple
        Rows and targets.
    shares : ndarray
        Their weights.
    positions : ndarray or None
        Where the rows of ``train`` are among all, where that is known.
    """

    whole: tuple[Any, ...]
    train: tuple[Any, ...]
    total: int
    n: int
    held_out: tuple[Any, Any]
    shares: Vector
    positions: Positions | None = None


def _of_arrays(learner: Any, X: Any, y: Any, sample_weight: Any, random: np.random.RandomState) -> _Rows:
    """Rows in memory."""
    if y is None:
        raise DataError(f"{type(learner).__name__} needs targets, and y is None; pass one for each row of X.")
    checked = clone(learner).checked_rows(X)
    check_consistent_length(X, y)
    weights = check_sample_weight(sample_weight, checked)
    train, held = _split(learner, y, weights, random)
    given = None if sample_weight is None else weights
    return _Rows(
        (X, y, given),
        (taken(X, train), taken(y, train), None if given is None else given[train]),
        len(weights),
        len(train),
        (taken(X, held), taken(y, held)),
        np.ones(len(held)) if given is None else given[held],
        train,
    )


def _of_blocks(learner: Any, blocks: Blocks, y: Any, sample_weight: Any, random: np.random.RandomState) -> _Rows:
    """Rows in blocks, of which those held out are in memory."""
    refuse_sides(learner, y, sample_weight)
    rows = HeldOutRows.of(blocks, _SHARE, _MOST, random, labels=is_classifier(learner))
    held = rows.sample
    if held.y is None:
        raise DataError(f"{type(learner).__name__} needs targets, and {blocks!r} has none; name them with target=....")
    if rows.used < FEW_ROWS:
        rows = replace(rows, positions=rows.positions[:0])
        held = held.take(slice(0))
    weights = np.ones(held.rows) if held.sample_weight is None else held.sample_weight
    n = rows.used - held.rows
    return _Rows((blocks,), (rows.others(),), rows.used, n, (held.X, held.y), weights)


def _follow(learner: Any, rows: _Rows, seed: int) -> tuple[Any, LandmarkPath]:
    """The fit with the number that is chosen, and the path."""
    n, tried, kept = rows.n, [], None
    is_judged = len(rows.shares) > 0
    progress = Progress(None, "numbers of landmarks")
    m, ending, before = _FIRST if is_judged else n, "all rows", None
    while True:
        m, start_time = min(m, n), time.perf_counter()
        trial = _copy(learner, m, seed, kept)
        try:
            trial.fit(*rows.train)
        except MemoryBudgetError:
            if kept is None:
                raise
            ending = "memory"
            break
        except KeyboardInterrupt:
            if kept is None or current().on_interrupt != "keep":
                raise
            ending = "interrupted"
            break
        if trial.certificate_.status is Status.interrupted:
            ending = "interrupted"
            if kept is not None:
                break
        losses = _losses(trial, *rows.held_out) if is_judged else np.empty(0)
        mean, error = _mean(losses, rows.shares)
        fall, deviation = (np.inf, 0.0) if before is None else _mean(before - losses, rows.shares)
        tried.append((m, mean, deviation if before is not None else 0.0, time.perf_counter() - start_time))
        loss = f"held-out loss {mean:.5g}" if is_judged else "all rows"
        progress.advance(note=f"{m} landmarks: {loss}")
        if getattr(learner, "verbose", False):
            sys.stderr.write(f"mercer: {m} landmarks: {loss}" + (f" +- {error:.2g}\n" if is_judged else "\n"))
        # A first loss that is not finite does not end the search.
        if before is not None and not fall > max(deviation, _WORTH * mean):
            ending = "no gain"
            break
        kept, before = trial, losses
        if m >= n or ending == "interrupted":
            break
        m *= 2
    numbers, means, deviations, seconds = zip(*tried, strict=True)
    return kept, LandmarkPath(np.array(numbers), np.array(means), np.array(deviations), np.array(seconds), ending)


def _kept(model: Any, rows: _Rows) -> Any:
    """A fit to some of the rows as the answer: it is not the requested one, and a warning says so."""
    model.certificate_ = replace(model.certificate_, status=Status.interrupted)
    if model.landmark_indices_ is not None and rows.positions is not None:
        model.landmark_indices_ = rows.positions[model.landmark_indices_]
    warn_if_stopped(model)
    return model


def _copy(learner: Any, m: int, seed: int, before: Any) -> Any:
    """An unfitted copy with m landmarks, which starts from another fit."""
    copied = clone(learner).set_params(n_landmarks=m, random_state=seed)
    copied._continues = None if before is None else before._expansion
    return copied


def _split(learner: Any, y: Any, weights: Vector, random: np.random.RandomState) -> tuple[Positions, Positions]:
    """Positions of rows to learn from and of rows that are held out; of classes, the same share of each."""
    used = np.flatnonzero(weights)
    if len(used) < FEW_ROWS:
        return used, used[:0]
    share = min(_SHARE, _MOST / len(used))
    mixed = used[random.permutation(len(used))]
    if not is_classifier(learner):
        held = mixed[: int(share * len(mixed))]
    else:
        labels = np.asarray(y).ravel()[mixed]
        _, codes = np.unique(labels, return_inverse=True)
        groups = [mixed[codes == code] for code in range(int(codes.max()) + 1)]
        held = np.concatenate([group[: int(share * len(group))] for group in groups])
    return np.setdiff1d(used, held), np.sort(held)


def taken(rows: Any, positions: Positions) -> Any:
    """Some rows of an array, a sparse matrix, a data frame or a sequence.

    >>> taken(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[positions]
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    return rows[positions] if hasattr(rows, "shape") else [rows[position] for position in positions]


def _losses(model: Any, X: Any, y: Any) -> Vector:
    """The loss of each row; that of the problem, where the learner states it as a loss."""
    if hasattr(model, "quantiles_"):
        levels = [Quantile(float(level)) for level in model.quantiles_]
        return _sum_of(levels, [np.asarray(y, dtype=np.float64).ravel()] * len(levels), values_of(model, X))
    if isinstance(getattr(model, "loss_", None), Loss):
        columns = _signs(model.classes_, y) if is_classifier(model) else [np.asarray(y, dtype=np.float64).ravel()]
        return _sum_of([model.loss_] * len(columns), columns, values_of(model, X))
    if hasattr(model, "predict_log_proba"):
        codes = np.searchsorted(model.classes_, np.asarray(y).ravel())
        return -np.asarray(model.predict_log_proba(X))[np.arange(len(codes)), codes]
    if is_classifier(model):
        return np.asarray(model.predict(X) != np.asarray(y).ravel(), dtype=np.float64)
    errors = np.asarray(y, dtype=np.float64).reshape(len(y), -1) - np.asarray(model.predict(X)).reshape(len(y), -1)
    return np.asarray((errors**2).sum(axis=1))


def _signs(classes: Any, y: Any) -> list[Vector]:
    """Labels as signs: one column for two classes, else each class against the rest."""
    labels = np.asarray(y).ravel()
    return [np.where(labels == label, 1.0, -1.0) for label in (classes[1:] if len(classes) == 2 else classes)]


def _sum_of(losses: list[Any], columns: list[Vector], values: Matrix) -> Vector:
    """The sum over the functions of a model, (n,)."""
    each = [loss.value(y, values[:, j]) for j, (loss, y) in enumerate(zip(losses, columns, strict=True))]
    return np.asarray(np.sum(each, axis=0))


def _mean(values: Vector, shares: Vector) -> tuple[float, float]:
    """The weighted mean and its standard error."""
    total = float(shares.sum())
    if not total > 0:
        return np.nan, 0.0
    mean = float(shares @ values) / total
    return mean, float(np.sqrt(((shares * (values - mean)) ** 2).sum())) / total
