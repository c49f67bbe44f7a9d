"""Draw the pictures of the documents: ``python docs/pictures/draw.py [NAME ...]``, or all."""

import json
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from mercer import SVC, SVR, GaussianProcessRegressor, TabularRegressor, kernels
from mercer.data.sample_rows import load_sample

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "results.json"
SEPIA, TEAL, GREY = "#b5542b", "#1f6f78", "#6b6b6b"


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


def draw_tables() -> None:
    """Errors of the default for tables beside CatBoost's, and its intervals for rows that were held out."""
    section = json.loads(RESULTS.read_text(encoding="utf-8"))["tables"]
    ratios = {}
    for row in section["rows"]:
        errors = re.match(r"(?:RMSE|log loss): Mercer ([^,]+), CatBoost ([^,;]+)", row["note"])
        if errors:
            ratios[row["case"].split(" (")[0]] = float(errors[1]) / float(errors[2])
    names = sorted(ratios, key=ratios.get, reverse=True)
    values = np.array([ratios[name] for name in names])

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5.2), width_ratios=(1.1, 1), layout="constrained")
    left.axvline(1.0, color="black", linewidth=1)
    left.hlines(np.arange(len(names)), 1.0, values, color=GREY, linewidth=1)
    left.scatter(values, np.arange(len(names)), s=28, color=np.where(values < 1, TEAL, SEPIA), zorder=2)
    left.set(yticks=np.arange(len(names)), xlabel="test error / that of CatBoost, both with nothing chosen")
    left.set_yticklabels(names, fontsize=7)
    mean = np.exp(np.log(values).mean())
    left.set_title(
        f"{len(names)} tables: better on {(values < 1).sum()}, {1 - mean:.0%} less error on average", fontsize=10
    )

    table = load_sample("airfoil")
    X, y = table.columns.to_numpy(), table.targets["sound_db"]
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
    model = TabularRegressor().fit(X[train], y[train])
    found = model.interval(X[test], 0.9)
    middle = model.predict(X[test])
    inside = (found.lower <= y[test]) & (y[test] <= found.upper)
    right.plot([103, 141], [103, 141], color=GREY, linewidth=1, linestyle="dashed")
    right.errorbar(
        middle, y[test], xerr=[middle - found.lower, found.upper - middle], fmt="none", ecolor=TEAL, alpha=0.35
    )
    right.scatter(middle, y[test], s=10, color=np.where(inside, TEAL, SEPIA), zorder=2)
    right.set(xlabel="predicted noise of wings [dB], with 90 % intervals", ylabel="measured [dB]")
    share = f"{inside.sum()} of {len(test)}"
    right.set_title(f"held-out rows: R² {r2_score(y[test], middle):.3f}, {share} in their intervals", fontsize=10)
    figure.savefig(HERE / "tables.png", dpi=110)


def draw_regression() -> None:
    """A tube with the roles of its rows, and a Gaussian process with its band, on the same rows."""
    rng = np.random.default_rng(4)
    X = np.sort(np.concatenate([rng.uniform(-4.0, -0.5, 30), rng.uniform(1.5, 4.0, 25)]))[:, None]
    y = np.sin(1.5 * X[:, 0]) + 0.25 * rng.normal(size=len(X))
    line = np.linspace(-4.5, 4.5, 400)[:, None]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")

    epsilon = 0.3
    tube = SVR(kernel=kernels.RBF(1.0), C=10.0, epsilon=epsilon).fit(X, y)
    centre = tube.predict(line)
    left.fill_between(line[:, 0], centre - epsilon, centre + epsilon, color=TEAL, alpha=0.18, linewidth=0)
    left.plot(line, centre, color=TEAL)
    inside = tube.roles_ == "inside"
    left.scatter(X[inside, 0], y[inside], s=16, color=GREY, label=f"inside the tube: {inside.sum()}")
    left.scatter(X[~inside, 0], y[~inside], s=28, color=SEPIA, label=f"support vectors: {(~inside).sum()}")
    left.set(title=f"SVR with RBF(1.0), C = 10, epsilon = {epsilon}", xticks=[])
    left.legend(frameon=False, loc="upper left")

    process = GaussianProcessRegressor(1.0 * kernels.RBF(1.0) + kernels.White(0.1)).fit(X, y)
    mean, std = process.predict(line, return_std=True)
    right.fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=TEAL, alpha=0.18, linewidth=0)
    right.plot(line, mean, color=TEAL)
    right.scatter(X[:, 0], y, s=16, color=GREY)
    right.set(title="GaussianProcessRegressor, mean and two deviations", xticks=[])
    parts = [f"{value:.2f}" for value in np.exp(process.kernel_.theta)]
    right.set_xlabel(f"by the evidence: variance {parts[0]}, length scale {parts[1]}, noise {parts[2]}")
    figure.savefig(HERE / "regression.png", dpi=100)


