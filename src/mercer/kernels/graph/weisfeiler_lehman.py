"""Graphs compared by labels that describe growing neighbourhoods of each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.kernels.base import Searched
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.graph.counting import by_rows, edge_labels_of, ones, path_features, require_steps
from mercer.kernels.parameters import flag, one_of, whole
from mercer.loops.graphs import hash_pairs, refine

_BASES = ("subtree", "edge", "shortest-path")


@dataclass(frozen=True, repr=False)
class WeisfeilerLehman(FeatureKernel):
    """``k(G, H) = sum_{t=0}^{iterations} k_base(G_t, H_t)``, where G_t has the labels of step t.

    A node's label of step t + 1 stands for its label of step t together with those of its neighbours, each with the
    label of the edge that leads there.

    Parameters
    ----------
    iterations : int, default=5
        Steps of refinement; 0 uses the labels themselves.
    base : {"subtree", "edge", "shortest-path"}, default="subtree"
        What is compared at each step: the labels of nodes; the edges, by the labels of their ends and their own; or the
        shortest paths, as in :class:`ShortestPath`.
    edge_labels : bool, default=True
        Whether to compare the labels of edges, if there are any.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``iterations`` is not a whole number of at least 0, or ``base`` is not one of these.
    DataError
        When evaluated, if a row is not a graph.

    Notes
    -----
    Shervashidze, Schweitzer, van Leeuwen, Mehlhorn and Borgwardt (2011), "Weisfeiler-Lehman graph kernels". Labels are
    identified by hashes of 64 bits: two of a million different ones collide with a probability of 3e-8.

    Examples
    --------
    >>> path, triangle = [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]
    >>> WeisfeilerLehman(1)([(path,), (triangle,)]).tolist()  # 3 * 3 nodes, and 1 * 3 with two neighbours
    [[14.0, 12.0], [12.0, 18.0]]
    """

    iterations: int = 5
    base: str = "subtree"
    edge_labels: bool = True

    rows_of: ClassVar[type[Objects]] = Graphs
    searched: ClassVar[Searched] = {"iterations": (1, 2, 3, 5, 8)}

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = whole("WeisfeilerLehman", "iterations", self.iterations, "a whole number of at least 0", low=0)
        object.__setattr__(self, "iterations", steps)
        object.__setattr__(self, "edge_labels", flag("WeisfeilerLehman", "edge_labels", self.edge_labels))
        object.__setattr__(self, "base", one_of("WeisfeilerLehman", "base", self.base, _BASES))

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        things = len(joint.edges) if self.base == "edge" else len(joint.labels)
        what = f"labels of {things} {'edges' if self.base == 'edge' else 'nodes'}"
        require_steps(what, max(things, len(joint.labels)), self.iterations + 1)
        levels = np.stack([self._labels(objects, step) for step in range(self.iterations + 1)])
        if self.base == "shortest-path":
            return path_features(joint, levels, ordered=True)
        if self.base == "subtree":
            return ones(*by_rows(levels, joint.nodes))
        pairs = np.empty((len(levels), len(joint.edges)), np.uint64)
        for labels, out in zip(levels, pairs, strict=True):
            hash_pairs(labels, joint.edges, edge_labels_of(joint, self.edge_labels), out)
        return ones(*by_rows(pairs, joint.first_edge))

    def _labels(self, objects: Graphs, step: int) -> NDArray[np.uint64]:
        """The labels of the nodes after a number of steps, which kernels of more steps use as well."""
        joint = objects.joint()
        if step == 0:
            return joint.labels

        def refined() -> NDArray[np.uint64]:
            before, after = self._labels(objects, step - 1), np.empty_like(joint.labels)
            labels = edge_labels_of(joint, self.edge_labels)
            refine(before, joint.starts, joint.neighbours, joint.through, labels, after)
            return after

        labels: NDArray[np.uint64] = objects.keep(("refined labels", self.edge_labels, step), refined)
        return labels
