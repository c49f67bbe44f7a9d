"""The choice of landmarks, checked before any work: the one function that maps and learners call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError, IndefiniteKernelError, ParameterError
from mercer._types import Positions, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects, short
from mercer.engine import memory, threads
from mercer.gram.pivots import bytes_needed
from mercer.kernels import Kernel
from mercer.kernels.parameters import whole
from mercer.landmarks import sampling
from mercer.landmarks.given import given_rows

METHODS = ("uniform", "kmeans", "leverage", "rpcholesky")
"""The names of the methods."""

# All methods but "uniform" look at a sample: this many rows for each landmark, and this many more. See
# docs/decisions/0087-landmarks-of-a-sample.md.
_EACH, _MORE = 2, 6000
_CHOICES = {"leverage": sampling.leverage, "rpcholesky": sampling.pivots}
_BYTES = {"kmeans": sampling.centres_bytes, "leverage": sampling.leverage_bytes, "rpcholesky": bytes_needed}


@dataclass(frozen=True)
class Names:
    """The names in messages: the class of the caller, and its parameters for the number and the choice of landmarks.

    >>> Names("KernelRidge").of(Names("KernelRidge").how)
    'KernelRidge: landmarks'
    """

    owner: str
    number: str = "n_landmarks"
    how: str = "landmarks"

    def of(self, parameter: str) -> str:
        """A parameter with its owner."""
        return f"{self.owner}: {parameter}"


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The rows that stand for all others.

    Attributes
    ----------
    rows : array, CSR matrix, Objects or MixedRows
        Of the kind of X; means of rows of a CSR matrix are an array.
    indices : ndarray of int or None
        Their positions in X; None for means of clusters and for given rows.
    """

    rows: Any
    indices: Positions | None


def choose(
    kernel: Kernel,
    X: Any,
    m: int,
    how: Any,
    random: np.random.RandomState,
    *,
    names: Names,
    sample_weight: Vector | None = None,
) -> Landmarks:
    """Choose landmarks for an approximation of the kernel matrix of ``X``.

    Parameters
    ----------
    kernel : Kernel
        Positive semi-definite.
    X : array, CSR matrix, Objects or MixedRows
        The checked rows.
    m : int
        Number of landmarks; not used if they are given. There are fewer if X has fewer rows, if fewer pivots leave
        nothing of the kernel matrix but rounding, or if equal rows leave clusters empty.
    how : {"uniform", "kmeans", "leverage", "rpcholesky"} or rows of the kind of X
        Rows with equal chances; means of k-means clusters; rows with chances in proportion to ridge leverage scores, or
        to what the previous ones leave of ``k(x, x)``. The last three work on a uniform sample of ``2 m + 6000`` rows,
        fewer if these do not fit the memory budget. Given rows are taken as they are, equal ones once.
    random : RandomState
    names : Names
        For messages.
    sample_weight : ndarray of shape (n,), optional
        How many rows each row stands for, at least 0 and not all 0; rows of weight 0 are never chosen.

    Returns
    -------
    Landmarks

    Raises
    ------
    IndefiniteKernelError
        If the kernel is not positive semi-definite.
    ParameterError
        If ``m`` or ``how`` is invalid.
    DataError
        If given rows are not comparable with those of X, or X has no means.
    MemoryBudgetError
        If the choice among twice as many rows as landmarks does not fit the memory budget.

    Warns
    -----
    MercerWarning
        If given rows occur more than once.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> chosen = choose(RBF(0.1), X, 4, "rpcholesky", np.random.RandomState(0), names=Names("KernelRidge"))
    >>> chosen.rows.shape, bool((X[chosen.indices] == chosen.rows).all())
    ((4, 1), True)
    """
    require_positive(kernel, names)
    m = whole(names.owner, names.number, m, "a whole number of at least 1")
    if not isinstance(how, str) and how is not None and not np.isscalar(how):
        return Landmarks(given_rows(kernel, X, how, names.of(names.how)), None)
    method = method_of(how, names, ", or rows of the kind of X")
    if method == "kmeans" and isinstance(X, (Objects, MixedRows)):
        raise DataError(
            f'{names.of(names.how)}="kmeans" needs rows of numbers, and X holds objects; choose another method.'
        )
    with threads.one_blas_thread():
        return _choose(kernel, X, m, method, random, sample_weight)


def require_positive(kernel: Kernel, names: Names) -> None:
    """Raise IndefiniteKernelError unless the kernel is positive semi-definite."""
    if kernel.definiteness != "positive":
        raise IndefiniteKernelError(
            f"{names.owner} needs a positive semi-definite kernel, but {kernel.indefinite_part()!r} is not. Choose "
            "another kernel."
        )


def method_of(how: Any, names: Names, others: str = "") -> str:
    """Return the name of a method; for anything else raise ParameterError. ``others`` says what else is allowed.

    >>> method_of("rpcholesky", Names("KernelRidge"))
    'rpcholesky'
    """
    if not isinstance(how, str) or how not in METHODS:
        allowed = ", ".join(map(repr, METHODS))
        raise ParameterError(f"{names.of(names.how)} must be one of {allowed}{others}, but is {short(how)}.")
    return how


def _choose(
    kernel: Kernel, X: Any, m: int, how: str, random: np.random.RandomState, weight: Vector | None
) -> Landmarks:
    """Choose by a method, among a sample of the rows with a positive weight."""
    candidates = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    weight = None if weight is None else weight[candidates]
    m = min(m, len(candidates))
    size = m if how == "uniform" else _sample_size(len(candidates), m, how)
    if size < len(candidates):
        sample = sampling.uniform(len(candidates), size, random, weight)
        # The sample was drawn by the weights: each of its rows stands for the same number of rows.
        candidates, weight = candidates[sample], None
    if how == "uniform":
        return Landmarks(X[candidates], candidates)
    rows = X if len(candidates) == X.shape[0] else X[candidates]
    if how == "kmeans":
        return Landmarks(sampling.centres(rows, m, random, weight), None)
    indices = candidates[_CHOICES[how](kernel, rows, m, random, weight)]
    return Landmarks(X[indices], indices)


def choice_bytes(n: int, m: int, how: str) -> int:
    """Memory for the choice of m landmarks among n rows by a method, in bytes.

    >>> choice_bytes(10_000, 100, "uniform"), choice_bytes(10_000, 100, "leverage")
    (0, 9920000)
    """
    m = min(m, n)
    return 0 if how == "uniform" else _BYTES[how](_sample_size(n, m, how), m)


def rows_seen(n: int, m: int, how: str) -> int:
    """How many of n rows a method looks at for m landmarks, if memory allows.

    >>> rows_seen(10_000, 100, "rpcholesky"), rows_seen(10_000, 100, "uniform")
    (6200, 100)
    """
    return min(m, n) if how == "uniform" else min(n, _EACH * m + _MORE)


def _sample_size(n: int, m: int, how: str) -> int:
    """Return how many of n rows a method looks at: fewer than it should if more do not fit the memory budget."""
    return memory.fitting(lambda rows: _BYTES[how](rows, m), min(n, _EACH * m + _MORE), min(n, _EACH * m))
