"""Kernels that count features: the value of a feature of the row, shared by the places where it occurs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.data.strings import Strings
from mercer.data.trees import Trees
from mercer.explain.graphs import edges_of, graph_paths, neighbourhood
from mercer.explain.result import Part
from mercer.explain.split import Sides, Split, split
from mercer.explain.strings import substring, words
from mercer.explain.trees import LabelledTree, tree_of
from mercer.kernels import (
    BagOfWords,
    BlendedSpectrum,
    EdgeHistogram,
    Graphlet,
    Propagation,
    PyramidMatch,
    ShortestPath,
    Spectrum,
    Subtree,
    VertexHistogram,
    WeisfeilerLehman,
)
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.graph.graphlet import graphlets
from mercer.kernels.own import FeatureKernel as OwnFeatureKernel


class Occurrences(NamedTuple):
    """The parts of a row in which its features occur; ``entries`` are those of the features that they belong to."""

    parts: list[Part]
    entries: NDArray[np.int64]

    @classmethod
    def in_order(cls, parts: list[Part]) -> Occurrences:
        """Return one part for each entry."""
        return cls(parts, np.arange(len(parts)))


@split.register
def _counted(kernel: FeatureKernel, sides: Sides) -> Split:
    """``sum_f w_f c_f(x) sum_i a_i c_f(z_i)``: a value for each entry of the features of x."""
    row = sides.x.objects(kernel.rows_of) if not isinstance(kernel, PyramidMatch) else kernel.read_rows(sides.x.raw)
    features = kernel._features(row)
    values = _values(kernel, features, sides)
    parts, entries = occurrences(kernel, row, features)
    shares = np.bincount(entries, minlength=len(values))
    item: Any = tree_of(row) if isinstance(row, Trees) else row[0]
    return Split(parts, values[entries] / shares[entries], item)


def _values(kernel: FeatureKernel, features: Features, sides: Sides) -> Vector:
    """Of each entry of the features of x."""
    table = kernel._table(sides.Z.objects(kernel.rows_of))
    weights = kernel._level_weights()
    starts, columns, counts = table.matrix
    of_rows = sp.csr_array((counts, columns, starts), shape=(len(starts) - 1, len(table.ids)))
    sums = weights[table.levels] * (of_rows.T @ sides.weights)
    order = np.argsort(table.ids, kind="stable")
    known = table.ids[order]
    place = np.minimum(np.searchsorted(known, features.ids), max(len(known) - 1, 0))
    values = np.zeros(len(features.ids))
    if len(known):
        matches = known[place] == features.ids
        values[matches] = features.counts[matches] * sums[order[place[matches]]]
    return values


@singledispatch
def occurrences(kernel: Any, row: Any, features: Features) -> Occurrences:
    """Return the parts of a container of one row in which its features occur."""
    return Occurrences.in_order([Part("feature", f"feature {number:016x}") for number in features.ids.tolist()])


@occurrences.register
def _own(kernel: OwnFeatureKernel, row: Objects, features: Features) -> Occurrences:
    return Occurrences.in_order([Part("feature", str(name)) for name in kernel.features(row[0])])


@occurrences.register(Spectrum)
@occurrences.register(BlendedSpectrum)
def _substrings(kernel: Spectrum | BlendedSpectrum, row: Strings, features: Features) -> Occurrences:
    shortest = kernel.length if isinstance(kernel, Spectrum) else 1
    item = row[0]
    # In the order of the features: from each position, the shortest first.
    lengths = range(shortest, min(kernel.length, len(item)) + 1)
    parts = [substring(item, at, k) for at in range(len(item)) for k in lengths if at + k <= len(item)]
    return Occurrences.in_order(parts)


@occurrences.register
def _words(kernel: BagOfWords, row: Strings, features: Features) -> Occurrences:
    known = None if kernel.idf is None else set(kernel.idf.words)
    occurring = [(word, part) for word, part in words(kernel, row[0]) if known is None or word in known]
    # Entries are the words by their first occurrence.
    entry = {word: number for number, word in enumerate(dict.fromkeys(word for word, _ in occurring))}
    return Occurrences([part for _, part in occurring], np.array([entry[word] for word, _ in occurring], np.int64))


@occurrences.register
def _subtrees(kernel: Subtree, row: Trees, features: Features) -> Occurrences:
    tree: LabelledTree = tree_of(row)
    sizes = row.nodes().sizes.tolist()
    nodes = [node for node, size in enumerate(sizes) if size >= kernel.smallest]
    return Occurrences.in_order(
        [Part("subtree", tree.text(node, sizes[node]), tuple(range(node, node + sizes[node]))) for node in nodes]
    )


@occurrences.register
def _nodes(kernel: VertexHistogram, row: Graphs, features: Features) -> Occurrences:
    graph = row[0]
    return Occurrences.in_order([neighbourhood(graph, row.joint(), node, 0) for node in range(graph.n)])


@occurrences.register
def _edges(kernel: EdgeHistogram, row: Graphs, features: Features) -> Occurrences:
    return Occurrences.in_order(edges_of(row[0]))


@occurrences.register
def _paths(kernel: ShortestPath, row: Graphs, features: Features) -> Occurrences:
    joint = row.joint()
    labels = joint.labels if kernel.labels else np.zeros_like(joint.labels)
    ids, parts = graph_paths(row[0], joint, labels[None], kernel.ordered)
    return _by_id(ids, parts, features)


def _by_id(ids: NDArray[np.uint64], parts: list[Part], features: Features) -> Occurrences:
    """Parts whose features are known by their numbers; the features of the row are those numbers in ascending order."""
    return Occurrences(parts, np.searchsorted(features.ids, ids))


@occurrences.register
def _neighbourhoods(kernel: WeisfeilerLehman, row: Graphs, features: Features) -> Occurrences:
    graph, joint = row[0], row.joint()
    steps = range(kernel.iterations + 1)
    if kernel.base == "shortest-path":
        levels = np.stack([kernel._labels(row, step) for step in steps])
        return _by_id(*graph_paths(graph, joint, levels, True), features)
    if kernel.base == "edge":
        return Occurrences.in_order([part for _ in steps for part in edges_of(graph)])
    return _each_step(row, kernel.iterations)


@occurrences.register
def _bins(kernel: Propagation, row: Graphs, features: Features) -> Occurrences:
    return _each_step(row, kernel.iterations)


def _each_step(row: Graphs, iterations: int) -> Occurrences:
    """Nodes with what is at most so many steps away: step by step, node by node."""
    graph, joint = row[0], row.joint()
    return Occurrences.in_order(
        [neighbourhood(graph, joint, node, step) for step in range(iterations + 1) for node in range(graph.n)]
    )


@occurrences.register
def _graphlets(kernel: Graphlet, row: Graphs, features: Features) -> Occurrences:
    matrices = graphlets(kernel.size)
    parts = []
    for number, count in zip(features.ids.tolist(), features.counts.tolist(), strict=True):
        edges = ", ".join(f"{i}-{j}" for i, j in np.argwhere(np.triu(matrices[number])).tolist())
        parts.append(Part("graphlet", f"{count:g} of {kernel.size} nodes with edges {edges or 'none'}"))
    return Occurrences.in_order(parts)


@occurrences.register
def _members(kernel: PyramidMatch, row: Any, features: Features) -> Occurrences:
    """One part for each vector of the set, which has an entry on each level."""
    each = kernel.levels + 1
    count = len(features.ids) // each
    parts = [Part("member", f"vector {i}, cells of level {level}", (i,)) for i in range(count) for level in range(each)]
    return Occurrences.in_order(parts)
