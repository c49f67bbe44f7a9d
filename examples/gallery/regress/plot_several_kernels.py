"""
Which columns matter: weights of several kernels
================================================

Each term compares one column. ``MultipleKernelRidge`` learns the weights by the leave-one-out error, and columns that
say nothing get none.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import MultipleKernelRidge
from mercer.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.2 * rng.normal(size=200)
kernel = RBF(1.0).on([0])
for column in range(1, 5):
    kernel = kernel + RBF(1.0).on([column])
model = MultipleKernelRidge(kernel).fit(X, y)

fig, ax = plt.subplots(layout="constrained")
ax.bar([f"column {j}" for j in range(5)], model.weights_)
ax.set(ylabel="weight", title="y = sin(2 x₀) + x₂ / 2 + noise")
plt.show()
