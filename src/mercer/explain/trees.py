"""Parts of trees, with the numbers of their nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Vector
from mercer.data.trees import Trees, bracketed, read_nodes
from mercer.explain.result import Part
from mercer.explain.split import Sides, Split, split
from mercer.gram import Gram
from mercer.kernels import PartialTree, SubsetTree
from mercer.kernels.inputs import Rows


@dataclass(frozen=True)
class LabelledTree:
    """A tree as the labels of its nodes, each before its children, and the number of the parent of each (-1: root).

    Examples
    --------
    >>> LabelledTree(("S", "N", "dog"), (-1, 0, 1)).text(1, 2)
    '(N dog)'
    """

    labels: tuple[str, ...]
    parents: tuple[int, ...]

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    def text(self, node: int, size: int) -> str:
        """Return the subtree of so many nodes below a node as bracketed text."""
        above = [-1, *(parent - node for parent in self.parents[node + 1 : node + size])]
        return bracketed(list(self.labels[node : node + size]), above)

    def without(self, node: int, size: int) -> str:
        """Return the tree without a node and all below it."""
        kept = [i for i in range(self.n) if not node <= i < node + size]
        number = {i: new for new, i in enumerate(kept)}
        return bracketed([self.labels[i] for i in kept], [number.get(self.parents[i], -1) for i in kept])


def tree_of(row: Trees) -> LabelledTree:
    """Return the tree of a container of one."""

    def read() -> LabelledTree:
        labels, parents = read_nodes(row[0])
        return LabelledTree(tuple(labels), tuple(parents))

    tree: LabelledTree = row.keep("labelled tree", read)
    return tree


@split.register(SubsetTree)
@split.register(PartialTree)
def _fragments(kernel: SubsetTree | PartialTree, sides: Sides) -> Split:
    """A sum over nodes of x, of the fragments that begin there: the kernel of its subtree less those of its children.

    A fragment that begins at a node is in the subtree below it, and in none of those of its children.
    """
    row = sides.x.objects(Trees)
    tree, sizes = tree_of(row), row.nodes().sizes.tolist()
    subtrees = Trees([tree.text(node, sizes[node]) for node in range(tree.n)])
    values: Vector = np.asarray(Gram(kernel, Rows(subtrees), sides.Z) @ sides.weights)
    own = values.copy()
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            own[parent] -= values[node]
    parts = [Part("fragments", f"fragments from {label}", (node,)) for node, label in enumerate(tree.labels)]
    return Split(parts, own, tree)
