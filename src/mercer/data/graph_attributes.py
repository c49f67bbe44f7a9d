"""Warnings about data of nodes and edges that kernels on graphs do not use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from mercer._errors import MercerWarning, warn_user
from mercer.data.objects import short

NODE_DATA = frozenset({"label", "attributes"})
EDGE_DATA = frozenset({"label"})


@dataclass
class _Attribute:
    """One attribute that is not read."""

    first: Any
    value: Any
    """The last one that differs from the first."""
    kinds: set[str] = field(default_factory=set)
    count: int = 0
    everywhere: bool = False

    def add(self, value: Any) -> None:
        self.count += 1
        self.kinds.add(_kind(value))
        if not _equal(value, self.first):
            self.value = value

    @property
    def is_measured(self) -> bool:
        return self.kinds in ({"number"}, {"whole", "number"}, {"numbers"})

    def as_label(self, name: str) -> str:
        """The attribute itself, or a function where not all values are text or not all whole numbers."""
        if self.everywhere and self.kinds in ({"text"}, {"whole"}):
            return repr(name)
        if self.everywhere and self.kinds == {"whole", "number"}:
            return f"lambda data: format(data[{name!r}], 'g')"
        return f"lambda data: str(data.get({name!r}))"


class UnusedAttributes:
    """The attributes of nodes and of edges that are not read; those with one value everywhere say nothing.

    Parameters
    ----------
    nodes, edges : iterable of dict
        The data of all nodes, and of all edges.
    """

    def __init__(self, nodes: Iterable[Mapping[str, Any]], edges: Iterable[Mapping[str, Any]]) -> None:
        self.nodes, self.edges = _unused(nodes, NODE_DATA), _unused(edges, EDGE_DATA)

    def warn(self, remedy: str) -> None:
        """Name them, if there are any, and what to do."""
        parts = [
            f"{what} have the attribute{'s' * (len(found) > 1)} {_named(found)}"
            for what, found in (("nodes", self.nodes), ("edges", self.edges))
            if found
        ]
        if parts:
            several = len(self.nodes) + len(self.edges) > 1
            warn_user(
                f"{' and '.join(parts)}, which {'are' if several else 'is'} not used: kernels compare the attribute "
                f"'label' of nodes and edges and the numbers 'attributes' of nodes. {remedy}",
                MercerWarning,
            )

    def call(self) -> str:
        """The arguments of :meth:`mercer.Graph.from_networkx` that read the first attribute of each kind."""
        arguments: dict[str, str] = {}
        for name, found in self.nodes.items():
            if not found.is_measured:
                arguments.setdefault("labels", found.as_label(name))
            elif found.everywhere:
                arguments.setdefault("attributes", repr(name))
        for name, found in self.edges.items():
            arguments.setdefault("edge_labels", found.as_label(name))
        return ", ".join(["graph", *(f"{name}={value}" for name, value in arguments.items())])


def _unused(entries: Iterable[Mapping[str, Any]], used: frozenset[str]) -> dict[str, _Attribute]:
    found: dict[str, _Attribute] = {}
    total = 0
    for entry in entries:
        total += 1
        for name, value in entry.items():
            if name not in used:
                found.setdefault(name, _Attribute(value, value)).add(value)
    for attribute in found.values():
        attribute.everywhere = attribute.count == total
    return {name: a for name, a in found.items() if a.value is not a.first or not a.everywhere}


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1:
        return "numbers" if all(_kind(entry) in ("whole", "number") for entry in value) else "other"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return "other"
    return "whole" if isinstance(value, (int, np.integer)) else "number"


def _equal(one: Any, other: Any) -> bool:
    equal = one is other or one == other
    # Arrays are compared entry by entry, and NaN is not equal to itself.
    return bool(equal) if isinstance(equal, (bool, np.bool_)) and equal else repr(one) == repr(other)


def _named(found: Mapping[str, _Attribute]) -> str:
    return ", ".join(f"{name!r} ({short(attribute.value)} is one)" for name, attribute in found.items())
