"""
Handwritten digits in two components
====================================

Kernel principal components of 303 images of the digits 0 to 4, of 64 pixels each. They do not know the labels, which
give the colours.
"""

from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.plotting import ComponentsDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
few = y < 5
model = KernelPCA(2, kernel="rbf", gamma=1e-3).fit(X[few])
ComponentsDisplay.from_estimator(model, X[few], y[few]).plot()
