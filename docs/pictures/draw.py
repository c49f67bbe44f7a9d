"""Draws the pictures of the documents: ``python docs/pictures/draw.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, kernels

HERE = Path(__file__).resolve().parent
SEPIA, TEAL = "#b5542b", "#1f6f78"


def draw_svc() -> None:
    """A support vector machine on two moons, and its kernel matrix."""
    X, y = make_moons(200, noise=0.2, random_state=3)
    order = np.lexsort((X[:, 0], y))
    X, y = X[order], y[order]
    kernel = kernels.RBF(0.5)
    model = SVC(kernel=kernel, C=10.0).fit(X, y)
    grid = np.meshgrid(np.linspace(-1.8, 2.8, 300), np.linspace(-1.4, 1.9, 300))
    score = model.decision_function(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1.35, 1), layout="constrained")
    left.contourf(*grid, score, levels=[-99, -1, 0, 1, 99], colors=[SEPIA, SEPIA, TEAL, TEAL], alpha=0.18)
    styles = ["dashed", "solid", "dashed"]
    left.contour(*grid, score, levels=[-1, 0, 1], colors="black", linestyles=styles, linewidths=1)
    for label, colour in ((0, SEPIA), (1, TEAL)):
        left.scatter(*X[y == label].T, s=16, color=colour, zorder=2)
    left.scatter(*X[model.support_].T, s=70, facecolors="none", edgecolors="black", linewidths=0.8, zorder=3)
    title = f"SVC with {kernel!r}, C = 10: {len(model.support_)} support vectors"
    left.set(title=title, xticks=[], yticks=[])
    c = model.certificate_
    left.set_xlabel(f"certificate: primal {c.primal:.4f}, dual {c.dual:.4f}, relative gap {c.relative_gap:.1e}")

    image = right.imshow(kernel(X), cmap="cividis", vmin=0, vmax=1)
    right.set(title="its Gram matrix, rows by class and x", xticks=[], yticks=[])
    figure.colorbar(image, ax=right, shrink=0.85)
    figure.savefig(HERE / "svc.png", dpi=100)


if __name__ == "__main__":
    draw_svc()
