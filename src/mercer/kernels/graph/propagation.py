"""Graphs compared by attributes or labels that propagate from each node to its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri

from mercer._errors import DataError
from mercer._types import Array
from mercer.data.graphs import Graphs, JointGraph
from mercer.data.objects import Objects
from mercer.kernels.base import Searched
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.graph.counting import by_rows, ones, require_steps
from mercer.kernels.pairs import Pairs
from mercer.kernels.parameters import one_of, positive, whole
from mercer.loops.graphs import hash_bins, hash_numbers, join_each

_SOURCES = ("attributes", "labels", "both")
_DISTANCES = ("l1", "l2")
# Bins from here on are one.
_FAR = 2.0**62
_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, repr=False)
class Propagation(FeatureKernel):
    """``k(G, H) = sum_{t=0}^{iterations} sum_{u in G} sum_{v in H} [bin_t(u) = bin_t(v)]``.

    In each step the value of every node becomes the mean of the values of its neighbours: their attributes, or the
    distribution of their labels. The value of a node at step t falls into a bin of a random projection,
    ``floor((<w_t, x> + b_t) / bin_width)``, so that nodes with nearly equal values are likely to share it.

    Parameters
    ----------
    bin_width : float, default=1.0
        In the units of the attributes; shares of labels are from 0 to 1.
    iterations : int, default=5
        Number of steps; 0 compares the initial values.
    source : {"attributes", "labels", "both"}, default="attributes"
        The values of the nodes; with "both", two bins must agree.
    distance : {"l1", "l2"}, default="l1"
        The distance between values that determines how likely they share a bin: w_t has Cauchy or normal entries.
    seed : int, default=0
        Seed of the random numbers, which are the same for all rows and on all machines.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If a parameter is not one of these.
    DataError
        When evaluated, if a row is not a graph, or has no attributes, a different number of them than others, or too
        large ones.
    MemoryBudgetError
        When evaluated, if there are too many nodes and iterations.

    Notes
    -----
    Neumann, Garnett, Bauckhage and Kersting (2016), "Propagation kernels: efficient graph kernels from propagated
    information". A node without neighbours keeps its value.

    Examples
    --------
    >>> low, high = ([(0, 1)], None, None, [0.0, 0.1]), ([(0, 1)], None, None, [9.0, 9.0])
    >>> Propagation(iterations=1)([low, low, high]).tolist()
    [[8.0, 8.0, 0.0], [8.0, 8.0, 0.0], [0.0, 0.0, 8.0]]
    """

    bin_width: float = 1.0
    iterations: int = 5
    source: str = "attributes"
    distance: str = "l1"
    seed: int = 0

    rows_of: ClassVar[type[Objects]] = Graphs
    searched: ClassVar[Searched] = {"iterations": (1, 2, 3, 5, 8)}

    def __post_init__(self) -> None:
        super().__post_init__()
        width = positive("Propagation", "bin_width", self.bin_width, "a number above 0")
        steps = whole("Propagation", "iterations", self.iterations, "a whole number of at least 0", low=0)
        seed = whole("Propagation", "seed", self.seed, "a whole number of at least 0", low=0, high=_LARGEST_SEED)
        for name, number in {"bin_width": width, "iterations": steps, "seed": seed}.items():
            object.__setattr__(self, name, number)
        for name, value, allowed in (("source", self.source, _SOURCES), ("distance", self.distance, _DISTANCES)):
            object.__setattr__(self, name, one_of("Propagation", name, value, allowed))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        if self.source != "labels":
            _same_width(*(side.root.objects(Graphs) for side in (pairs.left, pairs.right)))
        super()._fill(pairs, out)

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        nodes = len(joint.labels)
        require_steps(f"bins of {nodes} nodes", nodes, self.iterations + 1)
        mean = _mean_of_neighbours(joint)
        levels = np.zeros((self.iterations + 1, len(joint.labels)), np.uint64)
        attributes = None if self.source == "labels" else objects.attributes()
        for step, out in enumerate(levels):
            out[:] = hash_numbers(np.array([step]))
            if attributes is not None:
                values = self._projected(attributes, step)
                self._join_bins(values, 2 * step, out)
                attributes = mean @ attributes
            if self.source != "attributes":
                distinct, which = np.unique(joint.labels, return_inverse=True)
                # The projection of a distribution of labels spreads as the distribution does.
                values = self._direction(step + self.iterations + 1, distinct)[which]
                for _ in range(step):
                    values = mean @ values
                self._join_bins(values, 2 * step + 1, out)
        return ones(*by_rows(levels, joint.nodes))

    def _projected(self, attributes: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        """The attributes along the direction of a step."""
        with np.errstate(over="ignore", invalid="ignore"):
            values: NDArray[np.float64] = attributes @ self._direction(
                step, hash_numbers(np.arange(attributes.shape[1]))
            )
        if not np.isfinite(values).all():
            raise DataError(
                f"Propagation: the attributes reach {np.abs(attributes).max():g}, so their sums overflow; scale them."
            )
        return values

    def _direction(self, number: int, axes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """A random number for each axis, whose hashes are given, in direction ``number``."""
        # Inside (0, 1): hashes of 64 bits, of which 52 are kept.
        u = ((join_each(self._hash(number), axes) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52
        return np.tan(np.pi * (u - 0.5)) if self.distance == "l1" else ndtri(u)

    def _hash(self, number: int) -> np.uint64:
        hashes: NDArray[np.uint64] = hash_numbers(np.array([self.seed, number]))
        return join_each(hashes[0], hashes[1:])[0]

    def _join_bins(self, values: NDArray[np.float64], number: int, out: NDArray[np.uint64]) -> None:
        """Add the bins of the values to the ids of the nodes."""
        shift = float(self._hash(-1 - number) >> np.uint64(12)) / 2.0**52
        with np.errstate(over="ignore"):
            bins = np.clip(np.floor(values / self.bin_width + shift), -_FAR, _FAR).astype(np.int64)
        hash_bins(bins, out)


def _mean_of_neighbours(joint: JointGraph) -> sp.csr_array:
    """The matrix of the means over neighbours; a node without any is its own."""
    n = len(joint.labels)
    degrees = np.diff(joint.starts)
    alone = (degrees == 0).astype(np.float64)
    weights = np.repeat(1.0 / np.maximum(degrees, 1), degrees)
    return sp.csr_array((weights, joint.neighbours, joint.starts), shape=(n, n)) + sp.diags_array(alone)


def _same_width(one: Any, other: Any) -> None:
    widths = [side.attributes().shape[1] for side in (one, other) if len(side.joint().labels)]
    if len(set(widths)) > 1:
        raise DataError(
            f"Propagation: the nodes of one side have {widths[0]} attributes, but those of the other have {widths[1]}."
        )
