"""
Trend and season
================

A sum of kernels says what a series is made of: here a smooth trend and a pattern that repeats each year. The process
carries both on beyond the data.
"""

import numpy as np

from mercer import GaussianProcessRegressor
from mercer.kernels import RBF, Periodic
from mercer.plotting import ProcessDisplay

rng = np.random.default_rng(0)
year = np.linspace(0, 8, 110)
y = 0.3 * year + np.sin(2 * np.pi * year) + 0.3 * np.cos(4 * np.pi * year) + 0.15 * rng.normal(size=110)
kernel = 1.0 * RBF(5.0) + 1.0 * Periodic(1.0, 1.0).fixed("period")
model = GaussianProcessRegressor(kernel, noise=0.02, normalize_y=True).fit(year[:, None], y)

display = ProcessDisplay.from_estimator(model, year[:, None], y, n_draws=0).plot()
ahead = np.linspace(8, 11, 150)
mean, std = model.predict(ahead[:, None], return_std=True)
display.ax_.plot(ahead, mean, color="black", linestyle="dashed")
display.ax_.fill_between(ahead, mean - 2 * std, mean + 2 * std, color="grey", alpha=0.2)
display.ax_.set(xlabel="year")
print(model.kernel_)
