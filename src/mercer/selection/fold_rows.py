"""The rows of the folds of a search, and kernel matrices that all fits on them share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer._optional import optional
from mercer._types import Positions, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.engine import settings
from mercer.engine.tiles import TILE
from mercer.estimators.gaussian.options import function_variance
from mercer.estimators.svm.copies import tells_rows_apart
from mercer.gram import Gram
from mercer.gram.evaluated import EvaluatedGram
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel
from mercer.kernels.inputs import Rows
from mercer.kernels.stored_parts import expensive_parts
from mercer.selection.stored_distances import StoredDistances

Made = tuple[Any, Callable[[Positions], Any]]
"""A fitted estimator, and the function from positions of the search to the rows that it predicts for."""


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of the rows to fit to, and of those to be scored on, in all rows of the search."""

    number: int
    train: Positions
    test: Positions


@dataclass(frozen=True, eq=False)
class SearchData:
    """What the candidates are fitted to: all ``n`` rows, their targets and weights (or None), and the folds.

    ``train_scores`` says whether training rows are scored as well, and ``score_weight`` (or None) weighs the rows in
    scores.
    """

    X: Any
    y: Any
    weight: Any
    n: int
    folds: tuple[Fold, ...]
    train_scores: bool = False
    score_weight: Any = None

    def score_options(self, fold: Fold) -> dict[str, Any]:
        """Return further arguments of the metric for the held-out rows of a fold."""
        return {} if self.score_weight is None else {"sample_weight": take_rows(self.score_weight, fold.test)}

    def targets(self, fold: Fold) -> tuple[Any, dict[str, Any]]:
        """Return the targets of a fold, and further arguments of a fit."""
        y = None if self.y is None else take_rows(self.y, fold.train)
        return y, {} if self.weight is None else {"sample_weight": take_rows(self.weight, fold.train)}


class FoldMatrices:
    """Kernel matrices of one set of rows, each evaluated once for all folds, parameters and predictions.

    Parameters
    ----------
    rows : array, sparse matrix or objects
        All rows, as learners take them.
    n_jobs : int or None
        Threads.
    """

    def __init__(self, rows: Any, n_jobs: int | None) -> None:
        self.rows = rows
        self.dtype = np.float32 if getattr(rows, "dtype", None) == np.float32 else np.float64
        self._n_jobs = n_jobs
        self._evaluated: dict[Kernel, tuple[EvaluatedGram | None, ExitStack]] = {}
        self._locks: dict[Kernel, threading.Lock] = {}
        self._noiseless: dict[Kernel, Vector] = {}
        self._in_use: set[Kernel] = set()
        self._lock = threading.Lock()
        self._distances = StoredDistances(rows, n_jobs)
        # Whether there is no room for a matrix beside what fits need.
        self._is_full = False
        self.count = 0
        """Matrices evaluated so far."""
        self.from_parts = 0
        """How many of them came from stored distances, or from stored values of parts of their kernels."""

    def matrix(self, kernel: Kernel, most: float = np.inf) -> EvaluatedGram | None:
        """Return the matrix of all rows, or None if it does not fit the memory budget.

        For more rows than ``most``, only kernels whose entries are expensive have one.
        """
        if self._is_full or (len(self) > most and not self._is_expensive(kernel)):
            return None
        with self._lock:
            self._in_use.add(kernel)
            lock = self._locks.setdefault(kernel, threading.Lock())
        # Two folds may ask for the same matrix at once; others go on meanwhile.
        with lock:
            known = self._evaluated.get(kernel)
            if known is None:
                self._evaluated[kernel] = known = self._evaluate(kernel)
        return known[0]

    def _evaluate(self, kernel: Kernel) -> tuple[EvaluatedGram | None, ExitStack]:
        """The matrix, or None, and what keeps its memory reserved."""
        # Parts that compare objects pair by pair have matrices of their own, which other kernels use as well. Each
        # matrix is stored in float64 and float32.
        both = 2 * 12 * len(self) ** 2
        parts = {
            use: self.matrix(part)
            for use, part in expensive_parts(kernel).items()
            if part in self._evaluated or fits(both)
        }
        stored = {use: whole.stored_as(np.float64) for use, whole in parts.items() if whole is not None}
        gram = Gram(kernel, self.rows, n_jobs=self._n_jobs)
        values = {use: array for use, array in stored.items() if array is not None} | self._distances.of(gram)
        with ExitStack() as stack:
            # For this matrix, and for each thread a copy of the part of a fit.
            self._drop_unused((24 + 8 * settings.resolve_jobs(self._n_jobs)) * len(self) ** 2)
            evaluated = EvaluatedGram.evaluate(gram.from_stored(values) if values else gram, stack)
            self.count += evaluated is not None
            self.from_parts += evaluated is not None and bool(values)
            return evaluated, stack.pop_all()

    def noiseless(self, kernel: Kernel) -> Vector:
        """Return k(x, z) of each row x and an equal one z that is not the same, (n,): without ``White`` terms."""
        with self._lock:
            known = self._noiseless.get(kernel)
        if known is None:
            known = self._noiseless[kernel] = function_variance(kernel, Rows(self.rows))
        return known

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def _is_expensive(self, kernel: Kernel) -> bool:
        """Whether an entry takes much longer to compute than to read."""
        gram = Gram(kernel, self.rows)
        return gram.expensive or gram.tile < TILE

    @property
    def are_stored(self) -> bool:
        """Whether there is a matrix now, which takes memory."""
        return any(evaluated is not None for evaluated, _ in self._evaluated.values())

    def begin(self) -> None:
        """Begin another set of fits: matrices that they do not use may be dropped."""
        with self._lock:
            self._in_use.clear()

    def close(self) -> None:
        """Drop all matrices."""
        self.begin()
        self._drop_unused()
        self._distances.close()

    def give_up(self) -> None:
        """Drop all matrices, and evaluate no other: fits have no room beside one."""
        self._is_full = True
        self.close()

    def _drop_unused(self, needed: int | None = None) -> None:
        """Drop unused matrices, all or until so many bytes are free: cheap ones, and of the others the oldest first."""
        with self._lock:
            for kernel in [kernel for kernel in self._evaluated if kernel not in self._in_use]:
                if needed is None or not (fits(needed) and self._is_expensive(kernel)):
                    self._evaluated.pop(kernel)[1].close()


