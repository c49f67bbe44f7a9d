"""Rows unlike those of training: averages over what may be in a new gap, and which rows have a new category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer._types import Array, Integers, Positions
from mercer.data.columns import MixedRows

DRAWS, FEW_DRAWS = 16, 4
"""Training rows whose entries stand in for a missing one, for means of predictions and for their variances.

A variance costs as much as n means for n training rows, and differs little between the draws."""

# Training rows that they are chosen from, at random.
_CANDIDATES, _SEED = 256, 0
# Of the exchanges that make them representative, at most so many rounds.
_SWEEPS, _ROUNDING = 20, 1e-12
# Rows that are predicted for at once.
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class NewGaps:
    """The rows of a table with new gaps, and draws of their features.

    Nothing was learnt of rows without that entry, which the encoding alone would take for the median with certainty.
    The draws of a row depend on its gaps alone, and not on other rows of the table.

    Parameters
    ----------
    rows : ndarray of shape (r,)
    features : ndarray or MixedRows of shape (r, p)
    missing : ndarray of shape (r, p)
        Which features are those of new gaps.
    known : ndarray or MixedRows of shape (n, p)
        Features of the training rows.

    Examples
    --------
    >>> known = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> gaps = NewGaps(np.array([0]), np.array([[0.0, 7.0]]), np.array([[True, False]]), known)
    >>> draws = gaps.predicted(lambda features: features)
    >>> draws.shape, sorted(set(draws[:, 0, 0].tolist())), set(draws[:, 0, 1].tolist())
    ((16, 1, 2), [1.0, 2.0, 3.0], {7.0})
    """

    rows: Positions
    features: Any
    missing: NDArray[np.bool_]
    known: Any

    @classmethod
    def of(cls, gaps: NDArray[np.bool_], features: Any, sources: Integers, known: Any) -> NewGaps | None:
        """From new gaps (m, d) of all rows, and the column that each feature comes from; None if there are no gaps.

        A gap in a column without features, which was constant or empty in training, says nothing.
        """
        missing = gaps[:, sources]
        rows = np.flatnonzero(missing.any(axis=1))
        return cls(rows, features[rows], missing[rows], known) if len(rows) else None

    def predicted(self, function: Callable[[Any], Array], draws: int = DRAWS) -> Array:
        """The values (draws, r, ...) of a function of features, with entries of training rows in the gaps.

        Parameters
        ----------
        function : callable
            From features (m, p) to values (m, ...).
        draws : int, default=16
        """
        r = len(self.rows)
        donors = self._donors(draws)
        together = max(1, _ROWS // r)
        parts = [function(self._filled(donors[start : start + together])) for start in range(0, draws, together)]
        values = np.concatenate(parts)
        return values.reshape(draws, r, *values.shape[1:])

    def _donors(self, draws: int) -> Positions:
        """The training rows (draws, r) whose entries stand in for the missing ones of each row."""
        patterns, which = np.unique(self.missing, axis=0, return_inverse=True)
        donors = np.empty((draws, len(self.rows)), dtype=np.intp)
        candidates = np.random.RandomState(_SEED).permutation(self.known.shape[0])[:_CANDIDATES]
        for number, pattern in enumerate(patterns):
            entries = _of_columns(self.known, np.flatnonzero(pattern))[candidates]
            donors[:, which.ravel() == number] = candidates[representative(entries, draws)][:, None]
        return donors

    def _filled(self, donors: Positions) -> Any:
        """The features (k r, p) of the rows, repeated for the training rows (k, r) that stand in."""
        features = self.features[np.tile(np.arange(len(self.rows)), len(donors))]
        missing, donors = np.tile(self.missing, (len(donors), 1)), donors.ravel()
        if not isinstance(features, MixedRows):
            return np.where(missing, self.known[donors], features)
        columns = list(features.columns)
        for place in np.flatnonzero(self.missing.any(axis=0)):
            columns[place] = np.where(missing[:, place], self.known.columns[place][donors], columns[place])
        return MixedRows(columns)


def have_new_categories(features: Any, known: Any, count: int) -> NDArray[np.bool_]:
    """Return which encoded rows have a feature that is 0 in every training row.

    Nothing was learnt about such a feature. It is the indicator of a category or weekday that is not in training, or of
    a missing category.

    Parameters
    ----------
    features : ndarray or MixedRows of shape (m, p)
    known : ndarray or MixedRows of shape (n, p)
        Features of the training rows.
    count : int
        Features that are numbers; these come before those that are text.

    Returns
    -------
    ndarray of bool of shape (m,)

    Examples
    --------
    >>> known = np.array([[0.3, 1.0, 0.0], [-0.3, 1.0, 0.0]])
    >>> have_new_categories(np.array([[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]), known, 3).tolist()
    [False, True]
    """
    places = np.arange(count)
    new = ~_of_columns(known, places).any(axis=0)
    return np.asarray(_of_columns(features, places)[:, new].any(axis=1))


def _of_columns(rows: Any, places: Positions) -> Array:
    """Some columns of numbers, (n, q)."""
    if isinstance(rows, MixedRows):
        return np.column_stack([rows.columns[place] for place in places])
    return np.asarray(rows[:, places])


def representative(points: Array, count: int) -> Positions:
    r"""Return the positions of some points that are distributed like all of them.

    Their energy distance to all n points is at a minimum: no single :math:`z_s` can be replaced by another point to
    make :math:`\frac{2}{n m} \sum_{i s} \lVert x_i - z_s \rVert - \frac{1}{m^2} \sum_{s t} \lVert z_s - z_t \rVert`
    smaller. In one dimension they are the quantiles of (s - 1/2) / m. A point may occur again.

    Parameters
    ----------
    points : ndarray of shape (n, q)
    count : int
        The number m.

    Returns
    -------
    ndarray of shape (count,)

    References
    ----------
    Mak and Joseph (2018), "Support points", Annals of Statistics 46.

    Examples
    --------
    >>> sorted(representative(np.arange(9.0)[:, None], 3).tolist())
    [1, 4, 7]
    """
    distances = cdist(points, points)
    to_all, to_chosen = distances.mean(axis=1), np.zeros(len(points))
    chosen: list[int] = []
    for step in range(count):
        chosen.append(int(np.argmin(to_all - to_chosen / (step + 1))))
        to_chosen += distances[chosen[-1]]
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for step in range(count):
            to_chosen -= distances[chosen[step]]
            values = to_all - to_chosen / count
            # Rounding decides nothing.
            if values.min() < values[chosen[step]] - _ROUNDING * (1.0 + to_all[chosen[step]]):
                chosen[step] = int(np.argmin(values))
            to_chosen += distances[chosen[step]]
        if chosen == before:
            break
    return np.array(chosen, dtype=np.intp)
