"""Ordered trees with labelled nodes: parse trees, documents, programs."""

from __future__ import annotations

import hashlib
import re
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.objects import Objects, short
from mercer.loops.trees import fold_nodes

_TOKEN = re.compile(r"[()]|(?:\\.|[^\s()\\])+", re.DOTALL)
_SPECIAL = re.compile(r"[\s()\\]")
# What a backslash and the character behind it stand for: that character, save for \e, which stands for none.
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# A backslash at the end that no other one escapes.
_DANGLING = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")


class Nodes(NamedTuple):
    """The nodes of all trees, each before its children and these from left to right, tree after tree.

    Labels, productions and complete subtrees are hashes of 64 bits, the same in every process.
    """

    starts: NDArray[np.int64]
    """Where each tree begins, (n + 1,)."""
    labels: NDArray[np.int64]
    parents: NDArray[np.int64]
    """The place of the parent; -1 at a root."""
    productions: NDArray[np.int64]
    """Of the label and the labels of the children."""
    subtrees: NDArray[np.int64]
    """Of the node and all below it."""
    sizes: NDArray[np.int64]
    """Nodes in that subtree."""
    turns: NDArray[np.int64]
    """When a walk comes to the node that has children before parents, and the largest child first; by tree from 0."""

    @property
    def trees(self) -> NDArray[np.int64]:
        """The tree that each node is part of."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Trees(Objects):
    """Rows that are ordered, labelled trees of any depth, stored as bracketed text.

    A row may be

    - bracketed text, as ``"(S (NP I) (VP run))"``: ``(label child child ...)``, where a leaf is just its label. A
      backslash escapes the character after it, and ``\\e`` stands for no character, so that any text can be a
      label. A bracket without a label has the empty label;
    - nested tuples or lists, as ``("S", ("NP", "I"), ("VP", "run"))``: a label, then the children. A string inside
      is a leaf and is taken literally;
    - an object whose ``label()`` is the label and whose iteration yields its children, such as the trees of NLTK.

    A node without children is a leaf: ``("S",)``, ``"(S)"`` and ``"S"`` are the same tree.

    Examples
    --------
    >>> Trees.of(["(S (NP  I)(VP run))", ("S", ("NP", "I"), ("VP", "run")), ("a tree", "(")])
    ['(S (NP I) (VP run))', '(S (NP I) (VP run))', '(a\\\\ tree \\\\()']
    >>> Trees.of(["(S (NP I)"])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 0 of X: the text of a tree ends within the bracket that opens at character 0.
    """

    kind = "trees"

    @staticmethod
    def read(item: Any) -> str:
        return bracketed(*(read_nodes(str(item)) if isinstance(item, str) else _walked(item)))

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        return str(item).encode("utf-8", "surrogatepass")

    def nodes(self) -> Nodes:
        """Return all nodes as arrays."""
        nodes: Nodes = self.keep("nodes", self._nodes)
        return nodes

    def _nodes(self) -> Nodes:
        starts = [0]
        labels: list[int] = []
        parents: list[int] = []
        hashes: dict[str, int] = {}
        for item in self:
            names, above = read_nodes(item)
            labels.extend([hashes[name] if name in hashes else _hash(name, hashes) for name in names])
            parents.extend(above)
            starts.append(len(labels))
        begins, local = np.array(starts), np.array(parents, np.int64)
        joined = np.array(labels, np.int64)
        within = np.where(local < 0, -1, local + np.repeat(begins[:-1], np.diff(begins)))
        results = [np.empty(len(joined), np.int64) for _ in range(4)]
        fold_nodes(joined, within, *results)
        return Nodes(begins, joined, within, *results)


def _hash(label: str, hashes: dict[str, int]) -> int:
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    hashes[label] = int.from_bytes(digest, "little", signed=True)
    return hashes[label]


def bracketed(labels: list[str], parents: list[int]) -> str:
    """Return the one text of a tree from its nodes, each before its children.

    >>> bracketed(["N", "dog"], [-1, 0])
    '(N dog)'
    """
    if _SPECIAL.search("".join(labels)) or "" in labels:
        labels = [_SPECIAL.sub(r"\\\g<0>", label) if label else r"\e" for label in labels]
    parts: list[str] = []
    open_nodes: list[int] = []
    above = [*parents[1:], -1]
    for node, (label, parent) in enumerate(zip(labels, parents)):
        while open_nodes and open_nodes[-1] != parent:
            open_nodes.pop()
            parts.append(")")
        if above[node] == node:
            open_nodes.append(node)
            parts.append(" (")
        else:
            parts.append(" ")
        parts.append(label)
    parts.append(")" * len(open_nodes))
    return "".join(parts)[1:]


def read_nodes(text: str) -> tuple[list[str], list[int]]:
    """Return labels and parents of the nodes of bracketed text, each before its children.

    Raises
    ------
    DataError
        If the text is not a tree.

    Examples
    --------
    >>> read_nodes("(S (N dog) run)")
    (['S', 'N', 'dog', 'run'], [-1, 0, 1, 0])
    """
    labels: list[str] = []
    parents: list[int] = []
    above: list[int] = []
    node, awaits_label = -1, False
    for token in _TOKEN.findall(text):
        if token == "(":
            parents.append(node)
            above.append(node)
            node, awaits_label = len(labels), True
            labels.append("")
        elif token == ")":
            if awaits_label or node < 0:
                _refuse(text)
            node = above.pop()
        elif awaits_label:
            labels[node], awaits_label = token, False
        else:
            parents.append(node)
            labels.append(token)
    if node >= 0 or parents.count(-1) != 1 or _DANGLING.search(text):
        _refuse(text)
    return ([_unescaped(label) for label in labels] if "\\" in text else labels), parents


def _refuse(text: str) -> NoReturn:
    """Say where bracketed text goes wrong."""
    open_brackets: list[int] = []
    began = awaits_label = False
    for token in _TOKEN.finditer(text):
        piece, at = token.group(), token.start()
        if piece == ")" and not open_brackets:
            raise DataError(f"the text of a tree closes a bracket at character {at} that is not open.")
        if began and not open_brackets:
            raise DataError(f"the text of a tree continues after its end, at character {at}.")
        if piece == ")" and awaits_label:
            raise DataError(f"the text of a tree has no label in the bracket at character {open_brackets[-1]}.")
        if piece == ")":
            open_brackets.pop()
        if piece == "(":
            open_brackets.append(at)
        began, awaits_label = True, piece == "("
    if _DANGLING.search(text):
        raise DataError(f"the text of a tree has nothing after the backslash at character {len(text) - 1}.")
    if open_brackets:
        raise DataError(f"the text of a tree ends within the bracket that opens at character {open_brackets[-1]}.")
    raise DataError(f"the text of a tree has no node: it is {short(text)}.")


def _unescaped(label: str) -> str:
    return _ESCAPED.sub(lambda match: "" if match[1] == "e" else match[1], label)


def _walked(item: Any) -> tuple[list[str], list[int]]:
    """Labels and parents of the nodes of a nested object, each before its children."""
    label, children = _node(item)
    labels, parents = [label], [-1]
    open_nodes: list[tuple[int, int, Iterator[Any]]] = [(0, id(item), iter(children))]
    above = {id(item)}
    while open_nodes:
        node, name, rest = open_nodes[-1]
        child = next(rest, rest)
        if child is rest:
            open_nodes.pop()
            above.discard(name)
            continue
        parents.append(node)
        if isinstance(child, str):
            labels.append(str(child))
            continue
        if id(child) in above:
            raise DataError("a tree must not contain itself, but this one has a node that is its own descendant.")
        label, children = _node(child)
        labels.append(label)
        above.add(id(child))
        open_nodes.append((len(labels) - 1, id(child), iter(children)))
    return labels, parents


def _node(item: Any) -> tuple[str, Iterable[Any]]:
    """Label and children of a node that is not a string."""
    if callable(getattr(item, "label", None)) and hasattr(item, "__iter__"):
        # Before lists: the trees of NLTK are lists of their children.
        label, children = item.label(), item
    elif isinstance(item, (list, tuple)) and len(item):
        label, children = item[0], item[1:]
    else:
        raise DataError(
            "a tree must be bracketed text, a tuple of a label and children, or an object with label(), but one of its "
            f"nodes is {reprlib.repr(item)}."
        )
    if not isinstance(label, str):
        raise DataError(f"the labels of a tree must be text, but one is {reprlib.repr(label)}.")
    return str(label), children
