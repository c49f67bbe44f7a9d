"""
Probabilities from two likelihoods
==================================

Kernel logistic regression gives one function, the best for its penalty; a Gaussian process averages over all functions.
Far from the rows the average returns to one half, and the single function to its intercept.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import GaussianProcessClassifier, KernelLogisticRegression
from mercer.kernels import RBF

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 60))
y = (rng.uniform(size=60) < 1 / (1 + np.exp(-4 * np.sin(1.5 * x)))).astype(int)
line = np.linspace(-6, 6, 300)[:, None]

logistic = KernelLogisticRegression(kernel=RBF(0.8), C=3.0).fit(x[:, None], y)
process = GaussianProcessClassifier(3.0 * RBF(0.8), optimizer=None).fit(x[:, None], y)

fig, ax = plt.subplots(layout="constrained")
ax.plot(x, y, "|", color="black", markersize=12, label="rows")
ax.plot(line, logistic.predict_proba(line)[:, 1], label="KernelLogisticRegression")
ax.plot(line, process.predict_proba(line)[:, 1], label="GaussianProcessClassifier")
ax.axhline(0.5, color="grey", linewidth=0.8)
ax.set(xlabel="x", ylabel="probability of class 1", ylim=(-0.05, 1.2))
ax.legend(loc="upper center", ncols=3, fontsize="small")
plt.show()
