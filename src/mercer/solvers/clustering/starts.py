"""Where k-means begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Positions, Vector
from mercer.solvers.clustering.means import Labels, Means


@dataclass(frozen=True)
class Start:
    """A partition, distances from the first means, or a way to draw rows that are these.

    Parameters
    ----------
    kind : {"k-means++", "random", "labels", "distances"}
    value : ndarray, optional
        Labels of the rows, (n,), or squared distances from k points, (n, k).
    """

    kind: str
    value: Any = None

    @property
    def steps(self) -> int:
        """How many assignments it takes to come to a first partition."""
        return 0 if self.kind == "labels" else 1


def first_labels(start: Start, means: Means, weight: Vector, k: int, rng: np.random.RandomState) -> Labels:
    """The first partition; it may leave clusters empty."""
    if start.kind == "labels":
        return np.asarray(start.value, dtype=np.int32)
    if start.kind == "k-means++":
        return plus_plus(means, weight, k, rng)
    if start.kind == "distances":
        return np.asarray(start.value).argmin(axis=1).astype(np.int32)
    rows = rng.choice(len(weight), k, replace=False, p=weight / weight.sum())
    return means.to_rows(rows).argmin(axis=1).astype(np.int32)


def plus_plus(means: Means, weight: Vector, k: int, rng: np.random.RandomState) -> Labels:
    """Each next centre is a row drawn in proportion to its squared distance from those before.

    Of ``2 + log(k)`` draws the one counts that leaves the smallest sum of squared distances.

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding" (2007), sections 2.2 and 7.
    """
    draws = 2 + int(np.log(k))
    first = rng.choice(len(weight), p=weight / weight.sum())
    closest = means.to_rows(np.array([first], dtype=np.intp))[:, 0]
    labels = np.zeros(len(weight), np.int32)
    for number in range(1, k):
        shares = np.cumsum(weight * closest)
        if not shares[-1] > 0:
            # All rows lie on a centre.
            break
        candidates: Positions = np.searchsorted(shares, rng.uniform(size=draws) * shares[-1], side="right")
        squared = means.to_rows(np.minimum(candidates, len(weight) - 1))
        nearer = squared < closest[:, None]
        np.minimum(squared, closest[:, None], out=squared)
        best = int((weight @ squared).argmin())
        labels[nearer[:, best]] = number
        closest = np.ascontiguousarray(squared[:, best])
    return labels
