"""
Clusters in feature space
=========================

Kernel k-means gives each row to the nearest mean in feature space. With a linear kernel, which is k-means, a straight
line parts two clusters; with a Gaussian kernel it may bend.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from mercer import KernelKMeans
from mercer.plotting import ClustersDisplay

X, truth = make_moons(200, noise=0.06, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
for ax, kernel in zip(axes, ("linear", "rbf")):
    model = KernelKMeans(2, kernel=kernel, gamma=8.0, n_init=10, random_state=0).fit(X)
    ClustersDisplay.from_estimator(model, X).plot(ax=ax)
    agreement = np.mean(model.labels_ == truth)
    ax.set_title(f"{kernel}: {max(agreement, 1 - agreement):.0%} of the rows with their moon")
plt.show()
