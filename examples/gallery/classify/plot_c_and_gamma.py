"""
What C and gamma do
===================

A small ``gamma`` makes a wide kernel and a smooth boundary; a large ``C`` makes errors expensive. Both together decide
how closely the boundary follows single rows.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.plotting import BoundaryDisplay

X, y = make_moons(120, noise=0.25, random_state=0)
fig, axes = plt.subplots(3, 3, figsize=(10, 9), layout="constrained")
for row, C in zip(axes, [0.1, 1.0, 100.0]):
    for ax, gamma in zip(row, [0.1, 1.0, 20.0]):
        model = SVC(C=C, gamma=gamma).fit(X, y)
        BoundaryDisplay.from_estimator(model, X, y, grid_resolution=80).plot(ax=ax)
        ax.set(title=f"C = {C:g}, gamma = {gamma:g}", xlabel="", ylabel="")
        if ax.get_legend():
            ax.get_legend().remove()
plt.show()
