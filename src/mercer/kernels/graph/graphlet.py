"""Graphs compared by the small graphs that they contain."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._errors import ParameterError
from mercer.data.graphs import Graphs, JointGraph
from mercer.data.objects import Objects
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import flag, whole
from mercer.loops.graphlets import connected_parts, drawn_parts
from mercer.loops.graphs import OneGraph, hash_numbers

# Graphs whose parts are counted by one task.
_ROWS = 64


@dataclass(frozen=True, repr=False)
class Graphlet(FeatureKernel):
    """``k(G, H) = sum_F count_F(G) count_F(H)`` over the graphs F of ``size`` nodes; labels are ignored.

    ``count_F(G)`` is the number of sets of nodes of G that have exactly the edges of F between them.

    Parameters
    ----------
    size : {3, 4, 5}, default=4
        Nodes of a graphlet.
    connected : bool, default=True
        Whether to count only connected graphlets (2, 6 or 21 of them) or all (4, 11 or 34).
    samples : int, optional
        Sets of nodes to draw from each graph at random, from which its counts are estimated; by default all are
        counted. All graphlets of 5 nodes can only be sampled.
    seed : int, default=0
        Seed of ``samples``; equal graphs get the same draws.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``size`` is not one of these, or if all graphlets of 5 nodes are to be counted.
    DataError
        When evaluated, if a row is not a graph.

    Notes
    -----
    Shervashidze, Vishwanathan, Petri, Mehlhorn and Borgwardt (2009), "Efficient graphlet kernels for large graph
    comparison". Connected graphlets are enumerated, and the counts of the others follow from theirs.

    Examples
    --------
    >>> path, triangle = [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (0, 2)]
    >>> Graphlet(3)([(path,), (triangle,)]).tolist()
    [[4.0, 0.0], [0.0, 1.0]]
    """

    size: int = 4
    connected: bool = True
    samples: int | None = None
    seed: int = 0

    rows_of: ClassVar[type[Objects]] = Graphs
    searched: ClassVar[Searched] = {"size": (3, 4)}

    def __post_init__(self) -> None:
        super().__post_init__()
        size = whole("Graphlet", "size", self.size, "3, 4 or 5", low=3)
        if size > 5:
            raise ParameterError(f"Graphlet: size must be 3, 4 or 5, but is {size}.")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "connected", flag("Graphlet", "connected", self.connected))
        if self.samples is not None:
            samples = whole("Graphlet", "samples", self.samples, "None or a whole number above 0")
            object.__setattr__(self, "samples", samples)
        elif size == 5 and not self.connected:
            raise ParameterError(
                "Graphlet: counting all graphlets of 5 nodes is not supported; set samples, or connected=True."
            )
        seed = whole("Graphlet", "seed", self.seed, "a whole number of at least 0", low=0, high=2**63 - 1)
        object.__setattr__(self, "seed", seed)

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        if self.samples is None:
            counts = _connected(joint, self.size)
            if not self.connected:
                counts += _separate(joint, self.size, counts)
        else:
            counts = self._drawn(joint, objects.keys(), self.samples)
        rows, columns = np.nonzero(counts)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=len(counts)))])
        return Features(columns.astype(np.uint64), counts[rows, columns], starts)

    def _drawn(self, joint: JointGraph, keys: NDArray[np.uint64], samples: int) -> NDArray[np.float64]:
        """Estimates of the counts, (graphs, graphlets)."""
        sizes = np.diff(joint.nodes)
        seeds = keys ^ hash_numbers(np.array([self.seed]))[0]

        def count(row: int, counts: NDArray[np.float64]) -> None:
            if sizes[row] >= self.size:
                arguments = (_graph(joint, row), self.size, samples, seeds[row], counts)
                threads.interruptible(drawn_parts, arguments, float(samples))

        counts = _tallied(joint, self.size, count)
        if self.connected:
            counts[:, ~_connectivity(self.size)] = 0.0
        return counts * np.array([math.comb(n, self.size) / samples for n in sizes.tolist()])[:, None]


def _graph(joint: JointGraph, row: int) -> OneGraph:
    return OneGraph(joint.nodes[row], joint.nodes[row + 1], joint.starts, joint.neighbours)


def _connected(joint: JointGraph, size: int) -> NDArray[np.float64]:
    """How often each graph has each connected graphlet, (graphs, graphlets)."""
    degrees = np.diff(joint.starts)

    def count(row: int, counts: NDArray[np.float64]) -> None:
        own = degrees[joint.nodes[row] : joint.nodes[row + 1]]
        steps = float(own.sum()) * float(own.max(initial=0)) ** (size - 2)
        threads.interruptible(connected_parts, (_graph(joint, row), size, counts), steps)

    return _tallied(joint, size, count)


def _tallied(joint: JointGraph, size: int, count: Callable[[int, NDArray[np.float64]], None]) -> NDArray[np.float64]:
    """What ``count(row, counts)`` adds to counts by code, as counts by graphlet: (graphs, graphlets)."""
    classes, total = _classes(size)
    rows = len(joint.nodes) - 1
    tallies = np.empty((rows, total))

    def task(begin: int) -> Callable[[], None]:
        def work() -> None:
            for row in range(begin, min(begin + _ROWS, rows)):
                threads.checkpoint()
                counts = np.zeros(len(classes))
                count(row, counts)
                tallies[row] = np.bincount(classes, counts, total)

        return work

    threads.run([task(begin) for begin in range(0, rows, _ROWS)])
    return tallies


def _separate(joint: JointGraph, size: int, connected: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each graph has each graphlet that is not connected, from how often it has the connected ones.

    Parts that need not be joined are counted by pairs, triples, ... of nodes and edges; those in which they are joined
    are then subtracted.
    """
    proper = joint.edges[joint.edges[:, 0] != joint.edges[:, 1]]
    graph = joint.graph_of_nodes()
    n = np.diff(joint.nodes).astype(np.float64)
    m = np.bincount(graph[proper[:, 0]], minlength=len(n)).astype(np.float64)
    degrees = np.bincount(proper.ravel(), minlength=len(graph)).astype(np.float64)
    corners = np.bincount(graph, degrees * (degrees - 1) / 2, len(n))
    shapes = _shapes(size)
    tallies = np.zeros_like(connected)

    def fill(shape: tuple[int, int, int, int], each: int, pairs: NDArray[np.float64]) -> None:
        """The graphlet of that shape, with the given total of parts number ``each``."""
        column = int(np.flatnonzero((shapes == shape).all(axis=1))[0])
        tallies[:, column] = (pairs - (connected + tallies) @ shapes[:, each]) / max(shapes[column, each], 1)

    # A shape: edges, pairs of edges that have no end in common, paths of two edges, triangles.
    if size == 3:
        fill((1, 0, 0, 0), 0, m * (n - 2))
        everything = n * (n - 1) * (n - 2) / 6
    else:
        three = _connected(joint, 3)
        path, triangle = (int(np.flatnonzero(_shapes(3)[:, 0] == edges)[0]) for edges in (2, 3))
        fill((3, 0, 0, 1), 3, three[:, triangle] * (n - 3))
        fill((2, 0, 1, 0), 2, three[:, path] * (n - 3))
        fill((2, 1, 0, 0), 1, m * (m - 1) / 2 - corners)
        fill((1, 0, 0, 0), 0, m * (n - 2) * (n - 3) / 2)
        everything = n * (n - 1) * (n - 2) * (n - 3) / 24
    tallies[:, int(np.flatnonzero((shapes == 0).all(axis=1))[0])] = everything - (connected + tallies).sum(axis=1)
    return tallies


