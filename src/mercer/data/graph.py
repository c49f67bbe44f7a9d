"""One graph, in the form in which it is stored: undirected, without duplicate edges, with labels and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.objects import short
from mercer.data.words import listing

# The name of an attribute of nodes or edges, or a function of all of them.
Reading = str | Callable[[Mapping[str, Any]], Any] | None

_PARTS = ("edges", "labels", "edge_labels", "attributes", "n")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph with optional labels on its nodes and edges and optional vectors of numbers on its nodes.

    An edge that is given twice, in either direction, counts once; a node may be joined to itself.

    Parameters
    ----------
    edges : array-like of shape (m, 2), default=()
        The two nodes of each edge, as numbers from 0 to n - 1.
    labels : array-like of shape (n,), optional
        Whole numbers or text. All nodes without labels are equal, and differ from every labelled node.
    edge_labels : array-like of shape (m,), optional
        Whole numbers or text, in the order of ``edges``.
    attributes : array-like of shape (n, d) or (n,), optional
        Numbers that describe each node.
    n : int, optional
        Number of nodes; by default the number of labels or attributes, or else the number that the edges imply.

    Raises
    ------
    DataError
        If the parts do not fit together, or if an edge is given twice with different labels.

    Examples
    --------
    >>> Graph([(0, 1), (1, 2), (2, 1)], labels=["C", "C", "O"])
    Graph(n=3, edges=2, labels)
    >>> Graph([(0, 3)], labels=["C", "C"])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: edge 0 joins the nodes 0 and 3, but the graph has the nodes 0 to 1.
    """

    edges: Any = ()
    labels: Any = None
    edge_labels: Any = None
    attributes: Any = None
    n: int = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        edges = _edges(self.edges)
        labels = _labels(self.labels, "node")
        edge_labels = _labels(self.edge_labels, "edge")
        attributes = _attributes(self.attributes)
        n = _nodes(self.n, edges, labels, attributes)
        if edge_labels is not None and len(edge_labels) != len(edges):
            raise DataError(
                f"there are {len(edges)} edges and {len(edge_labels)} edge labels; pass one label per edge."
            )
        edges, edge_labels = _simple(edges, edge_labels)
        for name, value in zip(_PARTS, (edges, labels, edge_labels, attributes, n), strict=True):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.fingerprint() == other.fingerprint() if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        options = [name for name in _PARTS[1:4] if getattr(self, name) is not None]
        return f"Graph({', '.join([f'n={self.n}', f'edges={len(self.edges)}', *options])})"

    @classmethod
    def from_networkx(
        cls, graph: Any, labels: Reading = "label", edge_labels: Reading = "label", attributes: Reading = "attributes"
    ) -> Graph:
        """Read an undirected graph of networkx, and choose what its nodes and edges are compared by.

        Parameters
        ----------
        graph : networkx.Graph
            Parallel edges of a MultiGraph count once.
        labels : str or callable, default="label"
            The attribute of nodes that is their label, or a function that makes the label of a node's attributes, a
            dict. ``None`` reads no labels.
        edge_labels : str or callable, default="label"
            The same of edges.
        attributes : str or callable, default="attributes"
            The attribute of nodes that holds a number or several, or a function that returns them.

        Returns
        -------
        Graph

        Raises
        ------
        DataError
            If the graph is directed, no node or edge has the attribute that is named, or only some have it.

        Examples
        --------
        >>> import networkx
        >>> water = networkx.Graph([(0, 1), (0, 2)])
        >>> networkx.set_node_attributes(water, {0: "O", 1: "H", 2: "H"}, "element")
        >>> Graph.from_networkx(water, labels="element").labels.tolist()
        ['O', 'H', 'H']
        >>> Graph.from_networkx(water, labels=lambda node: node["element"].lower()).labels.tolist()
        ['o', 'h', 'h']
        """
        if callable(getattr(graph, "is_directed", None)) and graph.is_directed():
            raise DataError(
                "the graph is directed, but kernels on graphs take undirected graphs; use its .to_undirected()."
            )
        return from_data(graph.nodes(data=True), graph.edges(data=True), labels, edge_labels, attributes)

    def fingerprint(self) -> bytes:
        """Return bytes that are the same exactly for equal graphs, with nodes and edges in the same order."""
        arrays = [self.edges, self.labels, self.edge_labels, self.attributes]
        heads = [None if a is None else (a.dtype.str, a.shape) for a in arrays]
        return repr((self.n, heads)).encode() + b"".join(_bytes(a) for a in arrays if a is not None)


