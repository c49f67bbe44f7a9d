"""Fitted models of every kind, with the rows that they are asked about: what the fuzzer of model files starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import estimator_table
import kernel_table
import mercer
from mercer import kernels, maps
from mercer.data.feature_table import FeatureTable
from mercer.estimators.table import TableModel
from mercer.kernels.function import rests_on_a_function

RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(24, 3)), RNG.normal(size=(5, 3))
Y = np.sin(X[:, 0])
TWO, THREE = np.where(X[:, 0] > 0, "b", "a"), np.array(["p", "q", "r"])[np.digitize(X[:, 0], [-0.5, 0.5])]
K, NEW_K = kernels.RBF(1.0)(X), kernels.RBF(1.0)(NEW, X)
FRAME = pd.DataFrame({"size": X[:, 0], "old": X[:, 1] > 0, "town": np.where(X[:, 2] > 0, "Ulm", "Zug")})
DATED = FRAME.assign(day=pd.date_range("2026-01-01", periods=len(FRAME), freq="7h"))
MESSAGES = FRAME[["size"]].assign(text=["spam and eggs"[: 3 + i % 9] for i in range(24)])
MIXED = FRAME.assign(
    size=FRAME["size"].mask(FRAME["size"] > 1),
    day=pd.date_range("2024-02-01", periods=24, freq="19D"),
    note=[f"entry {i} " + "spam and eggs"[: 3 + i % 9] for i in range(24)],
)
WORDS = ["ab" * (1 + i % 4) + "c" * (i % 3) for i in range(24)]
TREES = [f"(S (NP {'ab'[i % 2]}) (VP {'xyz'[i % 3]}))" for i in range(24)]
SERIES = [np.cumsum(RNG.normal(size=4 + i % 3)) for i in range(24)]
GRAPHS = [
    mercer.Graph([(j, j + 1) for j in range(2 + i % 3)], list("CNOCC")[: 3 + i % 3], attributes=X[: 3 + i % 3])
    for i in range(24)
]
BAGS = [X[i : i + 1 + i % 3] for i in range(20)] + [X[:2]] * 4
IMAGES = [RNG.integers(0, 255, (6, 6)).astype(np.uint8) for _ in range(24)]

Case = tuple[Callable[[], Any], Any]


def _in_blocks(frame: pd.DataFrame) -> TableModel:
    """What the command line makes of rows in blocks."""
    table = FeatureTable().fit(frame)
    model = mercer.KernelRidge(kernel=kernels.Laplacian(2.0)).fit(table.transform(frame), Y)
    return TableModel(model).take(table, model, 1.0, 2.0)


def _table(model: Any, y: Any) -> Callable[[], Any]:
    return lambda: clone(model).fit(estimator_table.X[:40], y[:40])


CASES: dict[str, Case] = {str(p.id): (_table(*p.values), estimator_table.X[40:46]) for p in estimator_table.ALL}
CASES |= {str(p.id): (_table(*p.values), estimator_table.X[40:46]) for p in estimator_table.RESTRICTED}
CASES |= {
    "SVC, three classes, landmarks": (lambda: mercer.SVC(**estimator_table.HERE).fit(X, THREE), NEW),
    "SVC, given landmarks": (lambda: mercer.SVC(approximation="nystroem", landmarks=X[:6]).fit(X, TWO), NEW),
    "SVC, three classes": (lambda: mercer.SVC().fit(X, THREE), NEW),
    "SVC, three classes, ovo": (lambda: mercer.SVC(decision_function_shape="ovo").fit(X, THREE), NEW),
    "SVC, sparse": (lambda: mercer.SVC(kernel="linear").fit(sp.csr_matrix(X), THREE), sp.csr_matrix(NEW)),
    "SVC, matrix": (lambda: mercer.SVC(kernel="precomputed").fit(K, THREE), NEW_K),
    "SVC, strings": (lambda: mercer.SVC(kernel=kernels.Subsequence(2)).fit(WORDS, THREE), WORDS[:4]),
    "SVC, counted strings": (lambda: mercer.SVC(kernel=kernels.Spectrum(2)).fit(WORDS, TWO), WORDS[:4]),
    "SVC, trees": (lambda: mercer.SVC(kernel=kernels.SubsetTree(0.5)).fit(TREES, TWO), TREES[:4]),
    "SVC, graphs": (lambda: mercer.SVC(kernel=kernels.WeisfeilerLehman(2)).fit(GRAPHS, THREE), GRAPHS[:4]),
    "ridge, walks": (lambda: mercer.KernelRidge(kernel=kernels.RandomWalk(0.05)).fit(GRAPHS, Y), GRAPHS[:4]),
    "ridge, propagation": (lambda: mercer.KernelRidge(kernel=kernels.Propagation(2)).fit(GRAPHS, Y), GRAPHS[:4]),
    "ridge, series": (lambda: mercer.KernelRidge(kernel=kernels.GlobalAlignment(2.0)).fit(SERIES, Y), SERIES[:4]),
    "ridge, bags": (lambda: mercer.KernelRidge(kernel=kernels.SetOf(kernels.RBF(1.0))).fit(BAGS, Y), BAGS[:4]),
    "ridge, images": (lambda: mercer.KernelRidge(kernel=kernels.SpatialPyramid()).fit(IMAGES, Y), IMAGES[:4]),
    "ridge, centred": (lambda: mercer.KernelRidge(kernel=kernels.Linear().centered(X[:5])).fit(X, Y), NEW),
    "ridge, scales": (
        lambda: mercer.KernelRidge(kernel=0.5 * kernels.RBF([1.0, 2.0, 3.0]) + kernels.Linear().on([0])).fit(X, Y),
        NEW,
    ),
    "ridge, two targets": (lambda: mercer.KernelRidge(alpha=[0.1, 1.0]).fit(X, np.c_[Y, -Y]), NEW),
    "ridge, matrix": (lambda: mercer.KernelRidge(kernel="precomputed").fit(K, Y), NEW_K),
    "logistic, three classes": (lambda: mercer.KernelLogisticRegression().fit(X, THREE), NEW),
    "logistic, matrix": (lambda: mercer.KernelLogisticRegression(kernel="precomputed").fit(K, THREE), NEW_K),
    "gp, three classes": (lambda: mercer.GaussianProcessClassifier().fit(X, THREE), NEW),
    "gp, parts": (lambda: mercer.GaussianProcessClassifier(multi_class="one_vs_rest").fit(X, THREE), NEW),
    "gp, pairs of a matrix": (
        lambda: mercer.GaussianProcessClassifier("precomputed", multi_class="one_vs_one").fit(K, THREE),
        NEW_K,
    ),
    "gp, trend": (
        lambda: mercer.GaussianProcessRegressor(
            kernels.RBF(1.0), noise=0.1, mean="linear", normalize_y=True, optimizer=None
        ).fit(X, np.c_[Y, -Y]),
        NEW,
    ),
    "perceptron, voted": (lambda: mercer.KernelPerceptron(averaging="voted", random_state=0).fit(X, THREE), NEW),
    "perceptron, budget": (lambda: mercer.KernelPerceptron(budget=7, random_state=0).fit(X, THREE), NEW),
    "online, budget": (lambda: mercer.OnlineKernelLogisticRegression(budget=7, random_state=0).fit(X, THREE), NEW),
    "online, merging": (
        lambda: mercer.OnlineKernelRegressor(budget=7, budget_strategy="merging", random_state=0).fit(X, Y),
        NEW,
    ),
    "sgd, features": (
        lambda: mercer.KernelSGDClassifier(
            feature_map=maps.RandomFourierMap("rbf", 8, random_state=0), alpha=0.1, random_state=0
        ).fit(X, THREE),
        NEW,
    ),
    "calibrated": (lambda: mercer.SVC().calibrated(cv=2).fit(X, THREE), NEW),
    "calibrated, isotonic": (lambda: mercer.SVC().calibrated(cv=2, method="isotonic").fit(X, TWO), NEW),
    "quantiles": (lambda: mercer.KernelQuantileRegression([0.2, 0.8]).fit(X, Y), NEW),
    "clusters, linear": (lambda: mercer.KernelKMeans(3, kernel="linear", random_state=0).fit(X), NEW),
    "clusters, landmarks": (
        lambda: mercer.KernelKMeans(3, approximation="nystroem", n_landmarks=6, random_state=0).fit(X),
        NEW,
    ),
    "components, inverse": (lambda: mercer.KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X), NEW),
    "neighbours, two outputs": (lambda: mercer.KernelNeighborsClassifier(3).fit(X, np.c_[TWO, THREE]), NEW),
    "neighbours, matrix": (lambda: mercer.KernelNeighborsRegressor(3, kernel="precomputed").fit(K, Y), NEW_K),
    "bayesian linear": (lambda: mercer.BayesianLinearRegression(fit_intercept=True).fit(X, Y), NEW),
    "tabular, regression": (lambda: mercer.TabularRegressor().fit(MIXED, Y), MIXED[:4]),
    "tabular, classification": (lambda: mercer.TabularClassifier().fit(MIXED, THREE), MIXED[:4]),
    "map, Fourier": (lambda: maps.RandomFourierMap("rbf", 7, random_state=0).fit(X), NEW),
    "map, sketch": (lambda: maps.CountSketchMap(2, n_components=8, random_state=0).fit(X), NEW),
    "map, landmarks": (lambda: maps.NystroemMap("rbf", 5, random_state=0).fit(X), NEW),
    "map, polynomial": (lambda: maps.PolynomialMap(2).fit(X), NEW),
    "map, series": (lambda: maps.GaussianSeriesMap(2.0, 3).fit(X), NEW),
    "map, subsets": (lambda: maps.AllSubsetsMap().fit(X), NEW),
    "pipeline": (lambda: make_pipeline(StandardScaler(), mercer.SVC()).fit(X, TWO), NEW),
    "pipeline, imputed": (lambda: make_pipeline(SimpleImputer(), MinMaxScaler(), mercer.SVC()).fit(X, TWO), NEW),
    "transformers of columns": (
        lambda: ColumnTransformer(
            [("numbers", StandardScaler(), ["size"]), ("words", OneHotEncoder(handle_unknown="ignore"), ["town"])]
        ).fit(FRAME),
        FRAME[:4],
    ),
    # Another consistent encoder may not know the rows that it is asked about; it is to have an answer for these.
    "ordinal encoder": (
        lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(FRAME[["town"]].to_numpy()),
        FRAME[["town"]].to_numpy()[:3],
    ),
    "table": (lambda: TableModel(mercer.SVC(), target="tree").fit(FRAME, THREE), FRAME[:4]),
    "table, imputed": (
        lambda: TableModel(mercer.KernelRidge(kernel="rbf"), "minmax", impute="median").fit(
            FRAME.mask(FRAME["size"] > 1), Y
        ),
        FRAME[:4],
    ),
    "table, in blocks": (lambda: _in_blocks(DATED), DATED[:4]),
    "table, text": (
        lambda: TableModel(
            mercer.SVC(kernel=kernels.RBF(1.0).on(["size"]) + kernels.Spectrum(2).on(["text"])), roles={"text": "text"}
        ).fit(MESSAGES, TWO),
        MESSAGES[:4],
    ),
}


def _ridge(kernel: kernels.Kernel, rows: Any) -> Callable[[], Any]:
    """Kernels of every kind, with containers of every kind of rows."""
    y = np.sin(np.arange(len(rows)))
    return lambda: mercer.KernelRidge(1e-2, kernel=kernel, allow_indefinite=True).fit(rows, y)


CASES |= {
    f"kernel {number}: {kernel!r}"[:60]: (_ridge(kernel, rows[0]), rows[1])
    for number, (kernel, rows) in enumerate(kernel_table.EXAMPLES)
    if not rests_on_a_function(kernel)
}
