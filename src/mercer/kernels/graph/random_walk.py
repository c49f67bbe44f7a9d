"""Graphs compared by the walks that they have in common."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Array
from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.engine import memory, threads
from mercer.kernels.graph.counting import edge_labels_of
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import flag, number
from mercer.loops.product_graph import WalkGraphs, WalkSide, walks

# As many are expected of a pair, for an estimate of the time.
_ITERATIONS = 32
# Up to this many nodes the spectral radius is that of the matrix, and above a bound of it.
_DENSE = 1000


def _radius(graphs: WalkGraphs, graph: int) -> float:
    """The largest eigenvalue of the adjacency matrix, or a bound of it."""
    n = graphs.nodes[graph + 1] - graphs.nodes[graph]
    steps = slice(graphs.firsts[graph], graphs.firsts[graph + 1])
    if n == 0 or steps.start == steps.stop:
        return 0.0
    if n > _DENSE:
        return float(np.bincount(graphs.begins[steps]).max())
    A = np.zeros((n, n))
    A[graphs.begins[steps], graphs.ends[steps]] = 1.0
    return float(np.linalg.eigvalsh(A)[-1])


@dataclass(frozen=True, repr=False)
class RandomWalk(PairKernel):
    """``k(G, H) = sum_l decay^l c_l(G, H)``, where c_l counts pairs of matching walks of l edges.

    Two walks match if their nodes have equal labels, one by one, and so do their edges. They are the walks in the
    direct product of the graphs, with adjacency matrix W: ``k(G, H) = 1' (I - decay W)^-1 1``.

    Parameters
    ----------
    decay : float, default=0.05
        The weight of each edge of a walk, small enough that the sum is finite: it is if ``decay < 1 / r^2``,
        for graphs whose adjacency matrices have eigenvalues of at most r. The largest degree is one such r.
    edge_labels : bool, default=True
        Whether to compare the labels of edges, if there are any.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``decay`` is not a number above 0.
    DataError
        When evaluated, if a row is not a graph.
    NumericalError
        When evaluated, if the sum over walks is infinite for two rows, with a decay for which it is finite.

    Notes
    -----
    Gärtner, Flach and Wrobel (2003), "On graph kernels: hardness results and efficient alternatives"; solved by
    conjugate gradients as in Vishwanathan, Schraudolph, Kondor and Borgwardt (2010), "Graph kernels", section 3.

    Examples
    --------
    >>> edge = ([(0, 1)], ["C", "C"])
    >>> float(RandomWalk(0.5)([edge])[0, 0])  # 4 pairs of walks of each length: 4 (1 + 1/2 + 1/4 + ...)
    8.0
    >>> RandomWalk(1.5)([edge])
    Traceback (most recent call last):
        ...
    mercer._errors.NumericalError: RandomWalk: the sum over walks is infinite for decay=1.5 at row 0 and row 0; for \
these graphs it is finite where decay is below 1.
    """

    decay: float = number(0.05, bounds=(1e-5, 1.0))
    edge_labels: bool = True

    rows_of: ClassVar[type[Objects]] = Graphs
    side: ClassVar[int] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "edge_labels", flag("RandomWalk", "edge_labels", self.edge_labels))

    def _packing(self) -> Hashable:
        return type(self).__name__, self.edge_labels

    def _pack(self, objects: Graphs) -> WalkGraphs:
        joint = objects.joint()
        begins = np.repeat(np.arange(len(joint.labels)), np.diff(joint.starts))
        marks = edge_labels_of(joint, self.edge_labels)[joint.through]
        graph = joint.graph_of_nodes()[begins]
        order = np.lexsort((begins, marks, graph))
        # Nodes within their graphs, in the order of edge labels.
        local = np.arange(len(joint.labels)) - np.repeat(joint.nodes[:-1], np.diff(joint.nodes))
        return WalkGraphs(
            joint.nodes,
            joint.labels,
            joint.starts[joint.nodes],
            local[begins[order]],
            local[joint.neighbours[order]],
            marks[order],
        )

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._walk(left, right, symmetric, np.empty((0, 0)), out)

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        return np.array([self._walk(left, right, False, weights, np.empty((0, 0)))])

    def _walk(self, left: Packed, right: Packed, symmetric: bool, weights: Array, out: Array) -> float:
        sizes = [int(np.diff(side.store.nodes)[side.index].max(initial=0)) for side in (left, right)]
        with memory.reserve(48 * sizes[0] * sizes[1], "walks on the product of two graphs"):
            both = WalkSide(left.store, left.index), WalkSide(right.store, right.index)
            arguments = *both, self.decay, symmetric, weights, out
            steps = float(out.size + weights.size) * sizes[0] * sizes[1] * _ITERATIONS
            slope, a, b = threads.interruptible(walks, arguments, steps)
        if a >= 0:
            self._diverges(left, right, int(left.index[a]), int(right.index[b]))
        return float(slope)

    def _diverges(self, left: Packed, right: Packed, row: int, other: int) -> Any:
        largest = max(_radius(side.store, int(g)) for side in (left, right) for g in side.index)
        raise NumericalError(
            f"RandomWalk: the sum over walks is infinite for decay={self.decay!r} at row {row} and row {other}; for "
            f"these graphs it is finite where decay is below {1 / largest**2:.4g}."
        )
