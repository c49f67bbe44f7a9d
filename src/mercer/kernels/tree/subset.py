"""Trees compared by the fragments that they share, where a node has all of its children or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.trees import Trees
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.objects import Packed
from mercer.kernels.parameters import flag, number
from mercer.kernels.tree.packed import NodePairs, PackedTrees, pack
from mercer.loops.trees import NodeKernel, TreeSide, common_leaves


@dataclass(frozen=True, repr=False)
class SubsetTree(NodePairs):
    """``k(x, z) = sum_f decay^|f| count_f(x) count_f(z)`` over all fragments ``f``.

    A fragment is a connected part of a tree with at least two nodes, where each node has all of its children or none;
    ``|f|`` is the number of nodes that have them. Two fragments are the same if their shapes and labels are, so a node
    whose children are cut off equals a leaf with the same label. A tree of one node has no fragments, and the kernel
    is 0 there. Values grow as fast as the number of fragments, which ``.normalized()`` compensates.

    Parameters
    ----------
    decay : float, default=0.4
        The weight of each node with children, above 0. By default a search goes up to 1.
    leaves : bool, default=False
        Whether to add pairs of leaves with the same label, ``decay`` for each: a bag of words.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``decay`` is not above 0, or ``leaves`` is not a bool.
    DataError
        When evaluated, if a row is not a tree.

    Notes
    -----
    Collins and Duffy (2002), "New ranking algorithms for parsing and tagging: kernels over discrete structures, and the
    voted perceptron", section 3. ``C(s, t) = 0`` for nodes without children or with different productions (the label,
    and the labels of the children), and otherwise ``C(s, t) = decay prod_j (1 + C(s_j, t_j))`` over the children; the
    kernel is the sum of C over all pairs of nodes. For nodes with leaves alone below them C is ``decay``, as it is in
    the paper for the tags of words.

    Without leaves it is the SST kernel of SVM-light-TK (``-F 1 -L decay``) and the ``SubSetTreeKernel`` of KeLP with
    ``includeLeaves`` false; with them SST-bow (``-F 2``) and that kernel of KeLP with its defaults. Leaves below
    a node have the factor 1 in its product either way.

    Only nodes with the same production are compared (Moschitti, 2006, "Making tree kernels practical for natural
    language learning"). Productions are identified by hashes of 64 bits.

    Examples
    --------
    >>> trees = ["(NP (D the) (N dog))", "(NP (D the) (N cat))"]
    >>> SubsetTree(decay=1.0)(trees).tolist()  # (D the), (NP D N) and (NP (D the) N)
    [[6.0, 3.0], [3.0, 6.0]]
    >>> SubsetTree(decay=1.0, leaves=True)(trees).tolist()  # and "the", "dog"
    [[8.0, 4.0], [4.0, 8.0]]
    """

    decay: float = number(0.4, bounds=(1e-5, 1.0))
    leaves: bool = False

    searched: ClassVar[Searched] = {"leaves": (False, True)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "leaves", flag("SubsetTree", "leaves", self.leaves))

    def _pack(self, objects: Trees) -> PackedTrees:
        nodes = objects.nodes()
        return pack(nodes, nodes.productions, nodes.sizes > 1)

    def _node_kernel(self) -> NodeKernel:
        return NodeKernel(False, self.decay, 1.0, 1.0)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        super()._compare(left, right, out, symmetric)
        if self.leaves:
            out += self.decay * self._common_leaves(left, right)

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        slopes = super()._pull_pairs(left, right, weights)
        if self.leaves:
            slopes[0] += np.vdot(weights, self._common_leaves(left, right))
        return slopes

    def _common_leaves(self, left: Packed, right: Packed) -> Array:
        counts = np.empty((len(left), len(right)))
        one, other = (np.diff(side.store.leaves.starts)[side.index].sum() for side in (left, right))
        args = (TreeSide(left.store.leaves, left.index), TreeSide(right.store.leaves, right.index), counts)
        threads.interruptible(common_leaves, args, float(len(right) * one + len(left) * other))
        return counts
