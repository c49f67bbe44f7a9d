"""
Handwritten digits in two components
====================================

Kernel principal components of 600 images of 64 pixels, without the labels; the colours show them.
"""

from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.plotting import ComponentsDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
few = y < 5
model = KernelPCA(2, kernel="rbf", gamma=1e-3).fit(X[few])
ComponentsDisplay.from_estimator(model, X[few], y[few]).plot()
