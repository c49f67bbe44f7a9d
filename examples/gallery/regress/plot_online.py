"""
Rows that arrive one at a time
==============================

``OnlineKernelRegressor`` learns from each row once and keeps at most ``budget`` support vectors. The error of each row
is measured before the model learns from it.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import OnlineKernelRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(1500, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=1500)

fig, ax = plt.subplots(layout="constrained")
for budget in (5, 15, 60):
    model = OnlineKernelRegressor(gamma=1.0, budget=budget, random_state=0).partial_fit(X[:50], y[:50])
    errors = []
    for start in range(50, 1500, 50):
        block = slice(start, start + 50)
        errors.append(np.mean((model.predict(X[block]) - y[block]) ** 2))
        model.partial_fit(X[block], y[block])
    ax.plot(range(50, 1500, 50), errors, label=f"budget {budget}")
ax.axhline(0.01, color="grey", linestyle="dotted", label="variance of the noise")
ax.set(xlabel="rows seen", ylabel="mean squared error of the next 50 rows", yscale="log")
ax.legend()
plt.show()
