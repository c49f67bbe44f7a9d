"""Trees compared by the complete subtrees that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.objects import Objects
from mercer.data.trees import Nodes, Trees
from mercer.kernels.base import Searched
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import positive, whole


@dataclass(frozen=True, repr=False)
class Subtree(FeatureKernel):
    """``k(x, z) = sum_u decay^m(u) count_u(x) count_u(z)`` over subtrees ``u``: nodes with all their descendants.

    ``m(u)`` is the number of nodes of u that have children, and 1 for a leaf.

    Parameters
    ----------
    smallest : int, default=1
        Nodes in the smallest subtree that is counted; 1 also counts leaves.
    decay : float, default=1.0
        The weight of each node with children, above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``smallest`` is not a whole number above 0, or ``decay`` not above 0.
    DataError
        When evaluated, if a row is not a tree.

    Notes
    -----
    Vishwanathan and Smola (2003), "Fast kernels for string and tree matching". Subtrees are identified by hashes of 64
    bits: two of a million different ones collide with a probability of 3e-8.

    With ``smallest=2`` it is the ST kernel of SVM-light-TK (``-F 0 -L decay``): ``C(s, t) = decay prod_j C(s_j, t_j)``
    over the children that are not leaves, for nodes with equal productions. The ``SubTreeKernel`` of KeLP adds pairs of
    leaves, as ``smallest=1`` does here; where children have different productions it has the factor 1 instead of 0, so
    it is larger.

    Examples
    --------
    >>> trees = ["(S (NP I) (VP run))", "(S (NP I) (VP see (NP you)))"]
    >>> Subtree()(trees).tolist()  # what they share is I and (NP I)
    [[5.0, 2.0], [2.0, 7.0]]
    >>> Subtree(smallest=2)(trees).tolist()
    [[3.0, 1.0], [1.0, 4.0]]
    >>> Subtree(smallest=2, decay=0.5)(trees).round(9).tolist()  # a decay for each node with children
    [[1.125, 0.5], [0.5, 1.3125]]
    """

    smallest: int = 1
    decay: float = 1.0

    rows_of: ClassVar[type[Objects]] = Trees
    searched: ClassVar[Searched] = {"smallest": (1, 2, 3)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "smallest", whole("Subtree", "smallest", self.smallest, "a whole number above 0"))
        object.__setattr__(self, "decay", positive("Subtree", "decay", self.decay, "a number above 0"))

    def _features(self, objects: Trees) -> Features:
        nodes = objects.nodes()
        counted = nodes.sizes >= self.smallest
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counted)])
        ids = nodes.subtrees[counted].view(np.uint64)
        return Features(ids, self._roots(nodes)[counted], before[nodes.starts])

    def _roots(self, nodes: Nodes) -> NDArray[np.float64]:
        """The root of the weight of each node's subtree."""
        # A node is followed by all that is below it.
        inner = np.concatenate([np.zeros(1, np.int64), np.cumsum(nodes.sizes > 1)])
        first = np.arange(len(nodes.sizes))
        below = inner[first + nodes.sizes] - inner[first]
        roots: NDArray[np.float64] = self.decay ** (0.5 * np.maximum(below, 1))
        return roots
