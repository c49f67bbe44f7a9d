"""Graphs compared by the shortest paths between their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.graph.counting import path_features
from mercer.kernels.parameters import flag


@dataclass(frozen=True, repr=False)
class ShortestPath(FeatureKernel):
    """``k(G, H) = sum_{(u, v) in G} sum_{(s, t) in H} [l(u) = l(s), l(v) = l(t), d(u, v) = d(s, t)]``.

    The sums are over pairs of different nodes that are joined by a path, ``l`` is the label of a node and ``d`` the
    number of edges on a shortest path: every edge has the length 1, and edge weights of networkx are not used.

    Parameters
    ----------
    labels : bool, default=True
        Whether to compare the labels of the two ends, or the length alone.
    ordered : bool, default=True
        Whether ``(u, v)`` and ``(v, u)`` are two pairs. Otherwise they are one pair, which agrees with another if
        either of them does. A path between labels that differ then weighs as much as one between equal labels, and not
        half.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``labels`` or ``ordered`` is not a bool.
    DataError
        When evaluated, if a row is not a graph.

    Notes
    -----
    Borgwardt and Kriegel (2005), "Shortest-path kernels on graphs", with the delta kernel on labels and lengths. The
    figures of Shervashidze et al. (2011), "Weisfeiler-Lehman graph kernels", are those of
    ``ShortestPath(ordered=False) + VertexHistogram()``: each node is a path of length 0 as well.

    Examples
    --------
    >>> path = [(0, 1), (1, 2)]
    >>> ShortestPath()([(path, ["C", "C", "O"]), ([(0, 1)], ["C", "C"])]).tolist()
    [[8.0, 4.0], [4.0, 4.0]]
    >>> ShortestPath(ordered=False)([(path, ["C", "C", "O"]), ([(0, 1)], ["C", "C"])]).tolist()
    [[3.0, 1.0], [1.0, 1.0]]
    """

    labels: bool = True
    ordered: bool = True

    rows_of: ClassVar[type[Objects]] = Graphs

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", flag("ShortestPath", "labels", self.labels))
        object.__setattr__(self, "ordered", flag("ShortestPath", "ordered", self.ordered))

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        labels = joint.labels if self.labels else np.zeros_like(joint.labels)
        return path_features(joint, labels[None], self.ordered)
