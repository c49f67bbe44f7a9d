"""
Mercer's eigenfunctions
=======================

A kernel is a sum over the eigenfunctions of its integral operator. On rows from a normal distribution they look like
waves that get finer as their eigenvalues fall.
"""

import numpy as np

from mercer.kernels import RBF
from mercer.plotting import EigenfunctionsDisplay

x = np.random.default_rng(0).normal(size=(300, 1))
EigenfunctionsDisplay.from_kernel(RBF(0.7), x).plot()
