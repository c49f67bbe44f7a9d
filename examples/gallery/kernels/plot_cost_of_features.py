"""
The kernel trick, counted and timed
===================================

The polynomial kernel of degree k on d columns is an inner product of :math:`\\binom{d + k}{k}` features. It is computed
from one inner product of d numbers.
"""

import time
from math import comb

import numpy as np
from matplotlib import pyplot as plt

from mercer.kernels import Polynomial
from mercer.maps import PolynomialMap

rng = np.random.default_rng(0)
degree, columns = 3, [2, 4, 8, 16, 24]
by_kernel, by_map = [], []
# The first call of each loads code.
Polynomial(degree)(rng.normal(size=(300, 2)))
PolynomialMap(degree=degree).fit_transform(rng.normal(size=(300, 2)))
for d in columns:
    X = rng.normal(size=(300, d))
    start = time.perf_counter()
    K = Polynomial(degree)(X)
    by_kernel.append(time.perf_counter() - start)
    start = time.perf_counter()
    features = PolynomialMap(degree=degree).fit_transform(X)
    L = features @ features.T
    by_map.append(time.perf_counter() - start)
    assert np.allclose(K, L) and features.shape[1] == comb(d + degree, degree)

fig, ax = plt.subplots(layout="constrained")
ax.loglog(columns, by_map, "s-", label="explicit features, with their number")
ax.loglog(columns, by_kernel, "o-", label="kernel")
for d, seconds in zip(columns, by_map):
    ax.annotate(
        f"{comb(d + degree, degree)} features", (d, seconds), xytext=(4, -12), textcoords="offset points", fontsize=8
    )
ax.set(xlabel="columns", ylabel="seconds for 300 × 300 values", xticks=columns, xticklabels=columns)
ax.minorticks_off()
ax.legend()
plt.show()