def _bytes(array: np.ndarray) -> bytes:
    if array.dtype == object:
        return repr(array.tolist()).encode("utf-8", "surrogatepass")
    return array.tobytes()


def is_networkx(item: Any) -> bool:
    """Return whether an object has the methods of a graph of networkx."""
    return callable(getattr(item, "nodes", None)) and callable(getattr(item, "edges", None))


def as_graph(item: Any) -> Graph:
    """Return a graph from a ``Graph``, a networkx graph, a mapping of its parts, or a tuple ``(edges, labels, ...)``.

    Raises
    ------
    DataError
        If it is not one of these, or is directed.

    Examples
    --------
    >>> as_graph({"edges": [(0, 1)], "labels": [6, 8]}) == as_graph(([(1, 0)], [6, 8]))
    True
    """
    if isinstance(item, Graph):
        return item
    if is_networkx(item):
        return Graph.from_networkx(item)
    if isinstance(item, Mapping):
        unknown = [key for key in item if key not in _PARTS]
        if unknown or not item:
            raise DataError(f"the keys of a graph must be among {', '.join(_PARTS)}, but are {short(list(item))}.")
        return Graph(**item)
    if isinstance(item, tuple) and 1 <= len(item) <= 4:
        return Graph(*item)
    raise DataError(
        "a graph must be a mercer.Graph, a graph of networkx, a dict of its parts or a tuple (edges, labels, "
        f"edge_labels, attributes), but is {short(item)}."
    )


def from_data(
    nodes: Iterable[tuple[Any, Mapping[str, Any]]],
    edges: Iterable[tuple[Any, Any, Mapping[str, Any]]],
    labels: Reading = "label",
    edge_labels: Reading = "label",
    attributes: Reading = "attributes",
) -> Graph:
    """Return the graph of nodes and edges that have names and data; the arguments as in :meth:`Graph.from_networkx`.

    Raises
    ------
    DataError
        If the parts do not fit together.
    """
    nodes, edges = list(nodes), list(edges)
    numbers = {node: number for number, (node, _) in enumerate(nodes)}
    of_nodes, of_edges = [data for _, data in nodes], [data for _, _, data in edges]
    numbers_of_nodes = _read(of_nodes, attributes, "attributes", "node")
    absent = [name for (name, _), value in zip(nodes, numbers_of_nodes, strict=True) if value is None]
    if absent and len(absent) < len(nodes):
        raise DataError(f"node {absent[0]!r} has no attributes, but others have.")
    return Graph(
        [(numbers[u], numbers[v]) for u, v, _ in edges],
        _read(of_nodes, labels, "label", "node"),
        _read(of_edges, edge_labels, "label", "edge"),
        None if absent or not nodes else numbers_of_nodes,
        len(nodes),
    )


def _read(entries: list[Mapping[str, Any]], reading: Reading, usual: str, what: str) -> list[Any]:
    """What is read of the data of each node or edge; all None if none has the usual attribute."""
    if callable(reading):
        return [reading(data) for data in entries]
    if reading is not None and reading != usual and entries and not any(reading in data for data in entries):
        names = sorted({str(name) for data in entries for name in data})
        raise DataError(f"no {what} has the attribute {reading!r}; there is {listing(names) if names else 'none'}.")
    return [None if reading is None else data.get(reading) for data in entries]


def _edges(edges: Any) -> NDArray[np.int64]:
    try:
        array = np.asarray(edges)
    except ValueError as error:
        raise DataError(f"the edges of a graph must be pairs of nodes, but are {short(edges)}.") from error
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise DataError(
            "the edges of a graph must be an array of whole numbers, (m, 2), but are one of "
            f"{array.dtype}, {array.shape}."
        )
    return array.astype(np.int64)