@dataclass(frozen=True, eq=False)
class TrainingMatrices:
    """The matrices of one fold's training rows, as parts of those of all rows."""

    matrices: FoldMatrices
    train: Positions
    most: float = np.inf

    def matrix(self, kernel: Kernel) -> GramMatrix | None:
        """Return the part for the training rows."""
        # A row that a fold has twice is two rows, and in the matrix of all rows it is one.
        if tells_rows_apart(kernel) and len(np.unique(self.train)) < len(self.train):
            return None
        whole = self.matrices.matrix(kernel, self.most)
        return None if whole is None else whole.restrict(self.train, self.train)


@dataclass(frozen=True, eq=False)
class KernelValues:
    """Rows to predict for as kernel values with the training rows, by positions of the search.

    ``noiseless`` returns k(x, z) of each row of the matrix and an equal one, for a kernel where k(x, x) differs; else
    it is None.
    """

    whole: EvaluatedGram
    scored: Positions
    fitted: Positions
    noiseless: Callable[[], Vector] | None = None

    def __call__(self, positions: Positions) -> EvaluatedGram:
        """Return the values of some rows, (m, n), with k(x, x) of these."""
        rows = self.scored[positions]
        values = self.whole.for_new_rows(rows, self.fitted)
        if self.noiseless is None or not np.isin(rows, self.fitted).any():
            return values
        # In a prediction, a training row is as new as any other, and has none of its noise.
        at, columns = np.nonzero(rows[:, None] == self.fitted)
        return values.with_entries(at, columns, self.noiseless()[rows[at]])

    def squared_norms(self, positions: Positions) -> Vector:
        """Return k(x, x) of some rows, (m,)."""
        return np.asarray(self.whole.diagonal()[self.scored[positions]])


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The rows of a fold, after the steps before the learner.

    Attributes
    ----------
    matrices : FoldMatrices
        Of this fold, or of all folds if no step precedes the learner.
    train : callable
        Returns the rows to fit to. A fit drops its copy: of wide rows, one for every fold takes more than a matrix.
    fitted, scored : ndarray of int
        The rows of ``matrices`` that the fit takes, and, for each position of the search, the one that is scored.
    """

    matrices: FoldMatrices
    train: Callable[[], Any]
    fitted: Positions
    scored: Positions

    def source(self, most: float) -> TrainingMatrices:
        """Return where a fit finds its kernel matrices; ``most`` as for :meth:`FoldMatrices.matrix`."""
        return TrainingMatrices(self.matrices, self.fitted, most)

    def served(self, model: Any) -> Made:
        """Return a fitted learner with the rows to predict for: kernel values, where the matrix exists."""
        kernel = model.kernel_
        whole = self.matrices.matrix(kernel, model.most_shared_rows)
        if whole is None:
            return model, lambda positions: self.matrices.rows[self.scored[positions]]
        whole = whole.astype(model.predicts_in or self.matrices.dtype)
        noiseless = partial(self.matrices.noiseless, kernel) if tells_rows_apart(kernel) else None
        return model.on_kernel_values(), KernelValues(whole, self.scored, self.fitted, noiseless)


def untransformed(data: SearchData, learner: Any, n_jobs: int | None) -> list[FoldRows]:
    """Return the rows of each fold where no step precedes the learner: matrices are those of the rows of all folds."""
    used = np.unique(np.concatenate([part for fold in data.folds for part in (fold.train, fold.test)]))
    place = np.full(data.n, -1)
    place[used] = np.arange(len(used))
    rows = learner.checked_rows(data.X if len(used) == data.n else take_rows(data.X, used))
    matrices = FoldMatrices(rows, n_jobs)
    folds = [(fold, place[fold.train]) for fold in data.folds]
    if not isinstance(rows, (Objects, MixedRows)):
        return [FoldRows(matrices, partial(take_rows, data.X, fold.train), fitted, place) for fold, fitted in folds]
    # Reading objects takes longer than many fits, and so does the search for equal ones, which compares their keys.
    rows.keys()
    return [FoldRows(matrices, partial(_kept, rows[fitted]), fitted, place) for _, fitted in folds]


def transformed(data: SearchData, pipeline: Pipeline, fold: Fold, n_jobs: int | None) -> FoldRows:
    """Return the rows of a fold after all steps of a pipeline but the last."""
    steps = clone(pipeline)[:-1]
    y, _ = data.targets(fold)
    raw = take_rows(data.X, fold.train)
    train = steps.fit_transform(raw, y)
    rows = stacked(train, steps.transform(take_rows(data.X, fold.test)))
    n, m = len(fold.train), len(fold.test)
    scored = np.full(data.n, -1)
    scored[fold.train], scored[fold.test] = np.arange(n), n + np.arange(m)
    if data.train_scores:
        # Some steps, such as encoders by targets, transform the rows that they learn from in another way.
        again = steps.transform(raw)
        if not _are_equal(train, again):
            rows = stacked(rows, again)
            scored[fold.train] = n + m + np.arange(n)
    matrices = FoldMatrices(pipeline.steps[-1][1].checked_rows(rows), n_jobs)
    if isinstance(matrices.rows, (Objects, MixedRows)):
        train = matrices.rows[:n]
    return FoldRows(matrices, partial(_kept, train), np.arange(n), scored)


def _kept(rows: Any) -> Any:
    return rows


def take_rows(rows: Any, positions: Positions) -> Any:
    """Return some rows of an array, a sparse matrix, a data frame or a sequence.

    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[positions]
    return rows[positions] if hasattr(rows, "shape") else [rows[position] for position in positions]


def stacked(first: Any, second: Any) -> Any:
    """Return the rows of two parts, one after the other.

    >>> stacked(["a"], ["b", "c"])
    ['a', 'b', 'c']
    """
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if isinstance(first, list):
        return first + list(second)
    if hasattr(first, "iloc"):
        return optional("pandas", "joining data frames").concat([first, second])
    return np.concatenate([np.asarray(first), np.asarray(second)])


def _are_equal(first: Any, second: Any) -> bool:
    if sp.issparse(first):
        return (first != second).nnz == 0
    return bool(np.array_equal(np.asarray(first), np.asarray(second)))
