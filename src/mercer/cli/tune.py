"""The search of ``mercer tune`` and ``mercer fit --tune``: sets the best parameters, and says how sure they are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer.cli.job import Job
from mercer.cli.options import FitOptions
from mercer.data.words import shown
from mercer.estimators.table import TableModel
from mercer.estimators.table_kernels import by_name, by_position, place
from mercer.kernels import Kernel
from mercer.selection.failures import AllFailedError
from mercer.selection.kernel_search import KernelSearchCV

# Candidates that are printed and kept in the model file.
_SHOWN = 8
# Of a mean of scores.
_ROUNDING = 1e-12


def search(model: TableModel, job: Job, options: FitOptions, rows: np.ndarray) -> dict[str, Any]:
    """Search on some rows of the training part, and set the best parameters of ``model``.

    Returns
    -------
    dict
        What was searched, the best candidates with their intervals, and why the search ended, as plain values.

    Raises
    ------
    DataError
        If there are too few rows of a class for the folds, or the log is that of another search.
    ParameterError
        If there is nothing to search.
    """
    assert options.tune is not None
    prepared = model.prepared(job.rows(rows), job.target.values[rows], schema=job.schema)
    sources = prepared.encoder.sources_
    kernels = [by_position(place(k, job.schema), sources) for k in job.kernels] if len(job.kernels) > 1 else None
    estimator = prepared.estimator
    if kernels is not None:
        estimator = clone(estimator).set_params(kernel=kernels[0])
    classes = is_classifier(estimator)
    folds = _folds(classes, prepared.target, options)
    searching = KernelSearchCV(
        estimator,
        kernels=kernels,
        cv=folds,
        time_budget=options.tune,
        random_state=options.seed,
        refit=False,
        n_jobs=options.n_jobs,
        log=options.log,
    )
    with warnings.catch_warnings():
        # The least populated class may have fewer rows than there are folds: that is not the user's fault.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        # Reported below, with the option that gives the time.
        warnings.filterwarnings("ignore", "KernelSearchCV ended after one candidate", MercerWarning)
        try:
            searching.fit(prepared.rows, prepared.target)
        except AllFailedError as error:
            if not options.settings:
                raise
            # A value of --set that no candidate can be fitted with.
            settings = ", ".join(options.settings)
            raise ParameterError(f"{type(estimator).__name__} cannot be searched with {settings}: {error}") from error
    stop = searching.stop_reason_.replace("time_budget", options.time_option)
    if stop != searching.stop_reason_:
        warn_user(f"the search ended after one candidate: {stop.removeprefix('budget: ')}", MercerWarning)
    best = dict(searching.best_params_)
    if isinstance(best.get("kernel"), Kernel):
        best["kernel"] = by_name(best["kernel"], sources)
    model.estimator.set_params(**best)
    return {**_summary(searching, sources), "stop": stop, "metric": "accuracy" if classes else "r2", "rows": len(rows)}


def _folds(classes: bool, y: np.ndarray, options: FitOptions) -> Any:
    n, most = len(y), options.folds
    if not classes:
        # R^2 needs two held-out rows.
        if n < 2 * most:
            way_out = f"pass --folds {n // 2}, or " if n >= 4 else ""
            raise DataError(f"{n} rows are too few for {most} folds of two rows or more; {way_out}add rows.")
        return KFold(most, shuffle=True, random_state=options.seed)
    labels, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    second = int(counts[order[1]])
    if second < most:
        way_out = f"pass --folds {second}, or " if second >= 2 else ""
        raise DataError(
            f"the class {shown(labels[order[1]])} has {second} row{'s' if second > 1 else ''} in the training part, "
            f"too few for {most} folds; {way_out}add rows."
        )
    return StratifiedKFold(most, shuffle=True, random_state=options.seed)


def _summary(searching: KernelSearchCV, sources: Sequence[str]) -> dict[str, Any]:
    results = searching.cv_results_
    order = np.argsort(results["rank_test_score"], kind="stable")[:_SHOWN]
    if searching.best_index_ in order:
        # The first of equals is the one that was taken.
        order = np.array([searching.best_index_, *(n for n in order if n != searching.best_index_)])
    table = [
        {
            "parameters": {name: _plain(value, sources) for name, value in results["params"][n].items()},
            "score": _number(results["mean_test_score"][n]),
            "error": _number(results["std_test_score"][n] / math.sqrt(searching.n_splits_)),
            "lower": _number(results["lower_test_score"][n]),
            "upper": _number(results["upper_test_score"][n]),
        }
        for n in order
    ]
    return {
        "candidates": len(results["params"]),
        "folds": searching.n_splits_,
        "table": table,
        "certified": bool(searching.certified_),
        "sentence": _sentence(searching),
        "sharing": searching.sharing_,
    }


def _sentence(searching: KernelSearchCV) -> str:
    """How sure it is that the best candidate is the best."""
    if searching.certified_:
        # Those that could not be fitted have no score.
        scores = searching.cv_results_["mean_test_score"]
        ties = int(np.isclose(scores, searching.best_score_, rtol=0.0, atol=_ROUNDING).sum()) - 1
        same = f"{ties} other{'s have' if ties > 1 else ' has'} the same score" if ties else "none has the same score"
        fitted = int(np.isfinite(scores).sum())
        return f"No other of the {fitted} candidates can score higher on these folds; {same}."
    if searching.bounds_reason_:
        reason = searching.bounds_reason_.rstrip(".")
        return f"Whether another candidate can score higher on these folds is not known: {reason}."
    lower, upper = searching.bounds_[:, 0], searching.bounds_[:, 1]
    best = searching.best_index_
    if len(upper) == 1:
        return "Only one candidate was evaluated, so it is not compared with any other."
    rivals = int((np.delete(upper, best) > lower[best]).sum())
    return (
        f"Given the folds, {rivals} other candidate{'s' if rivals != 1 else ''} may have a score as high as that of "
        "the best one: the intervals overlap."
    )


def _plain(value: Any, sources: Sequence[str]) -> Any:
    if isinstance(value, Kernel):
        return repr(by_name(value, list(sources)))
    return value.item() if isinstance(value, np.generic) else value


def _number(value: Any) -> float | None:
    return None if not np.isfinite(value) else float(value)
