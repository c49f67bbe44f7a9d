"""
Components that part rings
==========================

No line in the plane separates two rings. A line in the first two components of a Gaussian kernel does.
"""

import numpy as np
from sklearn.datasets import make_circles

from mercer import KernelPCA
from mercer.plotting import ComponentsDisplay

X, ring = make_circles(200, factor=0.3, noise=0.05, random_state=0)
model = KernelPCA(2, kernel="rbf", gamma=10.0).fit(X)
ComponentsDisplay.from_estimator(model, X, np.array(["outer", "inner"])[ring]).plot()
