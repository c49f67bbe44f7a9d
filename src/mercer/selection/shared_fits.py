"""The fits of a search: those that share kernel work are made together, and are handed out one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer._types import Positions
from mercer.engine import settings, threads
from mercer.engine.progress import Progress
from mercer.estimators.shared.weights import kernel_of_fit
from mercer.kernels import Kernel
from mercer.selection.candidates import Group, can_share, learner_of
from mercer.selection.fold_rows import Fold, FoldMatrices, TrainingMatrices, stacked, taken

_Made = tuple[Any, Callable[[Positions], Any]]
# Folds of several groups are dealt to the threads together, so that none waits long for the last one.
_TASKS_A_THREAD = 4


@dataclass(frozen=True, eq=False)
class SearchData:
    """What the candidates are fitted to: all rows, their targets and weights, and the folds."""

    X: Any
    y: Any
    weight: Any
    folds: tuple[Fold, ...]


@dataclass(frozen=True, eq=False)
class _Space:
    """Rows on which kernels are evaluated; ``place`` has the row of each position of the search.

    ``train`` has the transformed rows to fit to, or None where nothing is transformed.
    """

    matrices: FoldMatrices
    place: Positions
    train: Any

    def served(self, model: Any, train: Positions) -> _Made:
        """A fitted learner, with the function that has the rows to predict for: kernel values, if they exist."""
        whole = self.matrices.matrix(model.kernel_)
        if whole is None:
            return model, lambda positions: self.matrices.rows[self.place[positions]]
        values = whole.astype(self.matrices.dtype)
        return model.on_kernel_values(), lambda positions: values.restrict(self.place[positions], train)


class SharedFits:
    """All fits of a search, made in groups as they are asked for.

    Parameters
    ----------
    data : SearchData
    groups : list of Group
        They will be asked for in this order.
    n_jobs : int or None
        Threads.
    verbose : bool
        Whether to show progress.
    """

    def __init__(self, data: SearchData, groups: list[Group], n_jobs: int | None, verbose: bool) -> None:
        self._data, self._groups, self._n_jobs = data, groups, n_jobs
        self._numbers = {fold.train.tobytes(): fold.number for fold in data.folds}
        self._ready: dict[tuple[int, int], _Made | Exception] = {}
        self._next = 0
        self._spaces: dict[int, _Space] = {}
        self._before: Hashable = None
        self.count = fits = len(data.folds) * sum(len(group.numbers) for group in groups)
        self._progress = Progress(fits, "fits of the search", verbose)
        self.matrices, self.paths = 0, 0
        """Kernel matrices evaluated, and paths along a parameter solved."""
        self.seconds: dict[tuple[int, int], float] = {}
        """Time of each candidate on each fold; of those that were fitted together, an equal share."""

    @property
    def order(self) -> list[int]:
        """The candidates in the order in which they have to be asked for."""
        return [number for group in self._groups for number in group.numbers]

    def take(self, candidate: int, positions: Positions) -> _Made:
        """Return a fitted learner, and the function from positions to the rows that it predicts for.

        Raises
        ------
        Exception
            What the fit raised.
        """
        key = candidate, self._numbers[np.ascontiguousarray(positions).tobytes()]
        if key not in self._ready:
            self._make_more()
        made = self._ready.pop(key)
        if isinstance(made, Exception):
            raise made
        return made

    def close(self) -> None:
        """Give all matrices up."""
        for space in set(self._spaces.values()):
            self.matrices += space.matrices.count
            space.matrices.close()
        self._spaces = {}

    def _make_more(self) -> None:
        """Fit some more groups with the same preprocessing, on all folds."""
        folds = self._data.folds
        before = self._groups[self._next].before
        if before != self._before or not self._spaces:
            self.close()
            self._before = before
        most = -(-_TASKS_A_THREAD * settings.resolve_jobs(self._n_jobs) // len(folds))
        some = []
        while len(some) < most and self._next < len(self._groups) and self._groups[self._next].before == before:
            some.append(self._groups[self._next])
            self._next += 1
        self._prepare(some)
        threads.run([partial(self._fit, group, fold) for group in some for fold in folds], self._n_jobs)

    def _prepare(self, groups: list[Group]) -> None:
        """Transform the rows, and evaluate the kernels that all folds share, on all threads."""
        shared = [learner_of(group.estimator) for group in groups if can_share(group.estimator)]
        if not shared:
            return
        if not self._spaces:
            self._transform(groups[0].estimator)
        spaces = set(self._spaces.values())
        for space in spaces:
            space.matrices.begin()
        # Of rows that each fold transforms in its own way, the folds evaluate the matrices side by side.
        if len(spaces) == 1:
            for learner in shared:
                kernels = {self._kernel(learner, fold) for fold in self._data.folds}
                if len(kernels) == 1 and None not in kernels:
                    self._spaces[self._data.folds[0].number].matrices.matrix(kernels.pop())

    def _kernel(self, learner: Any, fold: Fold) -> Kernel | None:
        """The kernel of a fit; None for a matrix that was given, or where the fit will fail."""
        if learner.kernel == "precomputed":
            return None
        weight = None if self._data.weight is None else taken(self._data.weight, fold.train)
        try:
            return kernel_of_fit(learner, taken(self._data.X, fold.train), weight)
        except (ValueError, TypeError):
            return None

    def _transform(self, estimator: Any) -> None:
        """Make the rows on which kernels are evaluated: those of a fold, or of all folds where nothing precedes."""
        data, learner = self._data, learner_of(estimator)
        if not isinstance(estimator, Pipeline) or len(estimator.steps) == 1:
            everything = np.arange(max(int(fold.train.max(initial=0)) for fold in data.folds) + 1)
            n = max(len(everything), max(int(fold.test.max(initial=0)) for fold in data.folds) + 1)
            space = _Space(FoldMatrices(learner.checked_rows(data.X), self._n_jobs), np.arange(n), None)
            self._spaces = dict.fromkeys(range(len(data.folds)), space)
            return
        made: dict[int, _Space] = {}

        def transform(fold: Fold) -> None:
            steps = clone(estimator)[:-1]
            y = None if data.y is None else taken(data.y, fold.train)
            train = steps.fit_transform(taken(data.X, fold.train), y)
            test = steps.transform(taken(data.X, fold.test))
            place = np.full(1 + max(int(fold.train.max()), int(fold.test.max(initial=0))), -1)
            place[fold.train] = np.arange(len(fold.train))
            place[fold.test] = len(fold.train) + np.arange(len(fold.test))
            rows = learner.checked_rows(stacked(train, test))
            made[fold.number] = _Space(FoldMatrices(rows, self._n_jobs), place, train)

        threads.run([partial(transform, fold) for fold in data.folds], self._n_jobs)
        self._spaces = made

    def _fit(self, group: Group, fold: Fold) -> None:
        """Fit all candidates of a group on one fold; what goes wrong is raised for whom it concerns."""
        begin = time.perf_counter()
        models: Sequence[_Made | Exception]
        try:
            models = self._fit_together(group, fold)
        except Exception as error:
            models = [error] * len(group.numbers)
        seconds = (time.perf_counter() - begin) / len(group.numbers)
        for number, model in zip(group.numbers, models):
            self.seconds[number, fold.number] = seconds
            self._ready[number, fold.number] = model
        self._progress.advance(len(group.numbers))

    def _fit_together(self, group: Group, fold: Fold) -> list[_Made]:
        learner = learner_of(group.estimator)
        if not can_share(group.estimator):
            return [self._fit_alone(group, fold)]
        given = learner.kernel == "precomputed"
        space, X, y, options = self._spaces[fold.number], self._data.X, *self._targets(fold)
        train = space.place[fold.train]
        if given:
            rows = X[np.ix_(train, train)]
        else:
            rows = taken(X, fold.train) if space.train is None else space.train
        learner = clone(learner)
        if not given:
            learner.take_matrices_from(TrainingMatrices(space.matrices, train))
        if group.along:
            different = sorted(set(group.values))
            weight = options.get("sample_weight")
            fitted = dict(zip(different, learner.fit_along(group.along, different, rows, y, weight)))
            self.paths += 1
            models = [fitted[value] for value in group.values]
        else:
            models = [learner.fit(rows, y, **options)]
        if given:
            return [(model, lambda positions: X[np.ix_(positions, fold.train)]) for model in models]
        return [space.served(model.take_matrices_from(None), train) for model in models]

    def _fit_alone(self, group: Group, fold: Fold) -> _Made:
        """Fit an estimator that can share nothing."""
        y, options = self._targets(fold)
        estimator, X = clone(group.estimator), self._data.X
        if isinstance(estimator, Pipeline):
            options = {f"{estimator.steps[-1][0]}__{name}": value for name, value in options.items()}
        return estimator.fit(taken(X, fold.train), y, **options), partial(taken, X)

    def _targets(self, fold: Fold) -> tuple[Any, dict[str, Any]]:
        """Targets and further arguments of a fit."""
        data = self._data
        y = None if data.y is None else taken(data.y, fold.train)
        return y, {} if data.weight is None else {"sample_weight": taken(data.weight, fold.train)}
