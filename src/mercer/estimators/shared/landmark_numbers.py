"""``n_landmarks="auto"``: fits with more and more landmarks, until a held-out error no longer falls."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_consistent_length

from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer._types import Positions, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.data.fitted import statements
from mercer.data.seeds import generator
from mercer.engine.progress import Progress
from mercer.engine.settings import current
from mercer.estimators.shared.certificates import warn_if_stopped
from mercer.estimators.shared.landmark_path import LandmarkPath
from mercer.estimators.shared.weights import check_sample_weight
from mercer.solvers.solution import Status

Learner = TypeVar("Learner", bound=Any)

AUTO = "auto"
# The first number of landmarks; each next one is twice the last.
_FIRST = 100
# The share of the rows that are held out, and how many at most: differences of errors are then known well enough.
_SHARE, _MOST = 0.2, 5000
# A smaller share of the loss is not worth twice the landmarks, however certain it is.
_WORTH = 1e-3
# Of fewer rows all are landmarks.
_FEW_ROWS = 50


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

    Each fit starts from the function of the one before.

    Raises
    ------
    ParameterError
        For rows that come in parts.
    MemoryBudgetError
        If the first number does not fit the memory budget.
    """
    if isinstance(X, Blocks) or is_dask(X) or getattr(learner, "checkpoint", None) is not None:
        raise ParameterError(
            "n_landmarks='auto' needs all rows in memory, to hold some of them out, and no checkpoint. Fit with 'auto' "
            "to a sample of the rows, and pass the number that it chose (landmark_path_.chosen)."
        )
    if y is None:
        raise DataError(f"{type(learner).__name__} needs targets, and y is None; pass one for each row of X.")
    checked = clone(learner).checked_rows(X)
    check_consistent_length(X, y)
    weights = check_sample_weight(sample_weight, checked)
    # The same draws in each fit.
    seed = int(generator(learner.random_state).randint(2**31 - 1))
    train, held_out = _split(learner, y, weights, np.random.RandomState(seed))
    n, given = len(train), None if sample_weight is None else weights
    best, path = _follow(learner, X, y, given, train, held_out, seed)
    if path.ending == "interrupted":
        final = _kept(best, train)
    else:
        final = _copy(learner, path.chosen if path.chosen < n else len(weights), seed, best)
        final.fit(X, y, given)
    cls: type = type(learner)
    stated = statements(cls)
    for name in () if stated is None else stated.attributes:
        vars(learner).pop(name, None)
    parameters = final.get_params(deep=False)
    vars(learner).update(
        {name: value for name, value in vars(final).items() if name not in parameters and name != "_continues"}
    )
    learner.landmark_path_ = path
    return learner


def _follow(
    learner: Any, X: Any, y: Any, weights: Vector | None, train: Positions, held_out: Positions, seed: int
) -> tuple[Any, LandmarkPath]:
    """The fit with the number that is chosen, and the path."""
    n, tried, kept = len(train), [], None
    rows = taken(X, train), taken(y, train), None if weights is None else weights[train]
    shares = np.ones(len(held_out)) if weights is None else weights[held_out]
    progress = Progress(None, "numbers of landmarks")
    m, ending, before = _FIRST if len(held_out) else n, "all rows", None
    while True:
        m, start_time = min(m, n), time.perf_counter()
        trial = _copy(learner, m, seed, kept)
        try:
            trial.fit(*rows)
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
        losses = _losses(trial, taken(X, held_out), taken(y, held_out)) if len(held_out) else np.empty(0)
        mean, error = _mean(losses, shares)
        fall, deviation = (np.inf, 0.0) if before is None else _mean(before - losses, shares)
        tried.append((m, mean, deviation if before is not None else 0.0, time.perf_counter() - start_time))
        progress.advance(note=f"{m} landmarks: held-out loss {mean:.5g}")
        if getattr(learner, "verbose", False):
            sys.stderr.write(f"mercer: {m} landmarks: held-out loss {mean:.5g} +- {error:.2g}\n")
        # A first loss that is not finite is no reason to end.
        if before is not None and not fall > max(deviation, _WORTH * mean):
            ending = "no gain"
            break
        kept, before = trial, losses
        if m >= n or ending == "interrupted":
            break
        m *= 2
    numbers, means, deviations, seconds = zip(*tried, strict=True)
    return kept, LandmarkPath(np.array(numbers), np.array(means), np.array(deviations), np.array(seconds), ending)


def _kept(model: Any, train: Positions) -> Any:
    """A fit to some of the rows as the answer: it is not the one that was asked for, and says so."""
    model.certificate_ = replace(model.certificate_, status=Status.interrupted)
    if model.landmark_indices_ is not None:
        model.landmark_indices_ = train[model.landmark_indices_]
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
    if len(used) < _FEW_ROWS:
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
    """The loss of each row."""
    if hasattr(model, "predict_log_proba"):
        codes = np.searchsorted(model.classes_, np.asarray(y).ravel())
        return -np.asarray(model.predict_log_proba(X))[np.arange(len(codes)), codes]
    if is_classifier(model):
        return np.asarray(model.predict(X) != np.asarray(y).ravel(), dtype=np.float64)
    errors = np.asarray(y, dtype=np.float64).reshape(len(y), -1) - np.asarray(model.predict(X)).reshape(len(y), -1)
    return np.asarray((errors**2).sum(axis=1))


def _mean(values: Vector, shares: Vector) -> tuple[float, float]:
    """The weighted mean and its standard error."""
    total = float(shares.sum())
    if not total > 0:
        return np.nan, 0.0
    mean = float(shares @ values) / total
    return mean, float(np.sqrt(((shares * (values - mean)) ** 2).sum())) / total