@functools.cache
def _classes(size: int) -> tuple[NDArray[np.int64], int]:
    """Which graphlet each code is, up to the order of its nodes, and how many graphlets there are."""
    codes = np.arange(1 << (size * (size - 1) // 2))
    least = codes.copy()
    for order in itertools.permutations(range(size)):
        moved = np.zeros_like(codes)
        for i, j in itertools.combinations(range(size), 2):
            low, high = sorted((order[i], order[j]))
            moved |= (codes >> _bit(i, j) & 1) << _bit(low, high)
        np.minimum(least, moved, out=least)
    distinct, classes = np.unique(least, return_inverse=True)
    return classes, len(distinct)


def _bit(i: int, j: int) -> int:
    return j * (j - 1) // 2 + i


@functools.cache
def graphlets(size: int) -> NDArray[np.int64]:
    """Return an adjacency matrix of each graphlet, (graphlets, size, size), in the order of the kernel's features.

    >>> graphlets(3).sum(axis=(1, 2)).tolist()
    [0, 2, 4, 6]
    """
    classes, total = _classes(size)
    _, codes = np.unique(classes, return_index=True)
    A = np.zeros((total, size, size), np.int64)
    for i, j in itertools.combinations(range(size), 2):
        A[:, i, j] = A[:, j, i] = codes >> _bit(i, j) & 1
    return A


def _connectivity(size: int) -> NDArray[np.bool_]:
    """Which graphlets are connected."""
    reached = np.linalg.matrix_power(graphlets(size) + np.eye(size, dtype=np.int64), size - 1)
    return np.asarray((reached > 0).all(axis=(1, 2)))


@functools.cache
def _shapes(size: int) -> NDArray[np.float64]:
    """Of each graphlet: edges, pairs of edges without a common end, sets of three nodes with two edges, with three."""
    A = graphlets(size)
    edges, degrees = A.sum(axis=(1, 2)) / 2, A.sum(axis=1)
    triples = [A[:, i, j] + A[:, j, k] + A[:, i, k] for i, j, k in itertools.combinations(range(size), 3)]
    two, three = (np.sum([triple == count for triple in triples], axis=0) for count in (2, 3))
    disjoint_pairs = edges * (edges - 1) / 2 - (degrees * (degrees - 1) / 2).sum(axis=1)
    return np.stack([edges, disjoint_pairs, two, three], axis=1).astype(np.float64)
