"""Trees compared by the complete subtrees that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.data.objects import Objects
from mercer.data.trees import Trees
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import whole


@dataclass(frozen=True, repr=False)
class Subtree(FeatureKernel):
    """``k(x, z) = sum_u count_u(x) count_u(z)`` over all trees ``u``, as complete subtrees: nodes with all below them.

    Parameters
    ----------
    smallest : int, default=1
        Nodes in the smallest subtree that counts; 1 counts leaves, too.

    Raises
    ------
    ParameterError
        If ``smallest`` is no whole number above 0.
    DataError
        When evaluated, if a row is no tree.

    Notes
    -----
    Vishwanathan and Smola (2003), "Fast kernels for string and tree matching". Subtrees are told apart by hashes of 64
    bits: two of a million different ones collide with a probability of 3e-8.

    Examples
    --------
    >>> trees = ["(S (NP I) (VP run))", "(S (NP I) (VP see (NP you)))"]
    >>> Subtree()(trees).tolist()  # what they share is I and (NP I)
    [[5.0, 2.0], [2.0, 7.0]]
    >>> Subtree(smallest=2)(trees).tolist()
    [[3.0, 1.0], [1.0, 4.0]]
    """

    smallest: int = 1

    rows_of: ClassVar[type[Objects]] = Trees

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "smallest", whole("Subtree", "smallest", self.smallest, "a whole number above 0"))

    def _features(self, objects: Trees) -> Features:
        nodes = objects.nodes()
        counted = nodes.sizes >= self.smallest
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counted)])
        ids = nodes.subtrees[counted].view(np.uint64)
        return Features(ids, np.ones(len(ids)), before[nodes.starts])
