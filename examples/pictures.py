"""Draw every display of ``mercer.plotting`` on generated data into a folder: ``python examples/pictures.py FOLDER``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    Graph,
    GridSearchCV,
    KernelKMeans,
    KernelOrdinalRegression,
    KernelPCA,
    KernelQuantileRegression,
    KernelRidge,
    OneClassSVM,
    config,
    plotting,
    ridge_path,
    svm_path,
)
from mercer.kernels import RBF, BlendedSpectrum, Sigmoid, SubsetTree, WeisfeilerLehman


def rings(n: int = 150) -> tuple[Any, Any]:
    """Return rows on two noisy rings, and which of them each is on."""
    rng = np.random.default_rng(0)
    angle, outer = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = 1.0 + outer + 0.25 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.array(["inner", "outer"])[outer]


def blobs(n: int = 150) -> tuple[Any, Any]:
    """Return rows about three points, and their classes."""
    rng = np.random.default_rng(1)
    code = np.arange(n) % 3
    centres = np.array([[-1.2, 0.0], [1.2, 0.0], [0.0, 1.8]])
    return centres[code] + 0.65 * rng.normal(size=(n, 2)), np.array(["ash", "elm", "oak"])[code]


def wave(n: int = 60) -> tuple[Any, Any]:
    """Return a noisy wave."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 6, n))
    return x[:, None], np.sin(1.5 * x) + 0.2 * rng.normal(size=n)


def convergence() -> Any:
    X, y = rings()
    with config(trace=True):
        model = SVC(C=2.0).fit(X, y)
    return plotting.ConvergenceDisplay.from_estimator(model)


def convergence_of_descent() -> Any:
    X, _ = blobs()
    with config(trace=True):
        model = KernelKMeans(3, random_state=0).fit(X)
    return plotting.ConvergenceDisplay.from_estimator(model)


def boundary() -> Any:
    X, y = rings()
    return plotting.BoundaryDisplay.from_estimator(SVC(C=2.0).fit(X, y), X, y)


def boundary_of_three_classes() -> Any:
    X, y = blobs()
    return plotting.BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y)


def boundary_of_ordered_classes() -> Any:
    X, _ = blobs()
    grades = np.array(["low", "middle", "high"])[np.digitize(X[:, 1], [0.0, 1.5])]
    model = KernelOrdinalRegression(C=10.0, classes=["low", "middle", "high"]).fit(X, grades)
    return plotting.BoundaryDisplay.from_estimator(model, X, grades)


def boundary_of_one_class() -> Any:
    X, _ = blobs()
    return plotting.BoundaryDisplay.from_estimator(OneClassSVM(nu=0.15).fit(X), X)


def boundary_of_one_feature() -> Any:
    X, y = rings()
    distance = np.hypot(*X.T)[:, None]
    return plotting.BoundaryDisplay.from_estimator(SVC().fit(distance, y), distance, y)


def prior() -> Any:
    X, _ = wave()
    return plotting.ProcessDisplay.from_estimator(GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.04), X)


def posterior() -> Any:
    X, y = wave(15)
    model = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.04).fit(X, y)
    return plotting.ProcessDisplay.from_estimator(model, X, y)


def quantiles() -> Any:
    X, y = wave()
    model = KernelQuantileRegression([0.1, 0.5, 0.9], C=10.0).fit(X, y)
    return plotting.ProcessDisplay.from_estimator(model, X, y)


def tube() -> Any:
    X, y = wave()
    return plotting.TubeDisplay.from_estimator(SVR(C=10.0, epsilon=0.25).fit(X, y), X, y)


def gram_by_class() -> Any:
    X, y = blobs()
    return plotting.GramDisplay.from_kernel(RBF(1.0), X, y)


def gram_by_leaves() -> Any:
    X, _ = rings()
    return plotting.GramDisplay.from_kernel(Sigmoid(0.5), X)


def spectrum() -> Any:
    X, _ = rings()
    return plotting.SpectrumDisplay.from_kernel(Sigmoid(0.5, 0.5), X)


def eigenfunctions() -> Any:
    X, _ = wave()
    return plotting.EigenfunctionsDisplay.from_kernel(RBF(1.0), X)


def clusters() -> Any:
    X, _ = blobs()
    return plotting.ClustersDisplay.from_estimator(KernelKMeans(3, random_state=0).fit(X), X)


def components() -> Any:
    X, y = rings()
    return plotting.ComponentsDisplay.from_estimator(KernelPCA(2, kernel="rbf", gamma=0.5).fit(X), X, y)


def path_of_machines() -> Any:
    X, y = rings(200)
    path = svm_path(X[:120], y[:120], [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
    return plotting.PathDisplay.from_path(path, X[120:], y[120:])


def path_of_penalties() -> Any:
    X, y = wave()
    return plotting.PathDisplay.from_path(ridge_path(X, y, 10.0 ** np.arange(-5, 3), kernel="rbf", gamma=1.0))


def search_over_two() -> Any:
    X, y = rings()
    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0, 10.0]}
    return plotting.SearchDisplay.from_search(GridSearchCV(SVC(), grid, cv=5).fit(X, y))


