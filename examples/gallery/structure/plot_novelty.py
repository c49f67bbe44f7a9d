"""
What is unusual
===============

``OneClassSVM`` learns where the rows of one kind lie. ``nu`` is the largest share of the training rows that may be left
outside.
"""

import numpy as np
from sklearn.datasets import make_blobs

from mercer import OneClassSVM
from mercer.plotting import BoundaryDisplay

X, _ = make_blobs(150, centers=[[-2, 0], [2, 0]], cluster_std=0.6, random_state=0)
model = OneClassSVM(gamma=0.5, nu=0.1).fit(X)
BoundaryDisplay.from_estimator(model, X).plot()
print(f"{np.mean(model.roles_ == 'outside'):.1%} of the training rows lie outside")
