"""
One data set, three kernels
===========================

The Gram matrix is all that a learner sees of the rows. Rows are in the order of their classes.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from mercer.kernels import RBF, Linear, Polynomial
from mercer.plotting import GramDisplay

X, y = load_iris(return_X_y=True)
fig, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, kernel in zip(axes, [Linear().normalized(), Polynomial(3).normalized(), RBF(0.7)]):
    GramDisplay.from_kernel(kernel, X, y).plot(ax=ax)
    ax.set_title(repr(kernel))
plt.show()
