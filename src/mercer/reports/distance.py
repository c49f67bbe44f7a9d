"""How far new rows are from the training rows in feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._types import Vector
from mercer.kernels import Kernel
from mercer.plotting.drawing import legend
from mercer.plotting.palette import COLOURS, INK
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material

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
    >>> found = distances(Linear(), np.array([[0.5], [9.0]]), np.arange(4.0)[:, None], 0)
    >>> found.new.tolist(), found.limit, found.share
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


def measured(material: Material) -> Distances | None:
    """Return the distances of the judged rows; None if they are those of the fit, or rows cannot be compared."""
    subject = material.subject
    kernel = getattr(subject.learner, "kernel_", None)
    if material.X is None or not isinstance(kernel, Kernel) or kernel.definiteness == "indefinite":
        return None
    if material.judged is not None and material.judged.kind == "fit":
        return None
    training = subject.kept if material.train is None else subject.checked(material.train[0])
    if training is None or training.shape[0] < 2:
        return None
    return distances(kernel, subject.checked(material.X), training, material.seed)


def section(material: Material, found: Distances | None) -> Section | None:
    """Return how many rows are far from the training rows, if that is known."""
    if found is None:
        return None
    which = "training rows" if material.train is not None else "rows that the model keeps"
    text = (
        f"{found.share:.1%} of these rows are farther from the nearest of the {which}, in the feature space of the "
        f"kernel, than 95 % of those are from each other. For rows like those of the fit about 5 % are; if many more "
        "are, the model extrapolates."
    )
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
    values = np.quantile(found.training, levels), np.quantile(found.new, levels)
    rows = zip(levels.tolist(), *(side.tolist() for side in values))
    table = Table.of("Quantiles of the distances", ("share of the rows", "rows of the fit up to", "these up to"), rows)

    def draw(ax: Any) -> None:
        for number, (values, name) in enumerate(((found.training, which), (found.new, "these rows"))):
            ordered, shares = np.sort(values), np.arange(1, len(values) + 1) / len(values)
            ax.plot(ordered, shares, color=COLOURS[number], linestyle=("-", "--")[number], label=name)
        ax.axvline(found.limit, color=INK, linewidth=1.0, linestyle=":", label="95 % of the rows of the fit")
        ax.set(xlabel="distance to the nearest row", ylabel="share of the rows")
        legend(ax)

    picture = Figure("Distances in feature space", text, table, draw)
    facts = (("share of far rows", found.share), ("far beyond", found.limit))
    return Section("distance", "Rows far from the training rows", (text,), facts, (), (picture,))
