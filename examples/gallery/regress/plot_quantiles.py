"""
Quantiles that do not cross
===========================

Where the noise grows, a constant band is wrong. Quantile regression learns the tenth, the fiftieth and the ninetieth
percentile as functions of x, together, so that they never cross.
"""

import numpy as np

from mercer import KernelQuantileRegression
from mercer.plotting import ProcessDisplay

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 6, 150))
y = np.sin(x) + (0.05 + 0.12 * x) * rng.normal(size=150)
model = KernelQuantileRegression([0.1, 0.5, 0.9], gamma=0.3, C=10.0).fit(x[:, None], y)
ProcessDisplay.from_estimator(model, x[:, None], y).plot()

low, _, high = model.predict(x[:, None]).T
print(f"{np.mean((low <= y) & (y <= high)):.0%} of the rows lie between the outer quantiles")