def _labels(values: Any, what: str) -> np.ndarray | None:
    """Labels as numbers or as text of the least width that holds them; None where there are none.

    Text that ends in NUL is kept as objects, since arrays of text do not keep that.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuU" and values.size:
        return _least_width(values) if values.dtype.kind == "U" else _int64(values, what)
    if values is None:
        return None
    if isinstance(values, (Mapping, set)) or not hasattr(values, "__len__"):
        raise DataError(f"the {what} labels must be a sequence in the order of the {what}s, but are {short(values)}.")
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    absent = [position for position, value in enumerate(values) if value is None]
    if len(absent) == len(values):
        return None
    if absent:
        raise DataError(f"{what} {absent[0]} has no label, but others have.")
    if all(isinstance(value, str) for value in values):
        if any(value.endswith("\0") for value in values):
            return np.array([str(value) for value in values], dtype=object)
        return _least_width(np.array(values))
    for position, value in enumerate(values):
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            mixed = " where others are numbers" if isinstance(value, str) else ""
            raise DataError(
                f"the {what} labels must be all whole numbers or all text, and that of {what} {position} is "
                f"{short(value)}{mixed}; pass measured numbers as attributes."
            )
    return _int64(values, what)


def _int64(values: Any, what: str) -> NDArray[np.int64]:
    """Whole numbers as int64, if they are so small."""
    if isinstance(values, np.ndarray) and values.dtype != np.uint64:
        return values.astype(np.int64)
    largest = max(map(int, values), key=abs)
    if abs(largest) > np.iinfo(np.int64).max:
        raise DataError(f"a {what} label is {largest}, but whole numbers must have fewer than 64 bits.")
    return np.array(values, dtype=np.int64)


def _least_width(text: np.ndarray) -> np.ndarray:
    width = max(int(np.strings.str_len(text).max(initial=1)), 1)
    return text.astype(f"<U{width}")


def _attributes(values: Any) -> NDArray[np.float64] | None:
    if values is None:
        return None
    if np.ma.is_masked(values):
        raise DataError("the attributes have masked entries; fill them in (attributes.filled(...)).")
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the attributes must be numbers, equally many for each node, but are {short(values)}."
        ) from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise DataError(f"the attributes must have the shape (n, d), but have {array.shape}.")
    if not np.isfinite(array).all():
        node = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DataError(f"the attributes of node {node} hold NaN or an infinity; impute or leave it out.")
    # One zero, not two.
    return array + 0.0


def _nodes(n: Any, edges: NDArray[np.int64], labels: np.ndarray | None, attributes: NDArray[np.float64] | None) -> int:
    """How many nodes there are; all that says so must agree."""
    parts = {"labels": labels, "attributes": attributes}
    counts = {name: len(part) for name, part in parts.items() if part is not None}
    if n is not None:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise DataError(f"the number of nodes must be a whole number, but is {short(n)}.")
        counts = {"n": int(n), **counts}
    if not counts and edges.size:
        return _nodes(max(int(edges.max()) + 1, 0), edges, None, None)
    n_nodes = next(iter(counts.values()), 0)
    for name, count in counts.items():
        if count != n_nodes:
            first = next(iter(counts))
            raise DataError(f"{first} implies {n_nodes} nodes, but {name} implies {count}.")
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        wrong = int(np.flatnonzero(((edges < 0) | (edges >= n_nodes)).any(axis=1))[0])
        u, v = edges[wrong].tolist()
        nodes = f"the nodes 0 to {n_nodes - 1}" if n_nodes else "no nodes"
        raise DataError(f"edge {wrong} joins the nodes {u} and {v}, but the graph has {nodes}.")
    return n_nodes


def _simple(edges: NDArray[np.int64], labels: np.ndarray | None) -> tuple[NDArray[np.int64], np.ndarray | None]:
    """Each edge once, the lower node first, in ascending order."""
    pairs = np.empty_like(edges)
    np.minimum(edges[:, 0], edges[:, 1], out=pairs[:, 0])
    np.maximum(edges[:, 0], edges[:, 1], out=pairs[:, 1])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs = pairs[order]
    first = np.empty(len(pairs), bool)
    first[:1] = True
    np.not_equal(pairs[1:, 0], pairs[:-1, 0], out=first[1:])
    first[1:] |= pairs[1:, 1] != pairs[:-1, 1]
    if labels is None:
        return pairs[first], None
    labels = labels[order]
    distinct = labels[first]
    which = np.cumsum(first) - 1
    other = np.flatnonzero(labels != distinct[which])
    if len(other):
        u, v = pairs[other[0]].tolist()
        one, two = distinct[which[other[0]]], labels[other[0]]
        one, two = (label.item() if isinstance(label, np.generic) else label for label in (one, two))
        raise DataError(
            f"the edge of the nodes {u} and {v} has two labels, {one!r} and {two!r}; pass one label per edge."
        )
    return pairs[first], distinct
