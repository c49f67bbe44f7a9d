"""Trees compared by the fragments that they share, where a node has all of its children or none."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.data.trees import Trees
from mercer.kernels.parameters import number
from mercer.kernels.tree.packed import NodePairs, PackedTrees, pack


@dataclass(frozen=True, repr=False)
class SubsetTree(NodePairs):
    """``k(x, z) = sum_f decay^|f| count_f(x) count_f(z)`` over all fragments ``f``.

    A fragment is a connected part of a tree with at least two nodes, where each node has all of its children or none;
    ``|f|`` is the number of nodes that have them. Two fragments are the same if their shapes and labels are, so that a
    node that was cut off and a leaf with its label do not differ. A tree of one node has no fragments, and the kernel
    is 0 there. Values grow as fast as the number of fragments, which ``.normalized()`` takes back.

    Parameters
    ----------
    decay : float, default=0.4
        What each node with children counts; above 0. A search looks up to 1 where it is not told otherwise.

    Raises
    ------
    ParameterError
        If ``decay`` is not above 0.
    DataError
        When evaluated, if a row is no tree.

    Notes
    -----
    Collins and Duffy (2002), "New ranking algorithms for parsing and tagging: kernels over discrete structures, and the
    voted perceptron", section 3. ``C(s, t) = 0`` for nodes without children or with different productions (the label,
    and the labels of the children), and otherwise ``C(s, t) = decay prod_j (1 + C(s_j, t_j))`` over the children; the
    kernel is the sum of C over all pairs of nodes. For nodes with leaves alone below them C is ``decay``, as it is in
    the paper for the tags of words.

    Only nodes with the same production are compared (Moschitti, 2006, "Making tree kernels practical for natural
    language learning"). Productions are told apart by hashes of 64 bits.

    Examples
    --------
    >>> trees = ["(NP (D the) (N dog))", "(NP (D the) (N cat))"]
    >>> SubsetTree(decay=1.0)(trees).tolist()  # (D the), (NP D N) and (NP (D the) N)
    [[6.0, 3.0], [3.0, 6.0]]
    """

    decay: float = number(0.4, bounds=(1e-5, 1.0))

    def _pack(self, objects: Trees) -> PackedTrees:
        nodes = objects.nodes()
        return pack(nodes, nodes.productions, nodes.sizes > 1)

    def _decays(self) -> tuple[bool, float, float]:
        return False, self.decay, 1.0
