"""
A Gaussian process before and after data
========================================

The prior is a distribution over functions, of which three are drawn. Data narrow it where they are; between and beyond
them the band widens again.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import GaussianProcessRegressor
from mercer.kernels import RBF
from mercer.plotting import ProcessDisplay

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 6, 9))[:, None]
y = np.sin(1.5 * x[:, 0]) + 0.1 * rng.normal(size=9)
process = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.01, optimizer=None)

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
ProcessDisplay.from_estimator(process, x).plot(ax=left)
ProcessDisplay.from_estimator(process.fit(x, y), x, y).plot(ax=right)
left.set_title("prior")
right.set_title("posterior")
plt.show()
