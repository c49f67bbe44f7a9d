"""The fits of a search: those that share kernel work are made together, and are handed out one by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer._errors import DataError
from mercer._types import Positions
from mercer.engine import memory, settings, threads
from mercer.engine.progress import Progress, is_raised_by_hook
from mercer.estimators.shared.weights import kernel_of_fit
from mercer.gram.hold import capacity, fits
from mercer.kernels import Kernel
from mercer.loops.compilation import working_time
from mercer.selection.answers import Answered, ScoredRows
from mercer.selection.candidates import Group, can_share, learner_of
from mercer.selection.fold_rows import (
    Fold,
    FoldMatrices,
    FoldRows,
    Made,
    SearchData,
    take_rows,
    transformed,
    untransformed,
)
from mercer.selection.ridge_folds import is_solved_together, solve_folds
from mercer.solvers.linear.principal_systems import PartSolution
from mercer.solvers.solution import Status

# Folds of several groups are dealt to the threads together, so that none waits long for the last one.
_TASKS_A_THREAD = 4
# Up to this many rows, systems of several kernels are solved at once, each on one thread; bytes for each pair of rows.
_SMALL, _ENTRY = 1536, 32
# From so many fits with one kernel on, its values for the rows to predict for are copied side by side.
_SEVERAL = 3


class SharedFits:
    """All fits of a search, made in groups when they are requested.

    Parameters
    ----------
    data : SearchData
    groups : list of Group
        Their candidates will be requested in this order.
    n_jobs : int or None
        Threads.
    verbose : bool
        Whether to show progress.
    asked : callable, optional
        Names the methods that will be called on a fit of an estimator. Their results for the rows that are scored are
        then computed with the fit, which is not kept.
    """

    def __init__(
        self,
        data: SearchData,
        groups: list[Group],
        n_jobs: int | None,
        verbose: bool,
        asked: Callable[[Any], tuple[str, ...]] | None = None,
    ) -> None:
        self._data, self._groups, self._n_jobs = data, groups, n_jobs
        self._asked = asked
        # The methods that will be called on the fits of each group.
        self._methods: dict[Group, tuple[str, ...]] = {}
        # Folds may have the same training rows, and differ in the others.
        self._numbers: dict[bytes, list[int]] = {}
        for fold in data.folds:
            self._numbers.setdefault(_name(fold.train), []).append(fold.number)
        self._ready: dict[tuple[int, int], Made | Exception] = {}
        # Answers for all penalties of a group on a fold.
        self._solved: dict[tuple[Group, int], PartSolution] = {}
        self._next = 0
        # The rows of each fold; None where a step before the learner has failed.
        self._rows: list[FoldRows | None] = []
        self._before: Hashable = None
        self.count = len(data.folds) * sum(len(group.numbers) for group in groups)
        """Fits in all."""
        self._progress = Progress(self.count, "fits of the search", verbose)
        self.matrices, self.paths = 0, 0
        """Kernel matrices evaluated, and paths along a parameter solved."""
        self.from_parts = 0
        """Kernel matrices that came from stored distances, or stored values of parts of their kernels."""
        self.seconds: dict[tuple[int, int], float] = {}
        """Time of each candidate on each fold; of those that were fitted together, an equal share."""
        self.errors: dict[int, Exception] = {}
        """The last error of each candidate that failed."""
        self.ended_by: Exception | None = None
        """What ended the search as a whole: an error that no candidate raised, such as that of a progress hook."""
        self.score_seconds: dict[tuple[int, int], float] = {}
        """Time of the predictions that were made with the fits."""

    @property
    def order(self) -> list[int]:
        """The candidates in the order in which they have to be requested."""
        return [number for group in self._groups for number in group.numbers]

    def extend(self, groups: list[Group]) -> None:
        """Add groups, whose candidates will be requested after all others."""
        self._groups += groups
        self.count += len(self._data.folds) * sum(len(group.numbers) for group in groups)

    def take(self, candidate: int, positions: Positions) -> Made:
        """Return a fitted estimator, and the function from positions to the rows that it predicts for.

        Each fit is handed out once. Folds with the same training rows are requested in their order.

        Parameters
        ----------
        candidate : int
        positions : ndarray of int
            The training rows of a fold.

        Raises
        ------
        Exception
            What the fit raised.
        """
        if self.ended_by is not None:
            raise self.ended_by
        folds = self._numbers[_name(positions)]
        if not any((candidate, fold) in self._ready for fold in folds):
            try:
                self._make_more()
            except Exception as error:
                self.ended_by = error
                raise
        made = self._ready.pop(next((candidate, fold) for fold in folds if (candidate, fold) in self._ready))
        if isinstance(made, Exception):
            self.errors[candidate] = made
            raise made
        return made

    def close(self) -> None:
        """Drop all matrices."""
        for matrices in {rows.matrices for rows in self._rows if rows is not None}:
            self.matrices += matrices.count
            self.from_parts += matrices.from_parts
            matrices.close()
        self._rows = []

    def _make_more(self) -> None:
        """Fit some more groups with the same preprocessing, on all folds."""
        folds, before = self._data.folds, self._groups[self._next].before
        if before != self._before:
            self.close()
            self._before = before
        most = _TASKS_A_THREAD * settings.resolve_jobs(self._n_jobs)
        # The matrices of small groups are stored at once, so that each thread solves for a kernel of its own.
        small = self._data.n <= _SMALL and fits(_ENTRY * most * self._data.n**2)
        most = most if small else max(1, most // len(folds))
        some: list[Group] = []
        while len(some) < most and self._next < len(self._groups) and self._groups[self._next].before == before:
            some.append(self._groups[self._next])
            self._next += 1
        self._prepare(some)
        self._methods = {group: () if self._asked is None else self._asked(group.estimator) for group in some}
        tasks = [(group, fold) for group in some for fold in folds]
        threads.run([partial(self._fit, group, fold) for group, fold in tasks], self._at_once())
        for group, fold in tasks:
            if isinstance(self._ready[group.numbers[0], fold.number], Exception):
                self._fit_apart(group, fold)

    def _at_once(self) -> int:
        """How many fits run at once: beside shared matrices, as many as have room for parts of them.

        With less room a fit would choose another method, and its result would depend on when other fits release memory.
        """
        jobs = settings.resolve_jobs(self._n_jobs)
        if not any(rows.matrices.are_stored for rows in self._rows if rows is not None):
            return jobs
        most = max(len(fold.train) for fold in self._data.folds)
        return max(1, capacity(8 * most**2, jobs))

    def _prepare(self, groups: list[Group]) -> None:
        """Transform the rows, and evaluate the kernels that all folds share, on all threads."""
        shared = [group.estimator for group in groups if can_share(group.estimator)]
        if not shared:
            return
        if not self._rows:
            self._transform(shared[0])
        every = {rows.matrices for rows in self._rows if rows is not None}
        for matrices in every:
            matrices.begin()
        # Of rows that each fold transforms in its own way, the folds evaluate the matrices side by side.
        if len(every) == 1:
            solves = []
            for group in groups:
                if not can_share(group.estimator):
                    continue
                learner = learner_of(group.estimator)
                kernel, *others = (self._kernel(learner, fold) for fold in self._data.folds)
                if kernel is not None and all(other == kernel for other in others):
                    self._evaluate(next(iter(every)), kernel, learner.most_shared_rows)
                    solves.append(partial(self._solve, group, kernel, self._data.folds))
            threads.run(solves, self._n_jobs if self._data.n <= _SMALL else 1)

    @staticmethod
    def _evaluate(matrices: FoldMatrices, kernel: Kernel, most: float) -> None:
        try:
            matrices.matrix(kernel, most)
        except Exception as error:  # Each candidate meets it again in its own fit, which reports it.
            matrices.close()
            if is_raised_by_hook(error):
                raise

    def _solve(self, group: Group, kernel: Kernel | None, folds: Sequence[Fold]) -> None:
        """Solve along alpha for some folds with the same matrices, on all threads."""
        rows = [(fold, self._rows[fold.number]) for fold in folds]
        here = [(fold, one) for fold, one in rows if one is not None]
        if not is_solved_together(group) or len(here) < len(folds):
            return
        solutions = solve_folds(self._data, group, kernel, here, self._n_jobs)
        for fold, solution in zip(folds, solutions or ()):
            self._solved[group, fold.number] = solution

    def _kernel(self, learner: Any, fold: Fold) -> Kernel | None:
        """The kernel of a fit; None for a given matrix, or where the fit will fail."""
        rows = self._rows[fold.number]
        if learner.kernel == "precomputed" or rows is None:
            return None
        _, options = self._data.targets(fold)
        try:
            return kernel_of_fit(learner, rows.train(), options.get("sample_weight"))
        except Exception:  # A user-defined kernel may raise anything. The fit meets it again, and reports it.
            return None

    def _transform(self, estimator: Any) -> None:
        """Make the rows on which kernels are evaluated: those of a fold, or of all folds where nothing precedes."""
        if not isinstance(estimator, Pipeline) or len(estimator.steps) == 1:
            try:
                self._rows = list(untransformed(self._data, learner_of(estimator), self._n_jobs))
            except Exception:  # Rows of other folds may be valid, and each fit raises this again.
                self._rows = [None] * len(self._data.folds)
            return
        self._rows = [None] * len(self._data.folds)

        def transform(fold: Fold) -> None:
            try:
                self._rows[fold.number] = transformed(self._data, estimator, fold, self._n_jobs)
            except Exception:  # Each candidate meets it again in its own fit, which reports it.
                self._rows[fold.number] = None

        threads.run([partial(transform, fold) for fold in self._data.folds], self._n_jobs)

    def _fit(self, group: Group, fold: Fold) -> None:
        """Fit all candidates of a group on one fold."""
        begin = working_time()
        made: list[Made | Exception]
        try:
            made = list(self._fit_together(group, fold))
        except Exception as error:
            memory.release_arrays(error)
            if is_raised_by_hook(error):
                raise
            made = [error] * len(group.numbers)
        seconds = (working_time() - begin) / len(group.numbers)
        with ExitStack() as stack:
            rows = ScoredRows(fold, self._data, len(made) >= _SEVERAL, stack)
            for position, one in enumerate(made):
                self.seconds[group.numbers[position], fold.number] = seconds
                self._keep(group, position, fold, one, rows)
        self._progress.advance(len(group.numbers))

    def _keep(self, group: Group, position: int, fold: Fold, made: Made | Exception, rows: ScoredRows) -> None:
        """Keep the predictions of a fit, or the fit itself where it is not known which methods will be called."""
        key, begin = (group.numbers[position], fold.number), working_time()
        names = self._methods[group]
        if names and not isinstance(made, Exception) and not isinstance(made[0], Answered):
            answers = rows.answers(made, names)
            if answers is not None:
                again = partial(self._fit_again, group, position, fold)
                made = Answered(made[0], answers, fold, again).made()
        self._ready[key] = made
        self.score_seconds[key] = working_time() - begin

    def _fit_again(self, group: Group, position: int, fold: Fold) -> Made:
        """Return a fit that was dropped."""
        return self._fit_alone(_estimator(group, position), fold)

    def _fit_together(self, group: Group, fold: Fold) -> list[Made]:
        rows = None
        if can_share(group.estimator) and not _is_precomputed(group.estimator):
            rows = self._rows[fold.number]
        # Without rows, a path is one over the rows as they are given.
        given = not isinstance(group.estimator, Pipeline) or len(group.estimator.steps) == 1
        if rows is None and not (group.along and given):
            return [self._fit_alone(_estimator(group, n), fold) for n in range(len(group.numbers))]
        learner = clone(learner_of(group.estimator))
        y, options = self._data.targets(fold)
        train = _training_rows(learner, self._data.X, fold) if rows is None else rows.train()
        if rows is not None:
            learner.take_matrices_from(rows.source(learner.most_shared_rows))
        if group.along:
            different = sorted(set(group.values))
            if rows is not None and is_solved_together(group):
                if (group, fold.number) not in self._solved:
                    self._solve(group, self._kernel(learner, fold), [fold])
                learner.take_solution(self._solved.pop((group, fold.number), None))
                answered = self._side_by_side(group, fold, learner, (different, train, y, options.get("sample_weight")))
                if answered is not None:
                    return answered
            fitted = learner.fit_along(group.along, different, train, y, options.get("sample_weight"))
            by_value = dict(zip(different, fitted))
            self.paths += 1
            models = [by_value[value] for value in group.values]
            if any(model.certificate_.status is Status.iteration_limit for model in fitted):
                # Where a solver has stopped depends on where it has started.
                return [self._fit_alone(_estimator(group, n), fold) for n in range(len(models))]
        else:
            models = [learner.fit(train, y, **options)]
        if rows is None:
            return [(model, partial(_rows_to_predict, model, self._data.X, fold)) for model in models]
        return [rows.served(model.take_matrices_from(None)) for model in models]

    def _side_by_side(self, group: Group, fold: Fold, learner: Any, arguments: tuple[Any, ...]) -> list[Made] | None:
        """Return predictions for all penalties of ridge regression, where scorers need nothing else; else None."""
        names, rows, different = self._methods[group], self._rows[fold.number], arguments[0]
        if rows is None or not names or not set(names) <= {"predict", "score"}:
            return None
        model = learner.fit_side_by_side(*arguments).take_matrices_from(None)
        with ExitStack() as stack:
            scored = ScoredRows(fold, self._data, True, stack)
            answers = scored.side_by_side(rows.served(model), names, len(different))
        if answers is None:
            return None
        self.paths += 1
        by_value = dict(zip(different, answers, strict=True))
        return [
            Answered(model, by_value[value], fold, partial(self._fit_again, group, position, fold)).made()
            for position, value in enumerate(group.values)
        ]

    def _fit_apart(self, group: Group, fold: Fold) -> None:
        """Fit the candidates of a group that failed, each from scratch, with all threads.

        Each candidate then reports its own error, and none fails because of another one. A fit that did not fit into
        memory beside shared matrices and other folds may do so now; no matrices are shared from then on.
        """
        for position, number in enumerate(group.numbers):
            begin = working_time()
            made: Made | Exception
            try:
                made = self._fit_with_room(group, position, fold)
            except Exception as reason:
                memory.release_arrays(reason)
                if is_raised_by_hook(reason):
                    raise
                made = reason
            self.seconds[number, fold.number] = working_time() - begin
            with ExitStack() as stack:
                self._keep(group, position, fold, made, ScoredRows(fold, self._data, False, stack))

    def _fit_with_room(self, group: Group, position: int, fold: Fold) -> Made:
        every = {rows.matrices for rows in self._rows if rows is not None}
        failed = isinstance(self._ready[group.numbers[position], fold.number], MemoryError)
        if not failed:
            try:
                return self._fit_alone(_estimator(group, position), fold)
            except MemoryError:
                if not every:
                    raise
        for matrices in every:
            matrices.give_up()
        return self._fit_alone(_estimator(group, position), fold)

    def _fit_alone(self, estimator: Any, fold: Fold) -> Made:
        """Fit an estimator that shares nothing."""
        y, options = self._data.targets(fold)
        if isinstance(estimator, Pipeline):
            options = {f"{estimator.steps[-1][0]}__{name}": value for name, value in options.items()}
        fitted = estimator.fit(_training_rows(estimator, self._data.X, fold), y, **options)
        return fitted, partial(_rows_to_predict, fitted, self._data.X, fold)


def _name(positions: Positions) -> bytes:
    """Equal bytes for equal training rows."""
    return np.asarray(positions, dtype=np.intp).tobytes()


def _estimator(group: Group, position: int) -> Any:
    """The estimator of a candidate of a group, not fitted."""
    estimator = clone(group.estimator)
    if group.along:
        learner_of(estimator).set_params(**{group.along: group.values[position]})
    return estimator


def _is_precomputed(estimator: Any) -> bool:
    kernel = learner_of(estimator).kernel
    return isinstance(kernel, str) and kernel == "precomputed"


def _training_rows(estimator: Any, X: Any, fold: Fold) -> Any:
    """The rows that an estimator is fitted to; of a kernel matrix, the rows and columns."""
    return _part(X, fold.train, fold) if takes_matrices(estimator) else take_rows(X, fold.train)


def _rows_to_predict(estimator: Any, X: Any, fold: Fold, positions: Positions) -> Any:
    return _part(X, positions, fold) if takes_matrices(estimator) else take_rows(X, positions)


def _part(K: Any, positions: Positions, fold: Fold) -> Any:
    """Some rows of a kernel matrix, with the columns of the training rows."""
    K = K if sp.issparse(K) else np.asarray(K)
    require_square(K)
    return K[np.ix_(positions, fold.train)]


def require_square(K: Any) -> None:
    """Raise unless K has a column for each row."""
    shape = np.shape(K)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise DataError(
            f"X has the shape {shape}, but a search over estimators of kernel matrices needs the square matrix of all "
            "rows: X[i, j] = k(x_i, x_j). Folds take their parts of it."
        )


def takes_matrices(estimator: Any) -> bool:
    """Whether the rows that the estimator takes are those of a kernel matrix."""
    return bool(get_tags(estimator).input_tags.pairwise)