def draw_svm_growth() -> None:
    """Time of SVC.fit against the number of rows, for Mercer and its peers, from the measured results."""
    section = json.loads(RESULTS.read_text(encoding="utf-8"))["svm_growth"]
    rows = [row for row in section["rows"] if row["case"].startswith("ijcnn1, n = ")]
    times = {"Mercer": {row["facts"]["n"]: row["ours_seconds"] for row in rows}}
    for row in rows:
        if row["peer_seconds"] is not None:
            times.setdefault(row["peer"], {})[row["facts"]["n"]] = row["peer_seconds"]

    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for (name, durations), colour in zip(times.items(), (SEPIA, TEAL, GREY)):
        sizes = np.array(sorted(durations))
        seconds = np.array([durations[n] for n in sizes])
        slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
        axes.loglog(sizes, seconds, marker="o", color=colour, label=f"{name}: grows as $n^{{{slope:.2f}}}$")
    sizes = sorted(times["Mercer"])
    axes.set_xticks(sizes, [f"{n / 1000:g}k" for n in sizes])
    axes.set_xticks([], minor=True)
    axes.set(xlabel="rows n", ylabel="seconds", title="SVC.fit on ijcnn1, RBF, C = 32, gamma = 2, memory inside 8 GiB")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    axes.text(0.99, 0.01, f"{section['date']}, {section['machine']}", transform=axes.transAxes, ha="right", fontsize=5)
    figure.savefig(HERE / "svm_growth.png", dpi=100)


def draw_data_flow() -> None:
    """The way from rows to a model: boxes in a grid, arrows from each to those that it names."""
    boxes = {
        "data": (0, 2, "data\nrows and targets"),
        "kernels": (1.4, 2, "kernels\nk(x, z)"),
        "gram": (2.8, 2, "gram\nK, lazily"),
        "losses": (2.8, 3, "losses"),
        "problem": (4.2, 2, "problem\na frozen dataclass"),
        "solvers": (5.6, 2, "solvers"),
        "solution": (7.0, 2, "Solution\nvalue, certificate"),
        "estimators": (7.0, 3, "estimators"),
        "surface": (5.6, 3, "model files,\ncommand line"),
        "engine": (2.8, 1, "engine, loops\ntiles, threads, memory"),
    }
    solid = ["data kernels", "kernels gram", "gram problem", "losses problem", "problem solvers", "solvers solution"]
    solid += ["solution estimators", "estimators surface"]
    dashed = ["engine kernels", "engine gram", "engine solvers"]
    figure, axes = plt.subplots(figsize=(10, 3.4), layout="constrained")
    face = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": TEAL}
    patches = {}
    for name, (x, y, words) in boxes.items():
        patches[name] = axes.text(x, y, words, ha="center", va="center", fontsize=8, bbox=face).get_bbox_patch()
    for arrow in [*solid, *dashed]:
        start, end = arrow.split()
        style = {"arrowstyle": "->", "color": GREY, "patchA": patches[start], "patchB": patches[end]}
        style["linestyle"] = "dashed" if arrow in dashed else "solid"
        axes.annotate("", boxes[end][:2], boxes[start][:2], arrowprops=style)
    axes.set(xlim=(-0.7, 7.7), ylim=(0.6, 3.4))
    axes.axis("off")
    figure.savefig(HERE / "data_flow.png", dpi=110)


DRAWINGS = {
    "svc": draw_svc,
    "tables": draw_tables,
    "regression": draw_regression,
    "svm_growth": draw_svm_growth,
    "data_flow": draw_data_flow,
}

if __name__ == "__main__":
    for picture in sys.argv[1:] or DRAWINGS:
        DRAWINGS[picture]()
