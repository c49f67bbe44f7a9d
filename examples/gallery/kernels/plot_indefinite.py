"""
A function that is not a kernel
===============================

The eigenvalues of a Gram matrix show whether a similarity is positive semi-definite on given rows. The sigmoid is not.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer.kernels import RBF, Sigmoid
from mercer.plotting import SpectrumDisplay

X = np.random.default_rng(0).normal(size=(100, 2))
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, kernel in zip(axes, [RBF(1.0), Sigmoid(0.5, 0.5)]):
    SpectrumDisplay.from_kernel(kernel, X).plot(ax=ax)
    ax.set_title(repr(kernel))
plt.show()
