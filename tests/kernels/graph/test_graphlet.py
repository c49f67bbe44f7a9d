"""Sampled graphlets beside their exact counts."""

from __future__ import annotations

import numpy as np

from mercer import Graph
from mercer.data.graphs import Graphs
from mercer.kernels import Graphlet


def test_sampled_graphlets_estimate_the_counts() -> None:
    wheel = Graph([(i, (i + 1) % 8) for i in range(8)] + [(8, i) for i in range(8)])
    rows = Graphs.of([wheel, Graph([(0, 1)]), wheel])
    for connected in (True, False):
        exact = Graphlet(4, connected=connected)._features(rows)
        drawn_from = Graphlet(4, connected=connected, samples=20_000, seed=1)
        features = drawn_from._features(rows)
        assert features.ids.tolist() == exact.ids.tolist() and features.starts.tolist() == exact.starts.tolist()
        # Of 126 sets of nodes: five standard deviations of a binomial share.
        share = exact.counts / 126
        assert (np.abs(features.counts / 126 - share) <= 5 * np.sqrt(share * (1 - share) / 20_000)).all()
        # Equal graphs are drawn from alike, whatever stands beside them.
        alone = drawn_from._features(Graphs.of([wheel]))
        for row in (0, 2):
            part = slice(features.starts[row], features.starts[row + 1])
            assert features.ids[part].tolist() == alone.ids.tolist()
            assert features.counts[part].tolist() == alone.counts.tolist()
        K = drawn_from(rows)
        # Equal sums of as many products as there are features, in orders of their own.
        rounding = len(alone.ids) * np.finfo(float).eps
        np.testing.assert_allclose(K[[0, 0, 2], [0, 2, 2]], drawn_from([wheel])[0, 0], rtol=rounding)
        assert not K[1].any()
    assert Graphlet(4, samples=50)([wheel])[0, 0] != Graphlet(4, samples=50, seed=1)([wheel])[0, 0]
