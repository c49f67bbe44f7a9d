"""Graphs: rows of X made of nodes, edges between them, and their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.data.graph import Graph, as_graph, is_networkx
from mercer.data.graph_attributes import UnusedAttributes
from mercer.data.objects import Objects
from mercer.engine import memory
from mercer.loops.graphs import hash_numbers

# What the labels of a graph are.
_NONE, _NUMBERS, _TEXT = range(3)
# First neighbour, label, and row of the label while it is made.
_NODE_BYTES = 24
_UNLABELLED = np.uint64(0x5851F42D4C957F2D)


class Graphs(Objects):
    """Rows that are graphs: :class:`mercer.Graph`, networkx graphs, or their parts as a dict or a tuple.

    From networkx graphs the node and edge attribute ``"label"`` and the node attribute ``"attributes"`` are read. Other
    attributes that differ between nodes or edges are ignored with a warning; :meth:`mercer.Graph.from_networkx` reads
    them.

    Examples
    --------
    >>> triangle = [(0, 1), (1, 2), (0, 2)]
    >>> Graphs.of([(triangle, ["C", "C", "O"]), {"edges": [(0, 1)], "n": 3}, Graph(n=0)])
    [Graph(n=3, edges=3, labels), Graph(n=3, edges=1), Graph(n=0, edges=0)]
    >>> Graphs.of([(triangle,), 3.5])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 1 of X: a graph must be a mercer.Graph, a graph of networkx, a dict of its parts or \
