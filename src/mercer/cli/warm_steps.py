"""What ``mercer warm-up`` runs: small fits and predictions that need the loops of most users' first calls."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

import mercer
from mercer import kernels
from mercer._errors import MissingDependencyError
from mercer._optional import optional

Step = Callable[[], None]


def steps() -> dict[str, Step]:
    """Return the steps by name, the longest first."""
    return {
        "large blocks, float64": lambda: _large(np.float64),
        "large blocks, float32": lambda: _large(np.float32),
        "one class and nu": _nu,
        "support vectors, few rows": lambda: _classify(mercer.SVC(), 60, 3),
        "support vectors": lambda: _classify(mercer.SVC(), 700, 2),
        "support vectors, few active rows": _unscaled,
        "support vector regression": lambda: _regress(mercer.SVR(), 60, 700),
        "processes": _processes,
        "logistic regression": lambda: _classify(mercer.KernelLogisticRegression(), 60, 3),
        "logistic regression, two classes": lambda: _classify(mercer.KernelLogisticRegression(), 700, 2),
        "ridge": _ridge,
        "landmarks": _landmarks,
        "searches": _search,
        "reports": _reports,
        "tables": _tables,
        "clusters and components": _unsupervised,
        "kernels on vectors": _kernels,
        "strings, series, trees and graphs": _objects,
    }


def run(name: str) -> None:
    """Run one step in silence; results do not matter."""
    logging.getLogger("mercer").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # What an absent package would be needed for is not used on this machine.
        with suppress(MissingDependencyError):
            steps()[name]()


def _rows(n: int) -> Iterator[np.ndarray[Any, Any]]:
    """Rows in both precisions, with numbers of columns whose distances are computed in three ways."""
    for n_columns in (4, 10, 40):
        X = np.random.default_rng(0).normal(size=(n, n_columns))
        # Copies of rows share their weight.
        X[-5:] = X[:5]
        yield from (X, X.astype(np.float32))


def _classes(X: np.ndarray[Any, Any], n_classes: int) -> np.ndarray[Any, Any]:
    return np.digitize(_numbers(X, noise=0.5), np.linspace(-0.5, 0.5, n_classes - 1))


def _numbers(X: np.ndarray[Any, Any], noise: float = 0.1) -> np.ndarray[Any, Any]:
    errors = np.random.default_rng(1).normal(scale=noise, size=len(X))
    errors[-5:] = errors[:5]
    return np.asarray(np.sin(2 * X[:, 0]) + X[:, 1] + errors)


def _use(model: Any, X: np.ndarray[Any, Any]) -> None:
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            getattr(model, method)(X[:20])


def _classify(model: Any, n: int, n_classes: int) -> None:
    for X in _rows(n):
        _use(clone(model).fit(X, _classes(X, n_classes)), X)


def _regress(model: Any, *sizes: int) -> None:
    for n in sizes:
        for X in _rows(n):
            _use(clone(model).fit(X, _numbers(X)), X)


def _large(dtype: Any) -> None:
    X = np.random.default_rng(0).normal(size=(2**16, 9)).astype(dtype)
    every = kernels.RationalQuadratic(2.0) + kernels.Laplacian(2.0) + kernels.ChiSquared() + kernels.Periodic(1.0) + 2.0
    joined = kernels.Matern(2.0) * (kernels.NegativeDistance() + kernels.Polynomial(3)) + kernels.NegativeDistance(0.7)
    gram = mercer.Gram(0.5 * every + joined, np.abs(X[: 2**11]))
    for matrix in (gram, mercer.Gram(kernels.RBF(2.0), X[: 2**11, :4])):
        matrix.dense()
    gram @ np.ones(2**11, dtype)
    mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks=100).fit(X, _numbers(X)).predict(X)


def _unscaled() -> None:
    # Columns of different sizes make a problem that needs many steps among few rows.
    X, y = load_breast_cancer(return_X_y=True)
    for rows in (X, X.astype(np.float32)):
        mercer.SVC(kernel="linear").fit(rows, y)


def _search() -> None:
    for X in (*_rows(120), *_rows(600)):
        y = _classes(X, 2)
        _use(mercer.SVC(probability=True).fit(X, y), X)
        mercer.GridSearchCV(mercer.SVC(), {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}).fit(X, y).predict(X)
        mercer.GridSearchCV(mercer.KernelRidge(kernel="rbf"), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}).fit(
            X, _numbers(X)
        ).predict(X)


def _processes() -> None:
    for X in _rows(60):
        model = mercer.GaussianProcessRegressor().fit(X, _numbers(X))
        model.predict(X[:9], return_std=True)
        for n_classes in (2, 3):
            _use(mercer.GaussianProcessClassifier().fit(X, _classes(X, n_classes)), X)


def _ridge() -> None:
    _regress(mercer.KernelRidge(kernel="rbf"), 60, 700)
    _regress(mercer.KernelRidge(kernel="rbf", alpha="loo"), 60)


def _landmarks() -> None:
    for X in _rows(300):
        for model in (
            mercer.KernelRidge(kernel="rbf", approximation="nystroem", n_landmarks=40),
            mercer.SVR(approximation="nystroem", n_landmarks=40),
            mercer.GaussianProcessRegressor(approximation="nystroem", n_landmarks=40),
        ):
            _use(model.fit(X, _numbers(X)), X)
        for model in (
            mercer.SVC(approximation="nystroem", n_landmarks=40),
            mercer.KernelLogisticRegression(approximation="nystroem", n_landmarks=40),
        ):
            for n_classes in (2, 3):
                _use(clone(model).fit(X, _classes(X, n_classes)), X)


def _nu() -> None:
    _classify(mercer.NuSVC(nu=0.3), 60, 3)
    _classify(mercer.NuSVC(nu=0.3), 700, 2)
    _regress(mercer.NuSVR(), 60)
    for X in _rows(60):
        _use(mercer.OneClassSVM().fit(X), X)


def _unsupervised() -> None:
    for n in (60, 700):
        for X in _rows(n):
            mercer.KernelKMeans(n_clusters=3, random_state=0).fit(X).predict(X)
            _use(mercer.KernelPCA(n_components=2, kernel="rbf").fit(X), X)
            _use(mercer.KernelNeighborsClassifier().fit(X, _classes(X, 3)), X)


def _reports() -> None:
    X = next(_rows(120))
    for model, y in ((mercer.KernelRidge(kernel="rbf"), _numbers(X)), (mercer.SVC(), _classes(X, 2))):
        mercer.report(model.fit(X, y), X, y)


def _tables() -> None:
    pandas = optional("pandas", "a table")
    X = next(_rows(120))
    table = pandas.DataFrame(X, columns=list("abcd")).assign(kind=np.where(X[:, 0] > 0, "large", "small"))
    _use(mercer.TabularRegressor().fit(table, _numbers(X)), table)
    _use(mercer.TabularClassifier().fit(table, _classes(X, 2)), table)


def _kernels() -> None:
    priors: list[Any] = [kernels.Matern(), kernels.Matern(nu=2.5), kernels.RationalQuadratic()]
    histograms: list[Any] = [kernels.ChiSquared(), kernels.HistogramIntersection()]
    codes: list[Any] = [kernels.Tanimoto(), kernels.Hamming()]
    for X in _rows(60):
        for name in ("linear", "poly", "sigmoid", "laplacian"):
            _use(mercer.KernelRidge(kernel=name).fit(X, _numbers(X)), X)
        for kernel in (*priors, kernels.RBF((1.0,) * X.shape[1])):
            mercer.GaussianProcessRegressor(kernel).fit(X, _numbers(X)).predict(X, return_std=True)
        for kernel in histograms:
            kernel(np.abs(X), np.abs(X[:9]))
        for kernel in codes:
            kernel((X > 0).astype(X.dtype), (X[:9] > 0).astype(X.dtype))


def _objects() -> None:
    words = ["GATTACA", "TACCA", "GATTTA", "CATTAG"]
    series = [np.random.default_rng(n).normal(size=(n, 1)) for n in (9, 12, 7)]
    graphs = [mercer.Graph([(0, 1), (1, 2)], n=3), mercer.Graph([(0, 1), (1, 2), (2, 0)], n=3)]
    rows_of: list[tuple[Any, Any]] = [
        *((kernel, words) for kernel in (kernels.Spectrum(3), kernels.Subsequence(), kernels.EditDistance())),
        *((kernel, series) for kernel in (kernels.GlobalAlignment(sigma=1.0), kernels.DynamicTimeWarping())),
        *((kernel, graphs) for kernel in (kernels.WeisfeilerLehman(), kernels.ShortestPath())),
    ]
    for kernel, rows in rows_of:
        kernel(rows)
