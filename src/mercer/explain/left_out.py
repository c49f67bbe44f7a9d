"""What the decision value loses if a part of the row is left out: for kernels that are not sums over parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.data.bags import Bags
from mercer.data.columns import MixedRows
from mercer.data.graph import Graph
from mercer.data.graphs import Graphs
from mercer.data.images import Images
from mercer.data.objects import Anything, Objects
from mercer.data.series import Series
from mercer.data.strings import Strings
from mercer.data.trees import Trees
from mercer.explain.graphs import label_of
from mercer.explain.models import Explained
from mercer.explain.result import Part, require_copies
from mercer.explain.split import Split
from mercer.explain.strings import substring
from mercer.explain.trees import tree_of
from mercer.explain.vectors import column

# Stored rows of the model whose entries replace a column, and the most rows that this makes.
_MOST_TAKEN, _MOST_ROWS = 100, 20_000
# An image is covered by at most so many blocks in each direction.
_BLOCKS = 8


def leave_out(problem: Explained) -> Split:
    """Return the difference that each part makes: ``f(x)`` less the value without the part.

    Raises
    ------
    ParameterError
        If nothing can be left out of a row of this kind.
    """
    if problem.places is not None:
        used = [j for j, places in enumerate(problem.places) if len(places)]
        return _without_columns(problem, used)
    if isinstance(problem.row, Objects):
        return _of_object(problem, problem.row, lambda rows: rows)
    if sp.issparse(problem.row):
        return _without_entries(problem)
    used = _used(problem)
    if len(used) == 1 and isinstance(problem.row, MixedRows) and isinstance(problem.row.columns[used[0]], Objects):
        width, names = len(problem.row.columns), problem.row.names
        return _of_object(
            problem,
            problem.row.columns[used[0]],
            lambda rows: MixedRows([rows if j == used[0] else None for j in range(width)], names),
        )
    return _without_columns(problem, used)


class _Rest(NamedTuple):
    """The parts of an object, the object without each of them, and what the places of the parts are in."""

    parts: list[Part]
    rows: Callable[[], Objects]
    item: Any = None


def _of_object(problem: Explained, row: Objects, as_rows: Callable[[Objects], Any]) -> Split:
    rest = _without(row)
    if not rest.parts:
        return Split([], np.zeros(0), rest.item)
    values = problem.values(problem.row)[0] - problem.values(as_rows(rest.rows()))
    return Split(rest.parts, values, rest.item)


@singledispatch
def _without(row: Any) -> _Rest:
    """Of a container of one object, by kind."""
    raise ParameterError(
        f"the kernel compares {row.kind}, and it is not known which parts of one can be left out. Use "
        'by="rows": what each row of the fit contributes.'
    )


@_without.register
def _symbols(row: Strings) -> _Rest:
    item = row[0]
    parts = [substring(item, at, 1) for at in range(len(item))]
    require_copies(len(item), len(item), "symbols")
    rest = [Strings.read(item[:at] + item[at + 1 :]) for at in range(len(item))]
    return _Rest(parts, lambda: Strings(rest), item)


@_without.register
def _text(row: Anything) -> _Rest:
    """Text that a function compares."""
    item = row[0]
    if not isinstance(item, str):
        return _without.dispatch(object)(row)
    require_copies(len(item), len(item), "symbols")
    parts = [substring(item, at, 1) for at in range(len(item))]
    return _Rest(parts, lambda: Anything([item[:at] + item[at + 1 :] for at in range(len(item))]), item)


@_without.register
def _subtrees(row: Trees) -> _Rest:
    """Every node but the root, with all below it."""
    tree, sizes = tree_of(row), row.nodes().sizes.tolist()
    require_copies(tree.n, tree.n, "nodes")
    parts, rest = [], []
    for node in range(1, tree.n):
        parts.append(Part("subtree", tree.text(node, sizes[node]), tuple(range(node, node + sizes[node]))))
        rest.append(tree.without(node, sizes[node]))
    return _Rest(parts, lambda: Trees(rest), tree)


@_without.register
def _nodes(row: Graphs) -> _Rest:
    """Every node with its edges."""
    graph = row[0]
    require_copies(graph.n, graph.n + len(graph.edges), "nodes and edges")
    parts = [Part("node", f"{label_of(graph, node)} at {node}", (node,)) for node in range(graph.n)]
    return _Rest(parts, lambda: Graphs([_without_node(graph, node) for node in range(graph.n)]), graph)


def _without_node(graph: Graph, node: int) -> Graph:
    kept, stays = np.arange(graph.n) != node, (graph.edges != node).all(axis=1)
    edges = graph.edges[stays]
    return Graph(
        edges - (edges > node),
        None if graph.labels is None else graph.labels[kept],
        None if graph.edge_labels is None else graph.edge_labels[stays],
        None if graph.attributes is None else graph.attributes[kept],
        graph.n - 1,
    )


@_without.register
def _times(row: Series) -> _Rest:
    """Every time: its values are those on the line between the times beside it, so that the length is the same."""
    item = row[0]
    times = range(len(item)) if len(item) > 1 else ()
    rest = []
    for at in times:
        beside = item[[i for i in (at - 1, at + 1) if 0 <= i < len(item)]]
        changed = item.copy()
        changed[at] = beside.mean(axis=0)
        rest.append(Series.read(changed))
    return _Rest([Part("time", f"time {at}", (at,)) for at in times], lambda: Series(rest), item)


@_without.register
def _members(row: Bags) -> _Rest:
    count = int(row.starts[-1])
    # A bag has one member at least.
    members = range(count) if count > 1 else ()

    def rest() -> Bags:
        kept = np.concatenate([np.delete(np.arange(count), i) for i in members])
        return Bags(row.rows[kept], (count - 1) * np.arange(count + 1))

    return _Rest([Part("member", f"member {i}", (i,)) for i in members], rest)


@_without.register
def _blocks(row: Images) -> _Rest:
    """Blocks of pixels, of which each is given the mean colour of the image."""
    image = row[0]
    middle = image.mean(axis=(0, 1)).astype(image.dtype)
    down, right = (np.linspace(0, size, min(size, _BLOCKS) + 1).astype(int).tolist() for size in image.shape[:2])
    parts, rest = [], []
    for top, bottom in pairwise(down):
        for left, end in pairwise(right):
            changed = image.copy()
            changed[top:bottom, left:end] = middle
            rest.append(Images.read(changed))
            parts.append(Part("block", f"rows {top} to {bottom - 1}, columns {left} to {end - 1}"))
    return _Rest(parts, lambda: Images(rest))


def _without_entries(problem: Explained) -> Split:
    """Of a sparse row: an entry is left out by making it 0."""
    row = problem.row
    parts = [column(problem.columns, int(j)) for j in row.indices]
    if not parts:
        return Split([], np.zeros(0))
    count = row.nnz
    kept = ~np.eye(count, dtype=bool)
    starts = (count - 1) * np.arange(count + 1)
    entries, places = (np.tile(part, (count, 1))[kept] for part in (row.data, row.indices))
    rows = sp.csr_matrix((entries, places, starts), shape=(count, row.shape[1]))
    return Split(parts, problem.values(problem.row)[0] - problem.values(rows))


def _without_columns(problem: Explained, used: list[int]) -> Split:
    """Of a table: a column is left out by replacing it with the entries of stored rows, and averaging over these."""
    taken = _taken(problem.functions.rows.shape[0], len(used))
    values = np.empty(len(used))
    here = problem.values(problem.row)[0]
    for place, j in enumerate(used):
        values[place] = here - float(np.mean(problem.values(_exchanged(problem, j, taken))))
    return Split([column(problem.columns, j) for j in used], values)


def _used(problem: Explained) -> list[int]:
    """The columns that the kernel compares."""
    if isinstance(problem.row, MixedRows):
        return [j for j, own in enumerate(problem.row.columns) if own is not None]
    return list(range(problem.row.shape[1]))


def _taken(n: int, columns: int) -> Vector:
    """The rows from which columns are taken: equally spaced ones, if there are many."""
    count = min(n, _MOST_TAKEN, max(1, _MOST_ROWS // max(columns, 1)))
    return np.unique(np.linspace(0, n - 1, count).astype(np.intp))


def _exchanged(problem: Explained, j: int, taken: Vector) -> Any:
    rows: Any = problem.functions.rows
    places = [j] if problem.places is None else problem.places[j].tolist()
    if not isinstance(problem.row, MixedRows):
        out = np.repeat(problem.row, len(taken), axis=0)
        others = rows[taken][:, places]
        out[:, places] = others.toarray() if sp.issparse(others) else others
        return out
    same = np.zeros(len(taken), np.intp)
    own: Sequence[Any] = [None if c is None else c[same] for c in problem.row.columns]
    columns = [rows.columns[i][taken] if i in places else column for i, column in enumerate(own)]
    return MixedRows(columns, problem.row.names)
