"""Trees in the form that the loops over pairs of nodes read, and the base of kernels that sum over them."""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.trees import Nodes, Trees
from mercer.engine import memory, threads
from mercer.kernels.objects import Packed, PairKernel
from mercer.loops.trees import Leaves, NodeKernel, TreeNodes, TreeSide, compare_trees, most_rows, tree_slopes

# Work arrays below this size are not reserved from the memory budget.
_SMALL = 2**20


class PackedTrees(NamedTuple):
    """Trees as the loops read them."""

    nodes: TreeNodes
    waiting: NDArray[np.int64]
    """The most nodes of each tree whose values are stored at once."""
    longest: NDArray[np.int64]
    """The longest run of each tree."""
    leaves: Leaves


def pack(nodes: Nodes, keys: NDArray[np.int64], compared: NDArray[np.bool_]) -> PackedTrees:
    """The nodes that are ``compared`` by ``keys``; all that have children must be."""
    n = len(nodes.starts) - 1
    tree, index = nodes.trees, np.flatnonzero(compared)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(tree[index], minlength=n))])
    order = index[np.lexsort((keys[index], tree[index]))]
    place = np.full(len(tree), -1)
    place[order] = np.arange(len(order)) - starts[tree[order]]
    visit = place[index[np.lexsort((nodes.turns[index], tree[index]))]]
    below = np.flatnonzero(nodes.parents >= 0)
    above = starts[tree[below]] + place[nodes.parents[below]]
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(above, minlength=len(order)))])
    children = place[below[np.argsort(above, kind="stable")]]
    labels = keys[order]
    new = np.ones(len(order), bool)
    new[1:] = (labels[1:] != labels[:-1]) | (tree[order[1:]] != tree[order[:-1]])
    begins = np.flatnonzero(new)
    runs = np.zeros(len(order), np.int64)
    runs[begins] = np.diff(np.append(begins, len(order)))
    waiting, longest = np.zeros(n, np.int64), np.zeros(n, np.int64)
    most_rows(starts, visit, first, children, waiting)
    np.maximum.at(longest, tree[order], runs)
    return PackedTrees(TreeNodes(starts, labels, visit, first, children, runs), waiting, longest, _leaves(nodes))


def _leaves(nodes: Nodes) -> Leaves:
    leaves = np.flatnonzero(nodes.sizes == 1)
    tree, labels = nodes.trees[leaves], nodes.labels[leaves]
    counts = np.bincount(tree, minlength=len(nodes.starts) - 1)
    return Leaves(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), labels[np.lexsort((labels, tree))])


@dataclass(frozen=True, repr=False)
class NodePairs(PairKernel):
    """Base of kernels ``sum_{s, t} C(s, t)`` over pairs of nodes, with C from that of their children."""

    rows_of: ClassVar[type[Objects]] = Trees
    side: ClassVar[int] = 64

    @abc.abstractmethod
    def _node_kernel(self) -> NodeKernel:
        """How two nodes are compared."""

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        room = _room(left, right)
        with _reserved(8 * room):
            args = (*_sides(left, right), self._node_kernel(), symmetric, room, out)
            threads.interruptible(compare_trees, args, _steps(left, right))

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        room, slopes = _room(left, right), np.zeros(2)
        with _reserved(24 * room):
            weights = np.ascontiguousarray(weights, np.float64)
            args = (*_sides(left, right), self._node_kernel(), room, weights, slopes)
            threads.interruptible(tree_slopes, args, _steps(left, right))
        return slopes[: len(self._numbers())]


def _sides(left: Packed, right: Packed) -> tuple[TreeSide, TreeSide]:
    return TreeSide(left.store.nodes, left.index), TreeSide(right.store.nodes, right.index)


def _room(left: Packed, right: Packed) -> int:
    """Maximum number of values stored at once."""
    waiting, longest = left.store.waiting[left.index], right.store.longest[right.index]
    return int(waiting.max(initial=0) * longest.max(initial=0)) + 1


def _steps(left: Packed, right: Packed) -> float:
    """Pairs of nodes."""
    starts, others = left.store.nodes.starts, right.store.nodes.starts
    one = (starts[left.index + 1] - starts[left.index]).sum(dtype=np.float64)
    return float(one * (others[right.index + 1] - others[right.index]).sum(dtype=np.float64))


def _reserved(nbytes: int) -> AbstractContextManager[None]:
    if nbytes < _SMALL:
        return nullcontext()
    return memory.reserve(nbytes, "comparing the nodes of two trees", "Cut the trees into smaller ones.")
