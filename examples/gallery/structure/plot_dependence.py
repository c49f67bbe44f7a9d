"""
Dependence without correlation
==============================

Points on a noisy circle have no correlation, but x says much about y. The Hilbert-Schmidt independence criterion sees
it.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import comparison

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 100)
circle = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.15 * rng.normal(size=(100, 2))
cloud = 0.7 * rng.normal(size=(100, 2))

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for ax, points in zip(axes, (circle, cloud)):
    p = comparison.hsic(points[:, :1], points[:, 1:], random_state=0).p_value
    ax.plot(*points.T, ".")
    ax.set(title=f"correlation {np.corrcoef(points.T)[0, 1]:.2f}, p of hsic {p:.3g}", xlabel="x", ylabel="y")
plt.show()
