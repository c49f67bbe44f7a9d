"""How far new rows are from the training rows in feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Vector
from mercer.kernels import Kernel
from mercer.reports.subject import Subject

_LEVEL = 0.95
# Rows of either side that are compared; of objects fewer, which are slow to compare.
_MOST, _MOST_OBJECTS = 1000, 150


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances in feature space to the nearest training row.

    Parameters
    ----------
    training : ndarray of shape (n,)
        Of training rows, to the nearest other one.
    new : ndarray of shape (m,)
        Of new rows.
    limit : float
        95 % of the training rows are nearer than this.
    """

    training: Vector
    new: Vector
    limit: float

    @property
    def share(self) -> float:
        """The share of the new rows beyond the limit; about 0.05 for rows like those of the fit."""
        # Beyond rounding: rows that repeat training rows are at distance 0.
        room = 1e-7 * max(1.0, float(self.training.max()))
        return float(np.mean(self.new > self.limit + room))


def distances(kernel: Kernel, new: Any, training: Any, seed: int) -> Distances:
    r"""Compare rows by :math:`d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)`.

    Of many rows a sample is compared.

    Parameters
    ----------
    kernel : Kernel
    new : rows
        m of them, as the kernel takes them.
    training : rows
        n of them, at least two.
    seed : int
        Of the samples.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> measured = distances(Linear(), np.array([[0.5], [9.0]]), np.arange(4.0)[:, None], 0)
    >>> measured.new.tolist(), measured.limit, measured.share
    ([0.5, 6.0], 1.0, 0.5)
    """
    most = _MOST if sp.issparse(training) or isinstance(training, np.ndarray) else _MOST_OBJECTS
    random = np.random.default_rng(seed)
    order = random.permutation(training.shape[0])
    reference = training[np.sort(order[:most])]
    # Rows beyond the sample are new to it; with too few of those, each row of the sample is left out in turn.
    others = np.sort(order[most : 2 * most])
    probes = reference if len(others) < most // 2 else training[others]
    shown = np.sort(random.permutation(new.shape[0])[:most])
    return _compared(kernel, reference, probes, new[shown], itself=probes is reference)


def _compared(kernel: Kernel, reference: Any, probes: Any, new: Any, *, itself: bool) -> Distances:
    lengths = np.asarray(kernel.diagonal(reference), dtype=np.float64)

    def nearest(rows: Any, same: bool) -> Vector:
        K = np.asarray(kernel.block(rows, reference), dtype=np.float64)
        squares = np.asarray(kernel.diagonal(rows), dtype=np.float64)[:, None] + lengths - 2.0 * K
        if same:
            np.fill_diagonal(squares, np.inf)
        return np.sqrt(np.maximum(squares.min(axis=1), 0.0))

    training = nearest(probes, itself)
    return Distances(training, nearest(new, False), float(np.quantile(training, _LEVEL)))


def measured(subject: Subject, X: Any, train: Any, seed: int) -> Distances | None:
    """Return the distances of new rows; None if rows cannot be compared.

    Parameters
    ----------
    subject : Subject
    X : rows
        New ones, as the model takes them.
    train : rows, optional
        Those of the fit, as the model takes them; by default those that the model keeps.
    seed : int
        Of samples.
    """
    kernel = getattr(subject.learner, "kernel_", None)
    if not isinstance(kernel, Kernel) or kernel.definiteness == "indefinite":
        return None
    training = subject.kept if train is None else subject.checked(train)
    if training is None or training.shape[0] < 2:
        return None
    return distances(kernel, subject.checked(X), training, seed)
