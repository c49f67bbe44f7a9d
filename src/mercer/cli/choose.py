"""Parameters that the user does not set, chosen before the fit: the penalty, and the width of the default kernel.

Ridge regression chooses by exact leave-one-out, support vector machines by folds; both on a sample of the training
rows, so that the choice takes a few seconds at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from mercer._registered import command_line_of, model_class
from mercer._types import Matrix
from mercer.cli.job import Job
from mercer.data.column_statistics import variance_of_entries
from mercer.data.feature_table import FeatureTable
from mercer.data.target import Target
from mercer.engine.progress import Progress
from mercer.engine.threads import one_blas_thread
from mercer.estimators.table import Prepared, TableModel
from mercer.estimators.table_kernels import by_position, place, text_kernels
from mercer.kernels import Kernel

# Factors of the width that the learner takes by default; among equal scores the nearest to it is taken.
_WIDTHS = (1.0, 1 / 4, 4.0, 1 / 16, 1 / 64)
_PENALTIES = (1.0, 10.0, 0.1, 100.0)
# The widths are compared at this penalty, and the penalties at the best width: of eight data sets the whole grid
# gave at most 0.004 more accuracy, for three times the work.
_PENALTY_OF_WIDTHS = 10.0
_ROWS = 1000
# A kernel on strings, graphs or series may take milliseconds for a pair of rows.
_ROWS_OF_OBJECTS = 300
# The substrings of text are counted, which is quick; among fewer rows, long ones are too seldom shared. As few rows as
# leave-one-out warns of choose by luck.
_ROWS_OF_TEXT, _FEWEST_OF_TEXT = 600, 6
_FOLDS = 5
# More classes are many pairs to solve: three folds are enough, and separate fits are quicker than a path, pair by pair.
_FEW_CLASSES = 3
_FOLDS_OF_MANY_CLASSES = 3

# Over landmarks: with fewer rows defaults stand; entries of the sample that are looked at, of wide tables fewer rows.
_FEWEST, _ENTRIES, _LANDMARKS = 40, 1_000_000, 400
_ALPHAS = 10.0 ** np.arange(-2.0, 4.5, 0.5)
# The parameter that a model without one learns itself.
_PENALTY = {"ridge": "alpha", "logistic": "C", "svc": "C", "svr": "C"}
_OF_KERNELS = ("kernel", "gamma", "degree", "coef0")

_Rows = NDArray[np.intp]


def choose(model: TableModel, job: Job, parameters: Mapping[str, Any], seed: int) -> str | None:
    """Set the parameters of ``model`` that the user left open; return what was chosen and how, or None.

    The width is open if neither a kernel nor ``gamma`` is given, and the penalty if it is not given; with a given
    penalty the width stays at its default.
    """
    left_open = command_line_of(type(model.estimator)).left_open
    width_is_open = not {"kernel", "gamma"} & set(parameters)
    if left_open is None:
        return None
    # The learner warns about its data when it is fitted to all of them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = _spectrum(model, job, seed)
        if left_open in parameters:
            return kernel
        way = _by_leave_one_out if left_open == "alpha" else _by_folds
        penalty = way(model, job, width_is_open, seed)
    return "; ".join(words for words in (kernel, penalty) if words is not None) or None


def _spectrum(model: TableModel, job: Job, seed: int) -> str | None:
    """Choose which substrings of a text count, if it is the only column and the user names no kernel.

    That is by the squared errors of left-out rows in ridge regression, of labels on their indicators: one decomposition
    of each Gram matrix.
    """
    if job.default_kernel is None or list(job.schema.roles.values()) != ["text"] or len(job.schema.kinds) > 1:
        return None
    some = job.sample(job.train, _ROWS_OF_TEXT, seed)
    prepared = model.prepared(job.rows(some), job.target.values[some], schema=job.schema)
    y = prepared.target
    targets = (y[:, None] == np.unique(y)).astype(np.float64) if is_classifier(model.estimator) else y[:, None]
    targets = targets - targets.mean(axis=0)
    if len(some) < _FEWEST_OF_TEXT or not np.ptp(targets):
        return None
    kernels, errors = text_kernels(), []
    progress = Progress(len(kernels), "choosing the kernel")
    with one_blas_thread():
        for kernel in kernels:
            placed = by_position(place(kernel, job.schema), prepared.encoder.sources_)
            K = placed.with_data(prepared.rows)(prepared.rows)
            path = model_class("ridge", "regression")("loo", kernel="precomputed").fit(K, targets).path_
            assert path.loo is not None
            errors.append(float(path.loo.min()))
            progress.advance()
    model.estimator.set_params(kernel=place(kernels[int(np.argmin(errors))], job.schema))
    return f"its substrings among {len(kernels)} choices by exact leave-one-out on {len(some)} rows"


def _by_leave_one_out(model: TableModel, job: Job, width_is_open: bool, seed: int) -> str | None:
    """For each width one factorisation serves all penalties."""
    some = job.sample(job.train, _ROWS, seed)
    X, y = job.rows(some), job.target.values[some]
    if np.ptp(y) == 0:
        return None
    prepared = model.prepared(X, y, schema=job.schema)
    _, best = _least_error(prepared, job.schema.encoded_columns if width_is_open else None)
    model.estimator.set_params(**best)
    return words_of_choice(best, "exact leave-one-out", len(some))


def _least_error(prepared: Prepared, columns: int | None) -> tuple[float, dict[str, float]]:
    """The least error of left-out rows, and its penalty and, of so many columns, width; no width for None."""
    widths: list[dict[str, float]] = [{}] if columns is None else [{"gamma": factor / columns} for factor in _WIDTHS]
    trials: list[tuple[float, dict[str, float]]] = []
    progress = Progress(len(widths), "choosing alpha")
    # On matrices this small several threads gain nothing, and on a busy machine they wait for one another.
    with one_blas_thread():
        for width in widths:
            fitted = clone(prepared.estimator).set_params(alpha="loo", **width).fit(prepared.rows, prepared.target)
            trials.append((float(fitted.path_.loo.min()), {"alpha": fitted.alpha_, **width}))
            progress.advance()
    return min(trials, key=lambda pair: pair[0])


def choose_over_landmarks(
    table: FeatureTable, job: Job, parameters: Mapping[str, Any], seed: int
) -> tuple[dict[str, float], str | None]:
    r"""Return the parameters that the user left open, for a fit over landmarks, and what was chosen and how.

    They are those of ridge regression over landmarks, of labels on their indicators, with the least error of left-out
    rows. With the variance v of an indicator, the log loss has the second derivative v, and the penalty
    :math:`\lambda` of least squares stands for :math:`C = 1 / (\lambda v)`. The hinge and the epsilon-insensitive
    loss have slopes alone: of size 1, where half the squared loss has :math:`r / \lambda` at a residual r, so that
    with their root mean square :math:`C = r / \lambda`. A Gaussian process learns its kernel and its noise.

    Parameters
    ----------
    table : FeatureTable
        The fitted encoding.
    job : Job
        Of a sample of the rows to learn from.
    parameters : dict
        Given by the user.
    seed : int
    """
    name, is_open = _PENALTY.get(job.model), not {"kernel", "gamma"} & set(parameters)
    targets, variance = _contrasts(job.target)
    if name is None or len(targets) < _FEWEST or not targets.any() or (name in parameters and not is_open):
        return {}, None
    some = job.sample(job.train, max(_FEWEST, _ENTRIES // job.columns.shape[1]), seed)
    rows, given = table.transform(job.rows(some)), {n: parameters[n] for n in _OF_KERNELS if n in parameters}
    ridge = model_class("ridge", "regression")(alphas=_ALPHAS, **{"kernel": "rbf", **given})
    kernel = ridge.kernel_for(rows)
    if kernel is None or kernel.definiteness != "positive":
        # The fit will reject it.
        return {}, None
    ridge.set_params(approximation="nystroem", n_landmarks=min(_LANDMARKS, len(some)), random_state=seed)
    error, best = _least_error(Prepared(table, ridge, rows, targets[some]), rows.shape[1] if is_open else None)
    penalty = best.pop("alpha")
    if is_open and error > 1.0 - len(some) ** -0.5:
        # Not certainly better than the mean: a function that stays close to that.
        penalty = float(_ALPHAS[-1])
    if name not in parameters:
        # Of labels -1 and 1 the standard deviation is twice that of the indicator.
        slope = {"svc": 2.0 * np.sqrt(variance * error), "svr": np.sqrt(error), "logistic": 1.0 / variance}
        best[name] = penalty if job.model == "ridge" else float(slope[job.model]) / penalty
    return best, words_of_choice(best, "leave-one-out over landmarks", len(some))


def _contrasts(target: Target) -> tuple[Matrix, float]:
    """Targets (n, t) as least squares takes them, and the variance of an indicator of a class, 1 for numbers."""
    if target.task == "regression":
        return ((target.values - target.values.mean()) / (target.values.std() or 1.0))[:, None], 1.0
    classes, codes = np.unique(target.values, return_inverse=True)
    indicators = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    indicators = indicators[:, 1:] if len(classes) == 2 else indicators
    shares = indicators.mean(axis=0)
    variance = float(np.mean(shares * (1.0 - shares))) or 1.0
    return (indicators - shares) / np.sqrt(variance), variance


def _by_folds(model: TableModel, job: Job, width_is_open: bool, seed: int) -> str | None:
    """The width at one penalty, and then the penalty at that width."""
    count = _ROWS if _on_vectors(model.estimator.kernel) else _ROWS_OF_OBJECTS
    some = job.sample(job.train, count, seed)
    prepared = model.prepared(job.rows(some), job.target.values[some], schema=job.schema)
    rows, estimator = prepared.rows, prepared.estimator
    parts = _parts(is_classifier(estimator), prepared.target, seed)
    if not parts:
        return None
    if not _on_vectors(estimator.kernel):
        if estimator.kernel.definiteness != "positive":
            return None
        # Evaluated once for all folds and penalties.
        rows, estimator = estimator.kernel.with_data(rows)(rows), clone(estimator).set_params(kernel="precomputed")
    progress = Progress(len(parts) * (1 + len(_WIDTHS) * width_is_open), "choosing C")
    folds = _Folds(rows, prepared.target, parts, progress)
    best: dict[str, float] = {}
    with one_blas_thread():
        if width_is_open:
            widths = [factor * _rate(rows) for factor in _WIDTHS]
            candidates = [clone(estimator).set_params(gamma=width, C=_PENALTY_OF_WIDTHS) for width in widths]
            best = {"gamma": widths[int(np.argmax([folds.scores(each, [each.C])[0] for each in candidates]))]}
        scored = folds.scores(clone(estimator).set_params(**best), _PENALTIES)
    best = {"C": _PENALTIES[int(np.argmax(scored))], **best}
    model.estimator.set_params(**best)
    return words_of_choice(best, f"{len(parts)} folds", len(some))


def words_of_choice(best: Mapping[str, float], how: str, rows: int) -> str:
    """What was chosen, how, and on how many rows."""
    values = ", ".join(f"{name}={value:.4g}" for name, value in best.items())
    return f"{values} by {how} on {rows} rows; set them with --set"


def _on_vectors(kernel: Any) -> bool:
    return not isinstance(kernel, Kernel) or kernel.kind_of_rows() == "vectors"


def _parts(classes: bool, y: NDArray[Any], seed: int) -> list[tuple[_Rows, _Rows]]:
    """Training and test rows of each fold; none where a training part would lack a second class."""
    if not classes:
        return list(KFold(min(_FOLDS, len(y)), shuffle=True, random_state=seed).split(y)) if np.ptp(y) > 0 else []
    counts = np.sort(np.unique(y, return_counts=True)[1])
    if len(counts) < 2 or counts[-2] < 2:
        return []
    count = int(min(_FOLDS if len(counts) <= _FEW_CLASSES else _FOLDS_OF_MANY_CLASSES, counts[-1]))
    return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def _rate(X: Any) -> float:
    """``1 / (d variance(X))``, which is ``gamma="scale"``."""
    variance = variance_of_entries(X)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


@dataclass(frozen=True)
class _Folds:
    """Rows or their kernel matrix, the target, the training and test rows of each fold, and who counts the folds."""

    rows: Any
    target: NDArray[Any]
    parts: list[tuple[_Rows, _Rows]]
    progress: Progress

    def scores(self, estimator: Any, Cs: Sequence[float]) -> list[float]:
        """For each C the right answers in all folds, or minus the sum of squared errors."""
        total = np.zeros(len(Cs))
        for train, test in self.parts:
            X, Z = self.rows[train], self.rows[test]
            if estimator.kernel == "precomputed":
                X, Z = X[:, train], Z[:, train]
            y = self.target[test]
            for rank, fitted in enumerate(_path(estimator, X, self.target[train], Cs)):
                predicted = fitted.predict(Z)
                total[rank] += (predicted == y).sum() if is_classifier(estimator) else -((predicted - y) ** 2).sum()
            self.progress.advance()
        return list(total)


def _path(estimator: Any, X: Any, y: NDArray[Any], Cs: Sequence[float]) -> Iterator[Any]:
    if len(Cs) > 1 and (not is_classifier(estimator) or len(np.unique(y)) <= _FEW_CLASSES):
        # As svm_path does it; mercer.selection would load every learner that it knows.
        ascending = sorted(Cs)
        by_penalty = dict(zip(ascending, estimator.fit_along("C", ascending, X, y), strict=True))
        yield from (by_penalty[C] for C in Cs)
    else:
        yield from (clone(estimator).set_params(C=C).fit(X, y) for C in Cs)
