"""Graphs in folders of text files, the form of the TU Dortmund data sets (``DS_A.txt``, ``DS_graph_indicator.txt``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.data.graph import Graph
from mercer.data.object_readers import column_of
from mercer.data.table import Table
from mercer.data.words import listing

_EDGES = "_A.txt"
_INDICATOR = "_graph_indicator.txt"
_PARTS = ("_node_labels.txt", "_edge_labels.txt", "_node_attributes.txt")
# Beyond it, float64 does not have every whole number.
_LARGEST_WHOLE = 2.0**53
_TARGETS = {"label": "_graph_labels.txt", "target": "_graph_attributes.txt"}


def indicator_of(path: Path) -> Path | None:
    """The file that says to which graph each node belongs, if the folder has it, or the edges of such graphs.

    Raises
    ------
    DataError
        If there are several data sets in the folder.
    """
    names = {file.name.removesuffix(end) for end in (_INDICATOR, _EDGES) for file in path.glob(f"*{end}")}
    if len(names) > 1:
        raise DataError(
            f"{path} holds the graphs of {listing(sorted(names))}; put each data set in a folder of its own."
        )
    return path / f"{names.pop()}{_INDICATOR}" if names else None


def read_graph_folder(path: Path) -> Table:
    """Read the graphs of a folder.

    ``DS_A.txt`` has two nodes in each line, ``DS_graph_indicator.txt`` the graph of each node; both count from 1.
    ``DS_node_labels.txt``, ``DS_edge_labels.txt`` and ``DS_node_attributes.txt`` are read where they exist, and
    ``DS_graph_labels.txt`` or ``DS_graph_attributes.txt`` become the columns ``label`` and ``target``.

    Raises
    ------
    DataError
        If a file is missing, has the wrong number of lines, or an edge joins nodes of two graphs.

    References
    ----------
    C. Morris et al., "TUDataset: a collection of benchmark datasets for learning with graphs" (2020), for the format.
    """
    indicator = indicator_of(path)
    if indicator is None:
        raise DataError(f"{path} has no file NAME{_INDICATOR}.")
    name = indicator.name.removesuffix(_INDICATOR)
    owner = _owners(indicator)
    count = int(owner.max())
    edges = _edges(path / f"{name}{_EDGES}", owner)
    labels, edge_labels, attributes = (
        _optional(path / f"{name}{end}", lines, kind)
        for end, lines, kind in zip(_PARTS, (len(owner), len(edges), len(owner)), (int, int, float), strict=True)
    )
    begin = np.searchsorted(owner, np.arange(1, count + 2))
    of_edge = owner[edges[:, 0]] if len(edges) else np.empty(0, int)
    order = np.argsort(of_edge, kind="stable")
    first = np.searchsorted(of_edge[order], np.arange(1, count + 2))
    graphs = []
    for number in range(count):
        nodes, mine = slice(begin[number], begin[number + 1]), order[first[number] : first[number + 1]]
        try:
            graphs.append(
                Graph(
                    edges[mine] - begin[number],
                    None if labels is None else _as_labels(labels[nodes]),
                    None if edge_labels is None else _as_labels(edge_labels[mine]),
                    None if attributes is None else attributes[nodes],
                    int(begin[number + 1] - begin[number]),
                )
            )
        except DataError as error:
            raise DataError(f"{path}, graph {number + 1}: {error}") from error
    columns = {key: _optional(path / f"{name}{suffix}", count, float) for key, suffix in _TARGETS.items()}
    targets = {key: _target(values) for key, values in columns.items() if values is not None and values.shape[1] == 1}
    _warn_of_unused(path, name, [_TARGETS[key] for key in targets])
    default = next(iter(targets), None)
    frame = column_of("graph", graphs)
    return Table(frame, str(path), targets, default, lambda row: f"graph {row + 1}", {"graph": "graph"})


def _warn_of_unused(path: Path, name: str, targets: list[str]) -> None:
    """Name the files of the data set that are not used."""
    used = {f"{name}{end}" for end in (_EDGES, _INDICATOR, *_PARTS, *targets)}
    others = sorted(file.name for file in path.glob(f"{name}_*.txt") if file.name not in used)
    if others:
        warn_user(
            f"{path} has files that are not used: {listing(others)}. Labels and numbers of nodes, labels of edges, and "
            "one label or number of each graph are read.",
            MercerWarning,
        )


def _owners(path: Path) -> Any:
    """The graph of each node, (n,)."""
    owner = _numbers(path, int)
    if owner.size == 0 or owner.shape[1] != 1 or owner.min() < 1:
        raise DataError(f"{path} must have the number of a graph, from 1 on, in each line.")
    owner = owner[:, 0]
    if (np.diff(owner) < 0).any():
        raise DataError(f"{path}: the nodes of a graph must follow each other, and graphs be in their order.")
    if owner[-1] > len(owner):
        raise DataError(
            f"{path}: there is a graph {owner[-1]}, but there are {len(owner)} nodes in all; number the graphs from 1 "
            "on without gaps."
        )
    return owner


def _edges(path: Path, owner: Any) -> Any:
    """The edges, (m, 2), of nodes that count from 0."""
    edges = _numbers(path, int)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if edges.shape[1] != 2:
        raise DataError(f"{path} must have two nodes in each line, but has {edges.shape[1]} numbers.")
    outside = np.argwhere((edges < 1) | (edges > len(owner)))
    if len(outside):
        line, side = outside[0]
        raise DataError(
            f"{path}, line {line + 1}: nodes are numbered from 1 to {len(owner)}, but there is {edges[line, side]}."
        )
    edges = edges - 1
    apart = np.flatnonzero(owner[edges[:, 0]] != owner[edges[:, 1]])
    if len(apart):
        raise DataError(f"{path}, line {apart[0] + 1}: this edge joins nodes of two graphs.")
    return edges


def _optional(path: Path, lines: int, kind: type) -> Any:
    """The numbers of a file if it exists, (lines, columns)."""
    if not path.is_file():
        return None
    values = _numbers(path, kind)
    if len(values) != lines:
        raise DataError(f"{path} has {len(values)} lines, but should have {lines}.")
    return values


def _numbers(path: Path, kind: type) -> Any:
    """Numbers separated by commas, (lines, columns)."""
    if not path.is_file():
        raise DataError(f"{path} is missing; a folder of graphs needs it.")
    if path.stat().st_size == 0:
        return np.empty((0, 1), dtype=kind)
    try:
        values: Any = np.loadtxt(path, delimiter=",", dtype=kind, ndmin=2)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} must hold numbers separated by commas: {str(error).rstrip('.')}.") from error
    # What NumPy before 2 makes of whole numbers that are too large.
    wrapped = np.argwhere(values == np.iinfo(np.int64).min)
    if kind is int and len(wrapped):
        line, column = wrapped[0] + 1
        raise DataError(
            f"{path} must hold numbers of at most 18 digits, but there is a longer one in line {line}, column {column}."
        )
    return values


def _as_labels(values: Any) -> list[Any]:
    """One label each: a number, or a text of several numbers."""
    if values.shape[1] == 1:
        return [int(value) for value in values[:, 0]]
    return [",".join(str(value) for value in row) for row in values.tolist()]


def _target(values: Any) -> Any:
    """Whole numbers as such."""
    column = values[:, 0]
    whole = (column == np.floor(column)) & (np.abs(column) < _LARGEST_WHOLE)
    return column.astype(np.int64) if whole.all() else column
