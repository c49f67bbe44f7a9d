"""Rows with a gap in a column that had none in training: averages over what the entry may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Integers, Positions
from mercer.data.columns import MixedRows

# Training rows whose entries stand in for one that is missing.
_DRAWS, _SEED = 50, 0


@dataclass(frozen=True, eq=False)
class NewGaps:
    """The rows of a table with new gaps, and draws of their features.

    Nothing was learnt of rows without that entry, which the encoding alone would take for the median with certainty.

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
    >>> draws = np.concatenate(list(gaps.draws()))
    >>> sorted(set(draws[:, 0].tolist())), set(draws[:, 1].tolist())
    ([1.0, 2.0, 3.0], {7.0})
    """

    rows: Positions
    features: Any
    missing: NDArray[np.bool_]
    known: Any

    @classmethod
    def of(cls, gaps: NDArray[np.bool_], features: Any, sources: Integers, known: Any) -> NewGaps | None:
        """From new gaps (m, d) of all rows, and the column that each feature comes from; None if there are no gaps."""
        rows = np.flatnonzero(gaps.any(axis=1))
        return cls(rows, features[rows], gaps[np.ix_(rows, sources)], known) if len(rows) else None

    def draws(self) -> Iterator[Any]:
        """The features of the rows with the entries of a training row in their gaps, for several training rows."""
        n = self.known.shape[0]
        for row in np.random.RandomState(_SEED).permutation(n)[:_DRAWS]:
            donor = self.known[np.array([row])]
            if isinstance(self.features, MixedRows):
                columns = list(self.features.columns)
                for place in np.flatnonzero(self.missing.any(axis=0)):
                    columns[place] = np.where(self.missing[:, place], donor.columns[place], columns[place])
                yield MixedRows(columns)
            else:
                yield np.where(self.missing, donor, self.features)
