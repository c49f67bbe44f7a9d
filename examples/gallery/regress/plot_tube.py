"""
The tube of support vector regression
=====================================

Errors up to ``epsilon`` cost nothing. Rows inside the tube have no part in the solution; those on its edge and outside
are the support vectors.
"""

import numpy as np

from mercer import SVR
from mercer.plotting import TubeDisplay

rng = np.random.default_rng(2)
x = np.sort(rng.uniform(0, 6, 60))
y = np.sin(1.5 * x) + 0.2 * rng.normal(size=60)
model = SVR(C=10.0, epsilon=0.25).fit(x[:, None], y)
TubeDisplay.from_estimator(model, x[:, None], y).plot()
