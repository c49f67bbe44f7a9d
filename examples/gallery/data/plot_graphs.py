"""
Graphs of three kinds
=====================

Rings, stars and random trees of 6 to 14 nodes. The Weisfeiler-Lehman kernel compares the neighbourhoods of their nodes.
All rings are one point, because the nodes of a ring are alike.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import Graph, KernelPCA
from mercer.kernels import WeisfeilerLehman

rng = np.random.default_rng(0)


def edges(kind: str, n: int) -> list[tuple[int, int]]:
    """Return the edges of a graph of n nodes."""
    if kind == "ring":
        return [(i, (i + 1) % n) for i in range(n)]
    if kind == "star":
        return [(0, i) for i in range(1, n)]
    return [(int(rng.integers(0, i)), i) for i in range(1, n)]


kinds = np.repeat(["ring", "star", "tree"], 20)
graphs = [Graph(edges(kind, n), labels=["node"] * n) for kind in kinds for n in [int(rng.integers(6, 15))]]
points = KernelPCA(2, kernel=WeisfeilerLehman(2).normalized()).fit_transform(graphs)

fig, ax = plt.subplots(layout="constrained")
for kind, marker in zip(("ring", "star", "tree"), "osv"):
    ax.plot(*points[kinds == kind].T, marker, label=kind)
ax.set(xlabel="component 0", ylabel="component 1")
ax.legend()
plt.show()