def search_over_one() -> Any:
    X, y = rings()
    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}
    return plotting.SearchDisplay.from_search(GridSearchCV(SVC(), grid, cv=5).fit(X, y))


def margins() -> Any:
    X, y = rings(200)
    model = SVC(C=10.0).fit(X[:100], y[:100])
    return plotting.MarginsDisplay.from_estimator(model, X[:100], y[:100], X_test=X[100:], y_test=y[100:])


def losses() -> Any:
    return plotting.LossDisplay.from_losses(
        ["hinge", "squared_hinge", "logistic", "huber", "epsilon_insensitive"], limit=2.0
    )


def ordinal() -> Any:
    X, _ = blobs()
    noisy = X[:, 1] + 0.4 * np.random.default_rng(3).normal(size=len(X))
    grades = np.array(["low", "middle", "high"])[np.digitize(noisy, [0.0, 1.5])]
    model = KernelOrdinalRegression(C=1.0, classes=["low", "middle", "high"]).fit(X, grades)
    return plotting.OrdinalDisplay.from_estimator(model, X, grades)


def relevance() -> Any:
    X = np.random.default_rng(4).normal(size=(120, 4))
    y = np.sin(X[:, 0]) + 0.4 * X[:, 1]
    model = KernelRidge(0.1, kernel="rbf").fit(X[:80], y[:80])
    return plotting.RelevanceDisplay.from_permutation(model, X[80:], y[80:])


def alignment() -> Any:
    time = np.linspace(0, 1, 70)
    return plotting.AlignmentDisplay.from_series(np.sin(9 * time), np.sin(9 * time**1.6))


def parts_of_a_text() -> Any:
    texts = [
        "win a free prize now, call this number",
        "free entry: text WIN to claim cash",
        "claim your prize today, it is free",
        "see you at lunch, i am at home now",
        "call me when you are home",
        "thank you for lunch today",
    ]
    model = SVC(kernel=BlendedSpectrum(4).normalized()).fit(texts, ["spam"] * 3 + ["mail"] * 3)
    return plotting.ContributionsDisplay.from_estimator(model, "are you free for lunch today? claim the prize at home")


def parts_of_a_tree() -> Any:
    trees = [
        "(S (NP I) (VP (V see) (NP (D a) (N dog))))",
        "(S (NP you) (VP (V see) (NP (D the) (N cat))))",
        "(S (VP (V see)) (NP (D the) (N dog)))",
        "(S (VP (V run)) (NP (N dogs)))",
    ]
    model = SVC(kernel=SubsetTree(0.5)).fit(trees, ["statement", "statement", "order", "order"])
    return plotting.ContributionsDisplay.from_estimator(model, "(S (NP I) (VP (V run) (NP (D the) (N dog))))")


def parts_of_a_graph() -> Any:
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
    graphs = [
        Graph(ring, list("CCCCCC")),
        Graph([*ring, (0, 6)], list("CCCCCCC")),
        Graph([*ring, (0, 6), (6, 7), (6, 8)], list("CCCCCCNOO")),
        Graph([*ring, (3, 6), (6, 7), (6, 8), (0, 9)], list("CCCCCCNOOC")),
    ]
    model = SVC(kernel=WeisfeilerLehman(2), C=10.0).fit(graphs, ["harmless", "harmless", "mutagen", "mutagen"])
    row = Graph([*ring, (1, 6), (6, 7), (6, 8), (4, 9), (9, 10)], list("CCCCCCNOOCO"))
    return plotting.ContributionsDisplay.from_estimator(model, row, output="mutagen")


def parts_of_columns() -> Any:
    X = np.random.default_rng(4).normal(size=(120, 4))
    y = np.sin(X[:, 0]) + 0.4 * X[:, 1]
    model = SVR(kernel=RBF(2.0), C=10.0).fit(X, y)
    return plotting.ContributionsDisplay.from_estimator(model, X[0])


PICTURES: tuple[Callable[[], Any], ...] = (
    convergence,
    convergence_of_descent,
    boundary,
    boundary_of_three_classes,
    boundary_of_ordered_classes,
    boundary_of_one_class,
    boundary_of_one_feature,
    prior,
    posterior,
    quantiles,
    tube,
    gram_by_class,
    gram_by_leaves,
    spectrum,
    eigenfunctions,
    clusters,
    components,
    path_of_machines,
    path_of_penalties,
    search_over_two,
    search_over_one,
    margins,
    losses,
    ordinal,
    relevance,
    alignment,
    parts_of_a_text,
    parts_of_a_tree,
    parts_of_a_graph,
    parts_of_columns,
)


def main(folder: Path) -> None:
    """Write one PNG for each picture."""
    # No window, also where there could be one.
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for make in PICTURES:
        display = make().plot()
        display.figure_.savefig(folder / f"{make.__name__}.png", dpi=110)
        pyplot.close(display.figure_)


def folder_of(arguments: Sequence[str] | None = None) -> Path:
    """Return the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Draw every display of mercer.plotting on generated data.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the PNG files are written; made if missing")
    folder: Path = parser.parse_args(arguments).folder
    return folder


if __name__ == "__main__":
    main(folder_of())
