"""Searches over parameters with scikit-learn's interface, whose fits share all kernel work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import sklearn
from sklearn import model_selection
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from mercer._documentation import documented
from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer.engine.settings import interrupts_raise
from mercer.selection.answers import AskedMethods
from mercer.selection.candidates import Parameters, can_share, groups_of, learner_of, with_parameters
from mercer.selection.failures import failures, naming_failures
from mercer.selection.fold_rows import Fold, SearchData
from mercer.selection.held_out import CANDIDATE, HeldOut
from mercer.selection.ridge_folds import is_solved_together
from mercer.selection.shared_fits import SharedFits, require_square, takes_matrices


@documented
class _SharingSearch:
    """What both searches share; the other base is scikit-learn's search."""

    estimator: Any
    scoring: Any
    cv: Any
    refit: Any
    verbose: Any
    error_score: Any
    return_train_score: Any
    n_jobs: Any

    def _candidates(self) -> list[Parameters]:
        raise NotImplementedError

    def _spaces(self) -> Sequence[Any]:
        """The dicts that candidates are taken from."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit every candidate on every fold, and the best one on all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or objects
            Rows, in any form that the estimator takes.
        y : array-like, optional
            Labels or targets.
        **params : dict
            Parameters of the estimator's ``fit``, such as ``sample_weight``, and ``groups`` for the splitter.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, ValueError
            If the estimator lacks a parameter of the grid, a list of values is empty, or no fit succeeds.
        """
        self._validate_params()  # type: ignore[attr-defined]
        reason = self._why_alone(params)
        if reason:
            self._check_names()
            self.sharing_ = f"nothing: {reason}"
            with naming_failures(self), interrupts_raise():
                super().fit(X, y, **params)  # type: ignore[misc]
            return self
        self._check_metric()
        candidates = self._candidates()
        groups = groups_of(self.estimator, candidates)
        weight = params.get(self._weight_name())
        X, y, weight = indexable(X, y, weight)
        if takes_matrices(self.estimator):
            require_square(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        # Splitters may give masks.
        every = np.arange(n)
        splits = [(every[train], every[test]) for train, test in cv.split(X, y, params.get("groups"))]
        folds = tuple(Fold(number, train, test) for number, (train, test) in enumerate(splits))
        data = SearchData(X, y, weight, n, folds, bool(self.return_train_score))
        fits = SharedFits(data, groups, self.n_jobs, bool(self.verbose), AskedMethods(self.scoring, data))
        try:
            with interrupts_raise():
                inner = self._score_all(fits, candidates, splits, data, params)
            if fits.ended_by is not None:
                raise fits.ended_by
        except Exception as error:
            if fits.ended_by is not None and error is not fits.ended_by:
                raise fits.ended_by from None
            if fits.errors:
                error.add_note(failures(_texts(fits), candidates))
            raise
        finally:
            fits.close()
        self._take_results(inner, fits, candidates)
        if fits.errors:
            warn_user(failures(_texts(fits), candidates), MercerWarning)
        self.sharing_ = _description(fits, groups)
        with interrupts_raise():
            self._refit(X, y, params)
        return self

    def _why_alone(self, params: Mapping[str, Any]) -> str:
        """Why nothing can be shared; empty if something can."""
        learner = learner_of(self.estimator)
        if not can_share(self.estimator):
            return f"the fits of {type(learner).__name__} {_without_matrix(learner)}"
        if params and sklearn.get_config()["enable_metadata_routing"]:
            return "metadata are routed to the fits"
        if getattr(self, "_skl_callbacks", None):
            return "callbacks follow the fits that scikit-learn makes"
        if any(CANDIDATE in space for space in self._spaces() if isinstance(space, Mapping)):
            return f"a parameter has the name {CANDIDATE!r}, by which the search numbers them"
        others = sorted(set(params) - {"groups", self._weight_name()})
        if others:
            return f"fit is called with {', '.join(others)}"
        weight = params.get(self._weight_name())
        if weight is not None and np.ndim(weight) == 0:
            return f"{self._weight_name()} is one number"
        own = self.scoring.values() if isinstance(self.scoring, Mapping) else [self.scoring]
        if any(callable(scorer) and not hasattr(scorer, "_response_method") for scorer in own):
            return "scoring is a function that may look at the rows; pass one that make_scorer returns"
        return ""

    def _check_names(self) -> None:
        """Raise if the estimator lacks a parameter; for random candidates scikit-learn does so when it gets there."""

    def _check_metric(self) -> None:
        """Raise if there is no metric, or ``refit`` does not say which of several counts."""
        if self.scoring is None:
            # Names the estimator of the search, not what stands for it in the fits.
            check_scoring(self.estimator)
        several = not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring))
        if not several or self.refit is False or callable(self.refit) or self.refit in set(self.scoring):
            return
        raise ParameterError(
            f"with the metrics {', '.join(map(str, self.scoring))}, refit must be one of these names, a function that "
            f"chooses from cv_results_, or False, but is {self.refit!r}."
        )

    def _weight_name(self) -> str:
        """The argument of ``fit`` for sample weights."""
        pipeline = isinstance(self.estimator, Pipeline)
        return f"{self.estimator.steps[-1][0]}__sample_weight" if pipeline else "sample_weight"

    def _score_all(
        self,
        fits: SharedFits,
        candidates: Sequence[Parameters],
        splits: list[Any],
        data: SearchData,
        params: Mapping[str, Any],
    ) -> Any:
        """scikit-learn's search over the candidates in the order of the fits, without a refit."""
        grid = [
            {**{name: [value] for name, value in candidates[number].items()}, CANDIDATE: [number]}
            for number in fits.order
        ]
        inner = model_selection.GridSearchCV(
            HeldOut(self.estimator, fits),
            grid,
            scoring=self.scoring,
            n_jobs=1,
            refit=False,
            cv=splits,
            verbose=self.verbose,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
        )
        weights = {name: value for name, value in params.items() if name != "groups"}
        return inner.fit(np.arange(data.n)[:, None], data.y, **weights)

    def _take_results(self, inner: Any, fits: SharedFits, candidates: Sequence[Parameters]) -> None:
        """Set what the search found, in the order of the candidates."""
        back = np.argsort(fits.order)
        results = {key: value[back] for key, value in inner.cv_results_.items() if key != "params"}
        results.pop(f"param_{CANDIDATE}")
        seconds = np.array([[fits.seconds[c, f] for f in range(inner.n_splits_)] for c in range(len(candidates))])
        results["mean_fit_time"] += seconds.mean(axis=1)
        results["std_fit_time"] = seconds.std(axis=1)
        of_predictions = [[fits.score_seconds[c, f] for f in range(inner.n_splits_)] for c in range(len(candidates))]
        results["mean_score_time"] += np.mean(of_predictions, axis=1)
        keys = list(inner.cv_results_)
        keys.remove(f"param_{CANDIDATE}")
        results["params"] = list(candidates)
        self.cv_results_ = {key: results[key] for key in keys}
        self.multimetric_, self.n_splits_ = inner.multimetric_, inner.n_splits_
        # That of the other search refers to its estimator, and through it to the rows.
        self.scorer_ = check_scoring(self.estimator) if self.scoring is None else inner.scorer_

    def _refit(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        """Choose the best candidate, as scikit-learn does, and fit it to all rows."""
        results = self.cv_results_
        metric = self.refit if self.multimetric_ else "score"
        if not (self.refit or not self.multimetric_):
            return
        if callable(self.refit):
            best = self.refit(results)
            if not isinstance(best, int | np.integer):
                raise TypeError("best_index_ returned is not an integer")
            if not 0 <= best < len(results["params"]):
                raise IndexError("best_index_ index out of range")
        else:
            best = results[f"rank_test_{metric}"].argmin()
            self.best_score_ = results[f"mean_test_{metric}"][best]
        self.best_index_, self.best_params_ = best, results["params"][best]
        if not self.refit:
            return
        estimator = with_parameters(self.estimator, self.best_params_)
        begin = time.time()
        options = {name: value for name, value in params.items() if name != "groups"}
        self.best_estimator_ = estimator.fit(X, **options) if y is None else estimator.fit(X, y, **options)
        self.refit_time_ = time.time() - begin
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _without_matrix(learner: Any) -> str:
    """Why the fits of a learner share no kernel matrix, after "the fits of ..."."""
    if getattr(learner, "shares_matrices", False) and learner.learns_kernel:
        remedy = "; optimizer=None keeps the kernel as it is" if hasattr(learner, "optimizer") else ""
        return f"learn their kernels, and each has a matrix of its own{remedy}"
    return "have no kernel matrix that others could use"


def _texts(fits: SharedFits) -> dict[int, str]:
    """Why candidates failed."""
    return {number: str(error) for number, error in fits.errors.items()}


def _description(fits: SharedFits, groups: Sequence[Any]) -> str:
    """What the fits of a search had in common."""
    shared = [f"{fits.matrices} kernel matrices evaluated for {fits.count} fits"]
    if fits.from_parts:
        shared.append(f"{fits.from_parts} of them from stored distances or values of their parts")
    if fits.paths:
        names = " and ".join(sorted({group.along for group in groups if group.along}))
        together = all(is_solved_together(group) for group in groups if group.along)
        how = "all values solved together" if together else "each solved from the last answer"
        shared.append(f"{fits.paths} paths along {names}, {how}")
    return "; ".join(shared)


class GridSearchCV(_SharingSearch, model_selection.GridSearchCV):
    """Search over a grid of parameters, as ``sklearn.model_selection.GridSearchCV``, with all kernel work shared.

    Constructor, methods, attributes and ``cv_results_`` are those of scikit-learn, and so are the scores: each
    candidate is solved to the tolerance of a separate fit. Objects are read once. Every kernel matrix is evaluated once
    for all folds, penalties and predictions, from distances or comparisons of pairs that kernels have in common (for
    support vector machines, where there are at most 8192 rows or entries are expensive). Support vector machines are
    solved along C, nu or epsilon, and machines of other losses along C or alpha, each value from the answer for its
    neighbour. Kernel ridge regression is solved for all folds and values of alpha together. Gaussian processes with
    ``optimizer=None`` take their covariances from these matrices, except those with a linear mean and classifiers that
    combine binary ones for several classes. A fit that learns its kernel evaluates its own matrices. Steps of a
    pipeline before the learner are fitted once for each fold. Folds and kernels are distributed over threads, within
    the memory budget (``mercer.config(memory=...)``).

    Parameters
    ----------
    estimator : estimator
        An estimator of Mercer, or a pipeline whose last step is one. With others, and with user-defined subclasses,
        nothing is shared, and the search is that of scikit-learn.
    param_grid : dict or list of dicts
        Lists of values by the name of the parameter.
    scoring : str, callable, list, tuple or dict, optional
        Metrics; the ``score`` of the estimator by default. A function that ``make_scorer`` did not make may look at
        the rows; then nothing is shared.
    n_jobs : int, optional
        Threads; those of ``mercer.config`` by default.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all rows, by which metric, or a function that chooses from
        ``cv_results_``.
    cv : int, splitter or iterable, optional
        Folds; five by default, stratified for classifiers.
    verbose : int, default=0
        Progress on standard error, and scikit-learn's messages.
    pre_dispatch : int or str, default="2*n_jobs"
        Used where nothing is shared.
    error_score : "raise" or float, default=nan
        Score of a candidate whose fit fails.
    return_train_score : bool, default=False
        Whether to score the training rows as well.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in scikit-learn. Candidates that are fitted together have equal shares of the time.
    sharing_ : str
        What was shared, or why nothing was.
    best_estimator_, best_score_, best_params_, best_index_, refit_time_
        The best candidate, and the time of its fit to all rows.
    scorer_, n_splits_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    DataError, ParameterError, ValueError
        From ``fit``: a fold with one class, a parameter that the estimator lacks, an empty list of values.

    Notes
    -----
    Sources: DeCoste and Wagstaff (2000), "Alpha seeding for support vector machines", for the paths.

    Examples
    --------
    >>> from mercer import SVC, GridSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, (90, 1))
    >>> search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, cv=3).fit(X, abs(X[:, 0]) > 0.4)
    >>> bool(search.best_score_ > 0.9), search.best_params_["gamma"]
    (True, 1.0)
    >>> search.sharing_
    '2 kernel matrices evaluated for 18 fits; 6 paths along C, each solved from the last answer'
    """

    def _candidates(self) -> list[Parameters]:
        return list(ParameterGrid(self.param_grid))

    def _spaces(self) -> Sequence[Any]:
        return [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid

    def _check_names(self) -> None:
        for parameters in self._candidates():
            with_parameters(self.estimator, parameters)


class RandomizedSearchCV(_SharingSearch, model_selection.RandomizedSearchCV):
    """Search over random parameters, as ``sklearn.model_selection.RandomizedSearchCV``, with all kernel work shared.

    See :class:`GridSearchCV` for what is shared, and for the parameters and attributes that are not listed here.

    Parameters
    ----------
    estimator : estimator
        An estimator of Mercer, or a pipeline whose last step is one.
    param_distributions : dict or list of dicts
        Lists of values, or distributions with a method ``rvs``, by the name of the parameter.
    n_iter : int, default=10
        Candidates.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch
        As for :class:`GridSearchCV`.
    random_state : int, RandomState instance or None, default=None
        Seed.
    error_score, return_train_score
        As for :class:`GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from mercer import KernelRidge, RandomizedSearchCV
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> choices = {"alpha": loguniform(1e-4, 1.0), "gamma": [1.0, 10.0]}
    >>> search = RandomizedSearchCV(KernelRidge(kernel="rbf"), choices, n_iter=8, random_state=0)
    >>> search.fit(X, np.sin(9 * X[:, 0])).best_params_["gamma"]
    10.0
    """

    def _candidates(self) -> list[Parameters]:
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state))

    def _spaces(self) -> Sequence[Any]:
        return [self.param_distributions] if isinstance(self.param_distributions, Mapping) else self.param_distributions
