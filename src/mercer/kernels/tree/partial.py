"""Trees compared by the fragments that they share, where a node may have some of its children."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from mercer._errors import ParameterError
from mercer.data.objects import short
from mercer.data.trees import Trees
from mercer.kernels.parameters import as_float, number
from mercer.kernels.tree.packed import NodePairs, PackedTrees, pack
from mercer.loops.trees import NodeKernel


@dataclass(frozen=True, repr=False)
class PartialTree(NodePairs):
    """``k(x, z) = sum_f decay^nodes(f) l^(2 leaves(f)) sum_{i: x[i] = f} sum_{j: z[j] = f} l^(gaps(i) + gaps(j))``.

    A fragment ``f`` is a connected part of a tree in which each node has some of its children, in their order, or none;
    it may be a single node. Where it occurs, at ``i`` in x, children that are left out between others that are included
    are ``gaps``. ``l`` is the horizontal decay.

    Parameters
    ----------
    decay : float, default=0.4
        The weight of each node of a fragment, above 0. By default a search goes up to 1.
    horizontal_decay : float, default=0.4
        The weight of each child in a gap, and its square that of the end of a branch; above 0, with the same bound.
    terminal_factor : float, default=1.0
        Additional factor of a pair of nodes with the same label if one of them is a leaf, from 0 to 1. With 0, pairs
        with a leaf contribute nothing. Above 1 the kernel would not be positive.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If a decay is not above 0, or ``terminal_factor`` not from 0 to 1.
    DataError
        When evaluated, if a row is not a tree.

    Notes
    -----
    Moschitti (2006), "Efficient convolution kernels for dependency and constituent syntactic trees". ``C(s, t) = 0``
    for nodes with different labels, and otherwise ``C(s, t) = decay (l^2 + sum_{I, J} l^(gaps(I) + gaps(J)) prod_k
    C(s_{I_k}, t_{J_k}))`` over subsequences I and J of the children, of one length of at least 1; the kernel is the sum
    of C over all pairs of nodes. Gaps are counted as by the algorithm in section 3.3 of the paper, where children side
    by side have no gap between them; its equation 3 counts the steps from the first child to the last one. Here the
    subsequences of all lengths are summed at once, so two nodes with p and q children take p q steps.

    ``C(s, t) = decay l^2 terminal_factor`` if s or t is a leaf. That is the ``PartialTreeKernel`` of KeLP with lambda
    ``horizontal_decay``, mu ``decay`` and its ``terminalFactor``, and with a factor of 1 the kernel of SVM-light-TK
    (``-F 3 -L horizontal_decay -M decay``).

    Examples
    --------
    >>> trees = ["(NP (D a) (A red) (N dog))", "(NP (D a) (N dog))"]
    >>> PartialTree(decay=1.0, horizontal_decay=1.0)(trees).tolist()
    [[36.0, 15.0], [15.0, 15.0]]
    """

    decay: float = number(0.4, bounds=(1e-5, 1.0))
    horizontal_decay: float = number(0.4, bounds=(1e-5, 1.0))
    terminal_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        factor = self.terminal_factor
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 <= as_float(factor) <= 1:
            raise ParameterError(f"PartialTree: terminal_factor must be a number from 0 to 1, but is {short(factor)}.")
        object.__setattr__(self, "terminal_factor", float(factor))

    def _pack(self, objects: Trees) -> PackedTrees:
        nodes = objects.nodes()
        return pack(nodes, nodes.labels, np.ones(len(nodes.labels), bool))

    def _node_kernel(self) -> NodeKernel:
        return NodeKernel(True, self.decay, self.horizontal_decay, self.terminal_factor)
