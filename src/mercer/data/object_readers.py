"""Readers of rows that are not vectors: series in folders, graphs in JSON files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._optional import optional
from mercer.data.graph import Graph, from_data
from mercer.data.graph_attributes import UnusedAttributes
from mercer.data.series import Series
from mercer.data.table import Table
from mercer.data.text_files import TextFile
from mercer.data.words import listing, shown

# Of a character beyond 16 bits.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_USUAL = ("y", "target", "label", "labels", "class")
_PARTS = frozenset({"directed", "multigraph", "graph", "nodes", "edges", "links"})
_LABELS = ("labels.csv", "labels.tsv")


def usual_target(names: Any) -> str | None:
    """Return the usual name of a target, if it is among the names.

    >>> usual_target(["x", "label"])
    'label'
    """
    return next((name for name in _USUAL if name in names), None)


def read_folder(path: Path, read: Callable[[Path], Table]) -> Table:
    """Read a folder of CSV files with one series each, and a table ``labels.csv`` whose column ``file`` lists them.

    The file of a series has a header, a column for each channel and a line for each time. The other columns of
    ``labels.csv`` are the target and further features of each series.

    Raises
    ------
    DataError
        If ``labels.csv`` does not exist, or a file that it lists cannot be read as a series.
    """
    labels = next((path / name for name in _LABELS if (path / name).is_file()), None)
    if labels is None:
        raise DataError(
            f"{path} is a directory without a file {_LABELS[0]}; a folder of series needs this file, with a column "
            "'file' that names a CSV file in each line, and the target in another column."
        )
    table = read(labels)
    if "file" not in table.names:
        raise DataError(f"{labels} has no column 'file'; the columns are {listing(table.names)}.")
    series, channels = [], list[Any]()
    unnamed = np.flatnonzero(table.columns["file"].isna().to_numpy())
    if unnamed.size:
        raise DataError(
            f"{labels}, {table.locate(int(unnamed[0]))}: the name of the file is missing; write it, or remove the line."
        )
    for row, name in enumerate(table.columns["file"].astype(str).tolist()):
        file = path / name
        # Unlike Path.is_file, this returns False for a name that is too long.
        if Path(name).name != name or not os.path.isfile(file):
            raise DataError(f"{labels}, {table.locate(row)}: the file {shown(name)} does not exist in {path}.")
        values = read(file).columns
        channels = channels or list(values.columns)
        if set(values.columns) != set(channels):
            raise DataError(
                f"{file} has the columns {listing(values.columns)}, but the first file has {listing(channels)}; the "
                "channels of all series must be the same."
            )
        try:
            series.append(Series.read(values[channels].to_numpy(dtype=np.float64)))
        except (DataError, ValueError, OverflowError) as error:
            # A whole number of hundreds of digits is too large for a float.
            raise DataError(f"{file} is not a series: {error}") from error
    others = sorted({file.name for file in path.glob("*.csv")} - {labels.name, *table.columns["file"].astype(str)})
    if others:
        warn_user(
            f"{labels} does not list {listing(others)} of its folder, which {'is' if len(others) == 1 else 'are'} not "
            "used.",
            MercerWarning,
        )
    frame = table.columns.drop(columns=["file"]).assign(series=column_of("series", series)["series"])
    return Table(frame, str(path), {}, usual_target(table.names), table.locate, {"series": "series"})


def read_graphs(file: TextFile) -> Table:
    """Read graphs from a JSON file: a list of graphs, each in the form that networkx calls node-link data.

    A graph is ``{"graph": {"label": 1}, "nodes": [{"id": 0, "label": "C"}, ...], "edges": [{"source": 0, "target": 1},
    ...]}``; ``links`` is another name for ``edges``. The entries of ``"graph"`` become columns of the table. Nodes and
    edges may have a ``label``, and nodes ``attributes``, a list of numbers.

    Raises
    ------
    DataError
        If the file does not have this form; the message gives the number of the graph.
    """
    path = file.path
    try:
        with file.open("whole") as lines:
            text = lines.read()
        items = json.loads(text)
        if _HALF.search(text):
            # JSON may escape half of a character, which no file can hold.
            json.dumps(items, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        # A ValueError is what is not JSON or not UTF-8, and also a number of more digits than Python reads.
        raise DataError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(items, list) or not items:
        raise DataError(f"{path} must hold a list of graphs, as networkx.node_link_data writes each.")
    graphs, facts = [], []
    for number, item in enumerate(items):
        try:
            graphs.append(_graph(item))
            facts.append(_facts(item))
        except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path}, graph {number + 1}: this is not node-link data: {reason}") from error
    _warn_of_unused(items, path)
    frame = optional("pandas", f"reading {path.name}").DataFrame(facts)
    frame["graph"] = column_of("graph", graphs)["graph"]
    names = [str(name) for name in frame.columns]
    frame.columns = names
    return Table(frame, path.name, {}, usual_target(names), lambda row: f"graph {row + 1}", {"graph": "graph"})


def _warn_of_unused(items: list[Any], path: Path) -> None:
    """Name what is not used of the graphs of a file."""
    UnusedAttributes(
        (_without(node, "id") for item in items for node in item["nodes"]),
        (_without(edge, "source", "target") for item in items for edge in _edges(item)),
    ).warn("In the file, write what nodes and edges are to be compared by to these, or leave it out.")
    others = sorted({str(key) for item in items for key in item} - _PARTS)
    if others:
        warn_user(
            f"the graphs of {path} have {listing(others)}, which is not used; write what is known of a graph in its "
            "'graph'.",
            MercerWarning,
        )


def _without(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def _graph(item: Mapping[str, Any]) -> Graph:
    if item.get("directed") or item.get("multigraph"):
        raise DataError("it is directed, or has several edges between two nodes; kernels on graphs take neither.")
    nodes = [(_hashable(node["id"]), node) for node in item["nodes"]]
    if len(dict(nodes)) < len(nodes):
        raise DataError("two nodes have the same id.")
    return from_data(nodes, [(_hashable(e["source"]), _hashable(e["target"]), e) for e in _edges(item)])


def _facts(item: Mapping[str, Any]) -> dict[str, Any]:
    facts = item.get("graph") or {}
    if not isinstance(facts, (dict, list)):
        raise DataError(f"its 'graph' must hold facts by their names, but is {shown(facts)}.")
    return dict(facts)


def _edges(item: Mapping[str, Any]) -> Any:
    return item["edges"] if "edges" in item else item["links"]


def _hashable(name: Any) -> Any:
    return tuple(name) if isinstance(name, list) else name


def column_of(name: str, items: list[Any]) -> Any:
    """Return a table of one column of objects."""
    array = np.empty(len(items), object)
    for number, item in enumerate(items):
        array[number] = item
    return optional("pandas", "reading rows that are not vectors").DataFrame({name: array})
