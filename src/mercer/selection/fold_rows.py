"""The rows of the folds of a search, and kernel matrices that all fits on them share."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from mercer._types import Positions
from mercer.gram import Gram
from mercer.gram.evaluated import EvaluatedGram
from mercer.gram.protocol import GramMatrix
from mercer.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of the rows to fit to, and of those to be scored on, in all rows of the search."""

    number: int
    train: Positions
    test: Positions


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
        self._wanted: set[Kernel] = set()
        self._lock = threading.Lock()
        self.count = 0
        """Matrices evaluated so far."""

    def matrix(self, kernel: Kernel) -> EvaluatedGram | None:
        """Return the matrix of all rows, or None if it does not fit the memory budget."""
        with self._lock:
            self._wanted.add(kernel)
            lock = self._locks.setdefault(kernel, threading.Lock())
        # Two folds may ask for the same matrix at once; others go on meanwhile.
        with lock:
            known = self._evaluated.get(kernel)
            if known is None:
                self._drop_unwanted()
                stack = ExitStack()
                gram = EvaluatedGram.evaluate(Gram(kernel, self.rows, n_jobs=self._n_jobs), stack)
                self._evaluated[kernel] = known = gram, stack
                self.count += gram is not None
        return known[0]

    def begin(self) -> None:
        """Begin another set of fits: what they do not ask for may give way."""
        with self._lock:
            self._wanted.clear()

    def close(self) -> None:
        """Give all matrices up."""
        self.begin()
        self._drop_unwanted()

    def _drop_unwanted(self) -> None:
        with self._lock:
            for kernel in [kernel for kernel in self._evaluated if kernel not in self._wanted]:
                self._evaluated.pop(kernel)[1].close()


@dataclass(frozen=True, eq=False)
class TrainingMatrices:
    """The matrices of one fold's training rows, as parts of those of all rows."""

    matrices: FoldMatrices
    train: Positions

    def matrix(self, kernel: Kernel) -> GramMatrix | None:
        """Return the part for the training rows."""
        whole = self.matrices.matrix(kernel)
        return None if whole is None else whole.restrict(self.train, self.train)


def stacked(first: Any, second: Any) -> Any:
    """Rows of two parts, one after the other.

    >>> stacked(["a"], ["b", "c"])
    ['a', 'b', 'c']
    """
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if isinstance(first, list):
        return first + list(second)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def taken(rows: Any, positions: Positions) -> Any:
    """Some of the rows, as scikit-learn takes them."""
    return _safe_indexing(rows, positions)
