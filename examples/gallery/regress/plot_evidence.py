"""
The evidence as a function of two hyper-parameters
==================================================

``fit`` maximises the log marginal likelihood. With few rows it can have two maxima: a short length scale with little
noise, and a long one that calls everything noise. Restarts find the higher one.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import GaussianProcessRegressor
from mercer.kernels import RBF, White

rng = np.random.default_rng(0)
x = rng.uniform(0, 5, 20)[:, None]
y = 0.5 * np.sin(3 * x[:, 0]) + 0.5 * rng.normal(size=20)
model = GaussianProcessRegressor(RBF(1.0) + White(0.1), n_restarts_optimizer=3, random_state=0).fit(x, y)

scales, noises = np.logspace(-1.5, 2, 40), np.logspace(-2, 0.3, 40)
values = [[model.log_marginal_likelihood(np.log([s, n])) for s in scales] for n in noises]
fig, ax = plt.subplots(layout="constrained")
contours = ax.contour(scales, noises, values, levels=np.max(values) - np.arange(8, 0, -0.4))
ax.plot(*np.exp(model.kernel_.theta), "k*", markersize=12, label="found by fit")
ax.set(xscale="log", yscale="log", xlabel="length scale", ylabel="variance of the noise")
fig.colorbar(contours, label="log evidence")
ax.legend()
plt.show()
