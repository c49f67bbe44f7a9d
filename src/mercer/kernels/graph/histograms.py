"""Graphs compared by the labels of their nodes, or of their edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mercer.data.graphs import Graphs
from mercer.data.objects import Objects
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.graph.counting import ones


@dataclass(frozen=True, repr=False)
class VertexHistogram(FeatureKernel):
    """``k(G, H) = sum_a count_a(G) count_a(H)`` over the labels ``a`` of nodes.

    Nodes without labels are all equal, and differ from any node with a label.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    DataError
        When evaluated, if a row is not a graph.

    Notes
    -----
    Sugiyama and Borgwardt (2015), "Halting in random walk kernels", section 2.2.

    Examples
    --------
    >>> VertexHistogram()([([(0, 1)], ["C", "O"]), ([(0, 1), (1, 2)], ["C", "C", "N"])]).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """

    rows_of: ClassVar[type[Objects]] = Graphs

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        return ones(joint.labels, joint.nodes)


@dataclass(frozen=True, repr=False)
class EdgeHistogram(FeatureKernel):
    """``k(G, H) = sum_a count_a(G) count_a(H)`` over the labels ``a`` of edges, each edge counted once.

    Edges without labels are all equal, and differ from any edge with a label.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    DataError
        When evaluated, if a row is not a graph.

    Notes
    -----
    Sugiyama and Borgwardt (2015), "Halting in random walk kernels", section 2.2.

    Examples
    --------
    >>> EdgeHistogram()([([(0, 1)], None, [2]), ([(0, 1), (1, 2)], None, [2, 2])]).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    rows_of: ClassVar[type[Objects]] = Graphs

    def _features(self, objects: Graphs) -> Features:
        joint = objects.joint()
        return ones(joint.edge_labels, joint.first_edge)