a tuple (edges, labels, edge_labels, attributes), but is 3.5.
    """

    kind = "graphs"

    def __init__(self, arrays: GraphArrays | Iterable[Graph]) -> None:
        super().__init__(arrays.split() if isinstance(arrays, GraphArrays) else arrays)

    @staticmethod
    def read(item: Any) -> Graph:
        return as_graph(item)

    @classmethod
    def read_each(cls, items: Iterable[Any], name: str = "X", read: Callable[[Any], Any] | None = None) -> list[Any]:
        items = list(items)
        rows = super().read_each(items, name, read)
        _warn_of_networkx(items, rows, name)
        for what, labels, counts in (
            ("node", [g.labels for g in rows], [g.n for g in rows]),
            ("edge", [g.edge_labels for g in rows], [len(g.edges) for g in rows]),
        ):
            _warn_of_mixed([_kind(part) if count else None for part, count in zip(labels, counts)], what, name)
        return rows

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        return item.fingerprint()

    @cached_property
    def arrays(self) -> GraphArrays:
        """All rows in a few arrays, as model files and pickles store them."""
        return GraphArrays.of(self.items.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.arrays,)

    def joint(self) -> JointGraph:
        """All rows as one disconnected graph."""
        joint: JointGraph = self.keep("joint", lambda: _joint(self.items.tolist()))
        return joint

    def attributes(self) -> NDArray[np.float64]:
        """Return the attributes of all nodes, (nodes, d).

        Raises
        ------
        DataError
            If a graph with nodes has no attributes, or their number differs between graphs; the message names its row.
        """
        attributes: NDArray[np.float64] = self.keep("attributes", self._attributes)
        return attributes

    def _attributes(self) -> NDArray[np.float64]:
        parts: list[np.ndarray] = []
        for row, graph in enumerate(self):
            if graph.n == 0:
                continue
            if graph.attributes is None:
                raise DataError(f"row {row} of the graphs has no attributes; pass at least one number per node.")
            if parts and graph.attributes.shape[1] != parts[0].shape[1]:
                raise DataError(
                    f"the nodes of row {row} of the graphs have {graph.attributes.shape[1]} attributes, and those of "
                    f"rows before it {parts[0].shape[1]}."
                )
            parts.append(graph.attributes)
        return _concatenated(parts, np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """Graphs one after the other.

    ``sizes`` are their numbers of nodes, edges, and attributes of a node (-1 for none), ``kinds`` what the labels of
    their nodes and edges are: 0 for none, 1 for numbers, 2 for text, of which ``labels`` has the position in ``texts``.
    """

    sizes: np.ndarray
    kinds: np.ndarray
    edges: np.ndarray
    labels: np.ndarray
    edge_labels: np.ndarray
    texts: np.ndarray
    attributes: np.ndarray

    def __post_init__(self) -> None:
        forms = {"sizes": ("i", 2), "kinds": ("i", 2), "edges": ("i", 2), "texts": ("UO", 1), "attributes": ("f", 1)}
        for field in fields(self):
            array, (kind, ndim) = getattr(self, field.name), forms.get(field.name, ("i", 1))
            if array.dtype.kind not in kind or array.ndim != ndim:
                raise DataError(f"{field.name} must be an array of kind {kind!r} with {ndim} axes.")
        if self.texts.dtype == object and not all(isinstance(text, str) for text in self.texts):
            raise DataError("texts must hold text.")
        rows = len(self.sizes)
        if self.sizes.shape != (rows, 3) or self.kinds.shape != (rows, 2) or (self.sizes < [0, 0, -1]).any():
            raise DataError("the sizes of graphs are three numbers a row and their kinds of labels two.")
        if [int(count.sum()) for count in self._counts()] != [
            len(self.edges),
            len(self.labels),
            len(self.edge_labels),
            len(self.attributes),
        ]:
            raise DataError("the sizes of graphs do not add up to their edges, labels and attributes.")

    def _counts(self) -> tuple[NDArray[np.int64], ...]:
        """How many edges, labels, edge labels and numbers each row has."""
        n, m, d = self.sizes.T
        node, edge = (self.kinds != _NONE).T
        return m, np.where(node, n, 0), np.where(edge, m, 0), n * np.maximum(d, 0)

    @classmethod
    def of(cls, graphs: list[Graph]) -> GraphArrays:
        """Return the arrays of these graphs."""
        sizes = [(g.n, len(g.edges), -1 if g.attributes is None else g.attributes.shape[1]) for g in graphs]
        nodes, edges = [g.labels for g in graphs], [g.edge_labels for g in graphs]
        texts = [part for part in (*nodes, *edges) if _kind(part) == _TEXT]
        table = np.unique(np.concatenate(texts)) if texts else np.empty(0, "<U1")
        return cls(
            np.array(sizes, np.int64).reshape(-1, 3),
            np.array([(_kind(g.labels), _kind(g.edge_labels)) for g in graphs], np.int64).reshape(-1, 2),
            _concatenated([g.edges for g in graphs], np.empty((0, 2), np.int64)),
            _coded(nodes, table),
            _coded(edges, table),
            table,
            _concatenated([g.attributes.ravel() for g in graphs if g.attributes is not None], np.empty(0)),
        )

    def split(self) -> list[Graph]:
        """Return the graphs, each checked again."""
        m, labelled, edge_labelled, numbers = ([0, *np.cumsum(count).tolist()] for count in self._counts())
        graphs = []
        for i, ((n, _, d), kinds) in enumerate(zip(self.sizes.tolist(), self.kinds.tolist(), strict=True)):
            attributes = self.attributes[numbers[i] : numbers[i + 1]].reshape(n, d) if d >= 0 else None
            graphs.append(
                Graph(
                    self.edges[m[i] : m[i + 1]],
                    self._decoded(self.labels[labelled[i] : labelled[i + 1]], kinds[0]),
                    self._decoded(self.edge_labels[edge_labelled[i] : edge_labelled[i + 1]], kinds[1]),
                    attributes,
                    n,
                )
            )
        return graphs

    def _decoded(self, codes: np.ndarray, kind: int) -> np.ndarray | None:
        if kind == _TEXT and codes.size and not 0 <= codes.min() <= codes.max() < len(self.texts):
            raise DataError("a label of a graph is not among the texts.")
        return None if kind == _NONE else self.texts[codes] if kind == _TEXT else codes


def _warn_of_networkx(items: list[Any], rows: list[Graph], name: str) -> None:
    """Name what is not used of graphs of networkx."""
    found = [(row, item) for row, item in enumerate(items) if not isinstance(item, Graph) and is_networkx(item)]
    unused = UnusedAttributes(
        (data for _, item in found for _, data in item.nodes(data=True)),
        (data for _, item in found for _, _, data in item.edges(data=True)),
    )
    unused.warn(
        f"Choose others with [Graph.from_networkx({unused.call()}) for graph in {name}]; "
        f"[Graph.from_networkx(graph) for graph in {name}] leaves them out."
    )
    parallel = next((row for row, item in found if len(item.edges()) > len(rows[row].edges)), None)
    if parallel is not None:
        warn_user(
            f"row {parallel} of {name} has parallel edges, which count as one. If their number matters, pass graphs "
            "with single edges whose attribute 'label' is that number.",
            MercerWarning,
        )


def _warn_of_mixed(kinds: list[int | None], what: str, name: str) -> None:
    """Say so if some rows have labels where others have none, or labels of another kind."""
    rows = {kind: row for row, kind in reversed(list(enumerate(kinds))) if kind is not None}
    if len(rows) > 1:
        words = ("no {what} labels", "whole numbers as {what} labels", "text as {what} labels")
        listed = [f"row {row} has {words[kind].format(what=what)}" for kind, row in sorted(rows.items(), key=_second)]
        warn_user(
            f"the graphs of {name} have {what} labels of different kinds, which never match: {', '.join(listed)}. "
            "Kernels that compare labels find nothing in common between such graphs. Label all of them, with text or "
            "with whole numbers, or none.",
            MercerWarning,
        )


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def _kind(labels: np.ndarray | None) -> int:
    return _NONE if labels is None else _TEXT if labels.dtype.kind in "UO" else _NUMBERS


def _coded(parts: list[np.ndarray | None], table: np.ndarray) -> NDArray[np.int64]:
    arrays = [part for part in parts if part is not None]
    codes = [np.searchsorted(table, part) if _kind(part) == _TEXT else part for part in arrays]
    return _concatenated(codes, np.empty(0, np.int64))


def _concatenated(parts: list[np.ndarray], empty: np.ndarray) -> np.ndarray:
    return np.concatenate(parts) if parts else empty


class JointGraph(NamedTuple):
    """Graphs as one: nodes and edges are numbered one graph after the other.

    ``nodes[i]`` is the first node of graph i and ``first_edge[i]`` its first edge. The neighbours of node v are
    ``neighbours[starts[v] : starts[v + 1]]``, ascending, reached by the edges ``through`` of the same places. Labels
    are numbers of 64 bits, the same in every process for equal labels.
    """

    nodes: NDArray[np.int64]
    first_edge: NDArray[np.int64]
    edges: NDArray[np.int64]
    starts: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    through: NDArray[np.int64]
    labels: NDArray[np.uint64]
    edge_labels: NDArray[np.uint64]

    def graph_of_nodes(self) -> NDArray[np.int64]:
        """The graph that each node belongs to."""
        return np.repeat(np.arange(len(self.nodes) - 1), np.diff(self.nodes))


def _joint(graphs: list[Graph]) -> JointGraph:
    sizes, counts = [g.n for g in graphs], [len(g.edges) for g in graphs]
    memory.require(
        _NODE_BYTES * sum(sizes),
        f"the {sum(sizes)} nodes of {len(graphs)} graphs",
        "Number the nodes of each graph from 0 without gaps, or raise the budget with mercer.config(memory=...).",
    )
    nodes, first_edge = _running(sizes), _running(counts)
    edges = np.concatenate([g.edges for g in graphs]) + np.repeat(nodes[:-1], counts)[:, None]
    # A node that is joined to itself has itself as a neighbour once.
    back = np.flatnonzero(edges[:, 0] != edges[:, 1])
    ends = np.concatenate([edges[:, 1], edges[back, 0]])
    begins = np.concatenate([edges[:, 0], edges[back, 1]])
    order = np.lexsort((ends, begins))
    return JointGraph(
        nodes,
        first_edge,
        edges,
        _running(np.bincount(begins, minlength=nodes[-1])),
        ends[order],
        np.concatenate([np.arange(len(edges)), back])[order],
        _hashed([g.labels for g in graphs], sizes),
        _hashed([g.edge_labels for g in graphs], counts),
    )


def _running(counts: Any) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _hashed(parts: list[np.ndarray | None], counts: list[int]) -> NDArray[np.uint64]:
    """The labels as numbers of 64 bits, one graph after the other."""
    out = np.full(sum(counts), _UNLABELLED)
    kinds = np.repeat([_kind(part) for part in parts], counts)
    for kind in (_NUMBERS, _TEXT):
        columns = [part for part in parts if part is not None and _kind(part) == kind]
        if not columns:
            continue
        values, which = np.unique(np.concatenate(columns), return_inverse=True)
        hashes = _hashed_texts(values) if kind == _TEXT else hash_numbers(values)
        out[kinds == kind] = hashes[which]
    return out


def _hashed_texts(texts: np.ndarray) -> NDArray[np.uint64]:
    digests = [hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8).digest() for t in texts.tolist()]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
