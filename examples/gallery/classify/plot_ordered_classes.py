"""
Classes that have an order
==========================

Ordinal regression learns one function and cut-points on its scale. The picture shows the place of each row on the
scale, by its grade, and marks the rows that are not between the cut-points of their grade.
"""

import numpy as np

from mercer import KernelOrdinalRegression
from mercer.plotting import OrdinalDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(150, 2))
quality = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * rng.normal(size=150)
grades = np.array(["low", "middle", "high"])[np.digitize(quality, [-0.7, 0.9])]
model = KernelOrdinalRegression(gamma=0.5, C=1.0, classes=["low", "middle", "high"]).fit(X, grades)
OrdinalDisplay.from_estimator(model, X, grades).plot()
