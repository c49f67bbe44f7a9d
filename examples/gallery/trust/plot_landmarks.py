"""
How many landmarks are enough?
==============================

A function over landmarks approximates the exact one. ``certify_landmarks`` bounds the distance between both at any row,
without computing the exact one; here it is computed as well, to compare.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import KernelRidge, certify_landmarks
from mercer.kernels import RBF

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(500, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=500)
new = rng.uniform(-2, 2, size=(200, 2))
exact = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y).predict(new)

numbers, errors, bounds = [5, 10, 20, 40, 80], [], []
for m in numbers:
    model = KernelRidge(0.1, kernel=RBF(1.0), approximation="nystroem", n_landmarks=m, random_state=0).fit(X, y)
    errors.append(np.max(np.abs(model.predict(new) - exact)))
    bounds.append(np.max(certify_landmarks(model, X, y).prediction_bound(new)))

fig, ax = plt.subplots(layout="constrained")
ax.loglog(numbers, bounds, "s-", label="bound by certify_landmarks")
ax.loglog(numbers, errors, "o-", label="distance from the exact function")
ax.set(xlabel="landmarks", ylabel="largest distance at 200 new rows", xticks=numbers, xticklabels=numbers)
ax.minorticks_off()
ax.legend()
plt.show()
