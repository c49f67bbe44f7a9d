"""
A support vector machine for each C
===================================

Each solution starts from the one before. With more C there are fewer support vectors; the error of held-out rows is
least in between.
"""

import numpy as np
from sklearn.datasets import make_moons

from mercer import svm_path
from mercer.plotting import PathDisplay

X, y = make_moons(300, noise=0.35, random_state=0)
path = svm_path(X[:150], y[:150], np.logspace(-2, 4, 13), gamma=2.0)
PathDisplay.from_path(path, X[150:], y[150:]).plot()
