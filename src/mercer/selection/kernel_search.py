"""The search without a grid: ranges from the data, from coarse to fine, with bounds on the scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer._documentation import documented
from mercer._errors import MercerWarning, warn_user
from mercer._optional import optional
from mercer._types import Vector
from mercer.data.words import listing
from mercer.engine import settings
from mercer.engine.settings import interrupts_raise
from mercer.estimators.svc import SVC
from mercer.selection.bounds import ScoreBounds
from mercer.selection.by_nothing import warn_if_by_nothing
from mercer.selection.candidates import learner_of, with_parameters
from mercer.selection.evaluated import Evaluated, Evaluator
from mercer.selection.failures import AllFailedError, by_kernel
from mercer.selection.fold_rows import SearchData
from mercer.selection.routing import routed_to_fit, routed_to_score, router_of
from mercer.selection.search_arguments import check_arguments, check_scored, offers, scorer_of, search_data
from mercer.selection.search_log import LoggedEvaluator, SearchLog, identity
from mercer.selection.search_plan import Pace, SearchPlan, Stop
from mercer.selection.search_spaces import spaces_of
from mercer.selection.time_budget import TimeBudget
from mercer.selection.tolerances import tolerance_for, tolerances_of

# The bounds of more pairs of classes than this take longer than their fits: of 325 pairs on 700 rows, three times.
_PAIRS = 10


@documented
class KernelSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search over penalties and parameters of kernels without a grid, within a time budget.

    What is searched, and in which ranges, comes from the learner and the data: its penalties (``C``, ``alpha``, ``nu``,
    ``epsilon``), ``gamma`` of a kernel by name, and every free parameter of a :class:`~mercer.kernels.Kernel`, whatever
    it compares; of a kernel on objects also whole numbers, such as the length of a substring or the width of a band,
    the cheapest first. What its rules take from rows, such as a median, becomes a number. Length scales begin around
    the 0.1 and 0.9 quantiles of the distances between rows, penalties at the size of k(x, x), ``epsilon`` at the spread
    of the targets. The search goes from a coarse grid in the logarithms to a quarter of its spacing around the best,
    and beyond the range where the best lies at its edge. Fits share their kernel matrices, as in
    :class:`~mercer.selection.GridSearchCV`. Where ``tol`` of a support vector regression is above 0.1 or below 1e-10 of
    the standard deviation of the targets, candidates have 0.001 of it.

    Parameters
    ----------
    estimator : estimator
        A learner of Mercer, or a pipeline whose last step is one. Parameters that are not searched keep their values.
    kernels : list of kernels, optional
        Values of the learner's ``kernel`` to choose among, for any kind of rows. Their whole numbers are kept.
    cv : int, splitter or iterable, default=5
        Folds, stratified for classifiers.
    scoring : str or callable, optional
        The metric; the ``score`` of the estimator by default.
    time_budget : float, default=60
        Seconds after which the best candidate so far is taken, its fit to all rows included; without a score so far,
        the cheapest candidate, whose score is NaN then. The time in which loops are compiled, once on a machine, does
        not count.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample of rows from which ranges are taken. More rows than 400 are sampled.
    refit : bool, default=True
        Whether to fit the best candidate to all rows.
    n_jobs : int, optional
        Threads; those of ``mercer.config`` by default.
    verbose : int, default=0
        Whether to show progress on standard error.
    log : str or Path, optional
        A file with a line for each candidate. A search with the same data and arguments, other than the budget, takes
        candidates from it, and so goes on where an earlier one was stopped or killed. The file is locked meanwhile: a
        second search with it raises.
    parameters : list of str, optional
        Names of the penalties to search, such as ``["C"]``, ``"gamma"``, and ``"kernel"`` for its free parameters; by
        default all.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, refit_time_
        The best candidate, and the time of its fit to all rows.
    cv_results_ : dict of arrays
        Candidates in the order in which they were first evaluated, with scikit-learn's keys, and
        ``"lower_test_score"``, ``"upper_test_score"`` and ``"tol"``, the tolerance of the fits (NaN for the
        estimator's own).
    bounds_ : ndarray of shape (n_candidates, 2)
        The interval of each mean score, given the folds; NaN where no bound is known.
    bounds_reason_ : str
        Why some bound is not known; empty if all are.
    certified_ : bool
        Whether the lower bound of the best candidate is at least the upper bound of every other one that could be
        fitted. Candidates that failed have no score, and are not compared; a warning names them.
    table_ : pandas.DataFrame
        The results, the best first, made when asked for.
    stop_reason_ : str
        Why the search ended: done, certified, budget or interrupted, in words; and the names of what was searched. All
        else was kept as it is.
    sharing_ : str
        What the fits had in common.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn's searches.

    Raises
    ------
    DataError, ParameterError
        From ``fit``: no targets, a fold with one class, nothing to search, an invalid argument.

    Notes
    -----
    Source of the ranges: Caputo, Sim, Furesjo and Smola (2002), "Appearance-based object recognition using SVMs: which
    kernel should I use?", as in kernlab's ``sigest``.

    Examples
    --------
    >>> from mercer import SVC, KernelSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (90, 1))
    >>> search = KernelSearchCV(SVC(), cv=3, random_state=0).fit(X, abs(X[:, 0]) > 0.4)
    >>> sorted(search.best_params_), bool(search.best_score_ > 0.9), search.n_splits_
    (['C', 'gamma'], True, 3)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        kernels: Sequence[Any] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        time_budget: float = 60,
        random_state: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        log: str | Path | None = None,
        parameters: Sequence[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.kernels = kernels
        self.cv = cv
        self.scoring = scoring
        self.time_budget = time_budget
        self.random_state = random_state
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.log = log
        self.parameters = parameters

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and fit the best candidate to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or objects
            Rows, in any form that the estimator takes.
        y : array-like
            Labels or targets.
        **params : dict
            ``groups`` for the splitter, and ``sample_weight``, for a pipeline with the name of its last step before it.
            It weighs the fits; unlike those of ``GridSearchCV``, scores of held-out rows are not weighted. With
            scikit-learn's metadata routing they go where they are requested, as in ``GridSearchCV``, also to scores,
            which then have no bounds.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError
            If there is nothing to search, an argument is invalid, rows, targets, weights or folds cannot be used, the
            log is in use, or all candidates failed.

        Warns
        -----
        MercerWarning
            If no candidate is better than predictions that know the targets alone, the budget sufficed for one
            candidate or none, the search was interrupted, or candidates failed.
        """
        check_arguments(self)
        budget = TimeBudget(float(self.time_budget))
        scorer = scorer_of(self.estimator, self.scoring)
        routed = routed_to_fit(self, params)
        data = search_data(self.estimator, self.cv, X, y, routed.weight, routed.split, routed.score_weight)
        bounds = ScoreBounds.of(self.estimator, scorer, data)
        check_scored(bounds.metric, data.folds)
        spaces = spaces_of(self.estimator, self.kernels, data, self.random_state, self.parameters)
        pace = self._pace(data)
        log = self._open_log(data)
        try:
            evaluator = Evaluator(self.estimator, data, scorer, self.n_jobs, bounds)
            evaluates = evaluator if log is None else LoggedEvaluator(evaluator, log, len(data.folds))
            plan = SearchPlan(spaces, evaluates, budget, pace, bool(self.verbose))
            try:
                # What is requested is known here; threads of the pool have a configuration of their own.
                with sklearn.config_context(enable_metadata_routing=False), interrupts_raise():
                    stop = plan.run()
            finally:
                evaluator.fits.close()
        finally:
            if log is not None:
                log.close()
        self._take_results(plan, stop, data)
        self.sharing_ = f"{evaluator.fits.matrices} kernel matrices evaluated for {evaluator.fits.count} fits"
        if stop is Stop.interrupted:
            warn_user(
                f"KernelSearchCV was interrupted after {len(plan.candidates)} candidates. It keeps the best so far"
                f"{', and fits it to all rows now' if self.refit else ''}.",
                MercerWarning,
            )
        elif stop in (Stop.exceeded, Stop.unscored):
            warn_user(f"KernelSearchCV ended after one candidate. {stop.value}", MercerWarning)
        warn_if_by_nothing(self.best_score_, self.estimator, scorer, data)
        self.scorer_ = scorer
        if self.refit:
            begin = time.perf_counter()
            best = with_parameters(self.estimator, self.best_params_)
            with interrupts_raise():
                self.best_estimator_ = best.fit(data.X, data.y, **routed.fit)
            self.refit_time_ = time.perf_counter() - begin
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _pace(self, data: SearchData) -> Pace:
        learner = learner_of(self.estimator)
        tol = tolerance_for(learner, data.y)
        learner = learner if tol is None else clone(learner).set_params(tol=tol)
        own, loose = tolerances_of(learner, max(len(fold.train) for fold in data.folds))
        n = len(data.folds)
        classes = len(np.unique(data.y)) if isinstance(learner, SVC) else 2
        first = classes * (classes - 1) // 2 <= _PAIRS
        return Pace(own, loose, min(settings.resolve_jobs(self.n_jobs), n), n, first)

    def _open_log(self, data: SearchData) -> SearchLog | None:
        if self.log is None:
            return None
        names = ("kernels", "parameters", "scoring", "random_state")
        return SearchLog.open(self.log, identity(self.estimator, data, {name: getattr(self, name) for name in names}))

    def _take_results(self, plan: SearchPlan, stop: Stop, data: SearchData) -> None:
        candidates = plan.candidates
        best = plan.best if stop is not Stop.unscored else len(candidates) - 1
        if best is None:
            raise AllFailedError(f"All {len(candidates)} candidates failed:\n{by_kernel(candidates)}")
        failed = [one for one in candidates if one.error]
        if failed:
            warn_user(
                f"KernelSearchCV left out {len(failed)} of {len(candidates)} candidates, which failed on some fold; "
                f"the best is that of the others:\n{by_kernel(candidates)}",
                MercerWarning,
            )
        self.cv_results_ = _table(candidates)
        self.n_splits_ = len(data.folds)
        self.best_index_ = best
        self.best_params_ = dict(candidates[best].parameters)
        self.best_score_ = candidates[best].mean
        self.bounds_ = np.array([one.interval for one in candidates])
        self.bounds_reason_ = next((one.why for one in candidates if one.why), "")
        self.certified_ = plan.is_certified
        names = {axis.name: None for space in plan.spaces for axis in space.axes}
        searched = listing([*(["kernel"] if self.kernels is not None else []), *names])
        self.stop_reason_ = f"{stop.value} Searched: {searched}."

    @property
    def table_(self) -> Any:
        """The candidates as a DataFrame, the best first; needs pandas."""
        check_is_fitted(self)
        pandas = optional("pandas", "table_ of KernelSearchCV")
        columns = {name: values for name, values in self.cv_results_.items() if name != "params"}
        return pandas.DataFrame(columns).sort_values("rank_test_score", kind="stable", ignore_index=True)

    @property
    def classes_(self) -> np.ndarray:
        """The classes of the best estimator."""
        return self._best("classes_").classes_

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("KernelSearchCV has no n_features_in_ before a fit with refit=True.")
        return int(self.best_estimator_.n_features_in_)

    def _best(self, method: str) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{method} is available after a fit with refit=True only, but refit is {self.refit!r}."
            )
        return self.best_estimator_

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by the metric of the search.

        Parameters
        ----------
        X, y
            Rows and their labels or targets.
        **params : dict
            Metadata that the metric requests, such as ``sample_weight``; only with scikit-learn's metadata routing.

        Returns
        -------
        float
        """
        best = self._best("score")
        return float(self.scorer_(best, X, y, **routed_to_score(self, params)))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata are routed: to the estimator's fits, to the metric and to the splitter.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        return router_of(self)

    @available_if(offers("predict"))
    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator."""
        return self._best("predict").predict(X)

    @available_if(offers("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Decision values of the best estimator."""
        return self._best("decision_function").decision_function(X)

    @available_if(offers("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the best estimator."""
        return self._best("predict_proba").predict_proba(X)

    @available_if(offers("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of the best estimator."""
        return self._best("predict_log_proba").predict_log_proba(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.pairwise, tags.input_tags.sparse = inner.input_tags.pairwise, inner.input_tags.sparse
        tags.array_api_support = False
        return tags


def _table(candidates: Sequence[Evaluated]) -> dict[str, Any]:
    """The results in scikit-learn's layout."""
    results: dict[str, Any] = {}
    for name in ("fit", "score"):
        seconds = np.array([one.seconds if name == "fit" else one.score_seconds for one in candidates])
        results[f"mean_{name}_time"], results[f"std_{name}_time"] = seconds.mean(axis=1), seconds.std(axis=1)
    for name in sorted({name for one in candidates for name in one.parameters}):
        values = np.empty(len(candidates), dtype=object)
        values[:] = [one.parameters.get(name) for one in candidates]
        missing = [name not in one.parameters for one in candidates]
        results[f"param_{name}"] = np.ma.MaskedArray(values, missing)
    results["params"] = [dict(one.parameters) for one in candidates]
    scores = np.array([one.scores for one in candidates])
    for number, of_fold in enumerate(scores.T):
        results[f"split{number}_test_score"] = of_fold
    mean = scores.mean(axis=1)
    results["mean_test_score"], results["std_test_score"] = mean, scores.std(axis=1)
    results["rank_test_score"] = _ranks(mean)
    results["tol"] = np.array([np.nan if one.tol is None else one.tol for one in candidates])
    bounds = np.array([one.interval for one in candidates])
    results["lower_test_score"], results["upper_test_score"] = bounds.T
    return results


def _ranks(means: Vector) -> np.ndarray:
    """The ranks of the means, the least for ties, and the last for those that failed."""
    known = np.where(np.isnan(means), -np.inf, means)
    return np.array([1 + int(np.sum(known > value)) for value in known], dtype=np.int32)
