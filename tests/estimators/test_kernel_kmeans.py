"""Kernel k-means: a naive Lloyd, scikit-learn's with the linear kernel, precisions, weights, starts, odd input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import KernelKMeans, kernels
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.kernels import RBF, Laplacian, Linear, NegativeDistance, Polynomial

X, _ = make_blobs(400, 5, centers=6, cluster_std=3.0, random_state=0)
WIDE = RBF(4.0)
ROWS = np.array([0, 50, 100, 150, 200, 250])
# Enough for numbers of rows and clusters, not for a matrix of 400 rows in float64, nor (the second) in float32.
FLOAT32, LAZY = 1_100_000, 600_000


def lloyd(K: np.ndarray, labels: np.ndarray, k: int, weight: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The iterations as they are defined, with the inertia of each partition."""
    history = []
    while True:
        U = np.zeros((len(K), k))
        U[np.arange(len(K)), labels] = weight
        U /= U.sum(axis=0)
        squared = K.diagonal()[:, None] - 2 * K @ U + np.einsum("ic,ij,jc->c", U, K, U)
        history.append(float(weight @ squared[np.arange(len(K)), labels]))
        new = squared.argmin(axis=1)
        if (new == labels).all():
            return labels, history
        labels = new


def nearest_rows(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return (K.diagonal()[:, None] - 2 * K[:, rows] + K.diagonal()[rows]).argmin(axis=1)


@pytest.mark.parametrize("kernel", [WIDE, Laplacian(3.0), 2.0 * WIDE + Linear(), NegativeDistance()], ids=repr)
@pytest.mark.parametrize("memory", [None, FLOAT32, LAZY])
def test_the_iterations_are_those_of_lloyd(kernel: Any, memory: int | None) -> None:
    K = kernel(X)
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    labels, history = lloyd(K, nearest_rows(K, ROWS), 6, weight)
    with mercer.config(memory=memory) if memory else mercer.config():
        model = KernelKMeans(6, kernel=kernel, init=ROWS).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, labels)
    # Sums of 400 terms, and for float32 entries their rounding.
    size = weight @ np.abs(K.diagonal()) + weight.sum() * np.abs(K).max()
    eps = np.finfo(np.float64 if memory is None else np.float32).eps
    np.testing.assert_allclose(model.inertia_history_[:-1], history, atol=8 * eps * size, rtol=0)
    assert model.inertia_ == pytest.approx(history[-1], rel=1e-12)
    assert model.n_iter_ == len(history) + 1
    assert model.certificate_.status.name == "converged"
    assert model.certificate_.primal == model.inertia_ and model.certificate_.violations == {"assignment": 0.0}
    limit = memory or 2 * K.nbytes
    assert model.certificate_.peak_bytes <= limit and (memory == LAZY) == (model.certificate_.peak_bytes < K.nbytes / 2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_with_the_linear_kernel_it_is_k_means(dtype: Any, form: Any) -> None:
    rows = form(X.astype(dtype))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    for seed, kernel in enumerate(("linear", 1.0 * Linear())):
        start = X[np.random.default_rng(seed).choice(len(X), 6, replace=False)].astype(dtype)
        peer = KMeans(6, init=start, n_init=1, tol=0).fit(X, sample_weight=weight)
        ours = KernelKMeans(6, kernel=kernel, init=start).fit(rows, sample_weight=weight)
        np.testing.assert_array_equal(ours.labels_, peer.labels_)
        assert ours.n_iter_ == peer.n_iter_
        assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-12 if dtype == np.float64 else 1e-5)
        np.testing.assert_allclose(ours.transform(rows), peer.transform(X), rtol=1e-4, atol=1e-4)
        assert ours.score(rows) == pytest.approx(peer.score(X), rel=1e-5)
        assert isinstance(ours.kernel_, kernels.Kernel)


def test_means_and_distances_of_the_linear_kernel() -> None:
    model = KernelKMeans(6, kernel="linear", init=X[ROWS]).fit(X + 1e6)
    means = np.array([(X + 1e6)[model.labels_ == c].mean(axis=0) for c in range(6)])
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-14)
    distances = np.linalg.norm((X + 1e6)[:, None] - means, axis=2)
    # Rows are known to 1e6 units of rounding.
    np.testing.assert_allclose(model.transform(X + 1e6), distances, atol=1e-8, rtol=0)
    np.testing.assert_allclose(model.dual_coef_.T @ (X + 1e6), means, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("max_iter", [1, 300])
def test_coefficients_are_in_the_order_of_the_rows(kernel: str, form: Any, max_iter: int) -> None:
    """Also of rows that are repeated, have different weights or none, and where an iteration is the last."""
    rng = np.random.default_rng(5)
    rows = np.vstack([X, X[::3], X[::3]])[rng.permutation(len(X) + 2 * len(X[::3]))]
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], len(rows))
    own = kernels.Linear() if kernel == "linear" else kernels.RBF(1.0)
    K = own(rows)
    given = K if kernel == "precomputed" else form(rows)
    model = KernelKMeans(4, kernel=own if kernel == "rbf" else kernel, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(given, sample_weight=weight)
    coefficients = model.dual_coef_
    assert coefficients.shape == (len(rows), 4)
    np.testing.assert_allclose(coefficients.sum(axis=0), 1.0, rtol=1e-12)
    assert (coefficients[weight == 0] == 0).all()
    squared = K.diagonal()[:, None] - 2 * K @ coefficients + np.einsum("ic,ij,jc->c", coefficients, K, coefficients)
    coordinates = model.transform(given, diagonal=K.diagonal()) if kernel == "precomputed" else model.transform(given)
    np.testing.assert_allclose(coordinates**2, squared, rtol=1e-6, atol=1e-10 * K.max())
    if max_iter > 1:
        own_share = weight / np.bincount(model.labels_, weights=weight)[model.labels_]
        np.testing.assert_allclose(coefficients[np.arange(len(rows)), model.labels_], own_share, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.sampled_from(["rbf", "linear", "laplacian"]))
def test_the_answer_is_a_fixed_point_and_the_inertia_never_rises(seed: int, k: int, kernel: str) -> None:
    rows = np.random.default_rng(seed).normal(size=(60, 2)).round(1)
    model = KernelKMeans(k, kernel=kernel, gamma=1.0, random_state=seed).fit(rows)
    history = model.inertia_history_
    assert (np.diff(history) <= 1e-13 * history[0]).all()
    distances = model.transform(rows)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    assert float((distances.min(axis=1) ** 2).sum()) == pytest.approx(model.inertia_, rel=1e-9, abs=1e-12)
    assert model.score(rows) == pytest.approx(-model.inertia_, rel=1e-9, abs=1e-12)
    own = distances[np.arange(60), model.labels_]
    np.testing.assert_allclose(own**2, distances.min(axis=1) ** 2, atol=1e-13)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 1.0)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("approximation", [None, "nystroem"])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_weights_are_repetitions(kernel: str, approximation: Any, init: str) -> None:
    count = np.random.default_rng(3).integers(0, 4, len(X))
    order = np.random.default_rng(4).permutation(count.sum())
    repeated = np.repeat(X, count, axis=0)[order]
    model = KernelKMeans(5, kernel=kernel, init=init, approximation=approximation, n_landmarks=40, random_state=0)
    weighted = model.fit(X, sample_weight=count)
    labels, inertia, distances = weighted.labels_, weighted.inertia_, weighted.transform(X)
    model.fit(repeated)
    np.testing.assert_array_equal(np.repeat(labels, count)[order], model.labels_)
    assert model.inertia_ == inertia
    np.testing.assert_array_equal(model.transform(X), distances)
    # Rows of weight zero are put where they belong.
    np.testing.assert_array_equal(labels[count == 0], model.predict(X)[count == 0])


def test_a_partition_as_the_start_with_equal_rows_in_different_clusters() -> None:
    rows = np.array([[0.0], [0.0], [4.0], [5.0]])
    model = KernelKMeans(2, kernel="linear", init=[0, 1, 1, 1]).fit(rows)
    assert model.labels_.tolist() == [0, 0, 1, 1]
    assert model.inertia_history_[0] == pytest.approx(14.0) and model.inertia_ == pytest.approx(0.5)


@pytest.mark.parametrize("kernel", [WIDE, "linear"])
def test_starts(kernel: Any) -> None:
    points = KernelKMeans(6, kernel=kernel, init=X[ROWS]).fit(X)
    rows = KernelKMeans(6, kernel=kernel, init=ROWS).fit(X)
    labels = ((X[:, None] - X[ROWS]) ** 2).sum(axis=2).argmin(axis=1)
    partition = KernelKMeans(6, kernel=kernel, init=labels).fit(X)
    np.testing.assert_array_equal(points.labels_, rows.labels_)
    np.testing.assert_array_equal(points.labels_, partition.labels_)
    np.testing.assert_allclose(points.inertia_history_, partition.inertia_history_, rtol=1e-12)
    assert partition.n_iter_ == rows.n_iter_ - 1
    many = KernelKMeans(6, kernel=kernel, n_init=8, random_state=0).fit(X)
    assert many.inertia_ <= min(KernelKMeans(6, kernel=kernel, random_state=0).fit(X).inertia_, 1.02 * points.inertia_)
    # Ten starts, unless one is asked for.
    other = KernelKMeans(6, kernel=kernel, init="random", random_state=0).fit(X)
    assert other.inertia_ <= KernelKMeans(6, kernel=kernel, init="random", n_init=1, random_state=0).fit(X).inertia_


def test_a_precomputed_matrix() -> None:
    weight = np.random.default_rng(5).integers(0, 3, len(X))
    K = WIDE(X)
    for init in (ROWS, nearest_rows(K, ROWS), "k-means++"):
        ours = KernelKMeans(6, kernel="precomputed", init=init, random_state=0).fit(K, sample_weight=weight)
        if isinstance(init, str):
            continue
        rows = KernelKMeans(6, kernel=WIDE, init=init).fit(X, sample_weight=weight)
        np.testing.assert_array_equal(ours.labels_, rows.labels_)
        assert ours.inertia_ == pytest.approx(rows.inertia_, rel=1e-12)
    new = X[:9] + 0.1
    block = WIDE(new, X)
    np.testing.assert_allclose(ours.transform(block), ours.transform(block, diagonal=np.ones(9)), rtol=1e-12)
    single = KernelKMeans(6, kernel="precomputed", init=ROWS).fit(K.astype(np.float32))
    np.testing.assert_array_equal(single.labels_, KernelKMeans(6, kernel=WIDE, init=ROWS).fit(X).labels_)
    varied = KernelKMeans(3, kernel="precomputed", random_state=0).fit(X @ X.T)
    with pytest.raises(ParameterError, match=r"need k\(x, x\).*diagonal="):
        varied.transform(new @ X.T)
    own = (new**2).sum(axis=1)
    expected = np.array([np.linalg.norm(new - X[varied.labels_ == c].mean(axis=0), axis=1) for c in range(3)]).T
    np.testing.assert_allclose(varied.transform(new @ X.T, diagonal=own), expected, rtol=1e-9)
    with pytest.raises(DataError, match=r"9 finite numbers.*shape \(4,\)"):
        varied.transform(new @ X.T, diagonal=own[:4])
    with pytest.raises(ParameterError, match="leave it out"):
        KernelKMeans(2).fit(X).transform(X, diagonal=np.ones(len(X)))
    np.testing.assert_array_equal(
        KernelKMeans(3, kernel="precomputed", random_state=0).fit_transform(X @ X.T).argmin(axis=1), varied.labels_
    )


def test_empty_clusters_get_the_row_that_is_farthest_away() -> None:
    rows = np.array([[0.0], [1.0], [2.0], [30.0], [31.0], [90.0]])
    # The second mean is the nearest of none.
    start = np.array([[1.0], [1000.0], [30.0]])
    peer = KMeans(3, init=start, n_init=1, tol=0).fit(rows)
    for kernel in ("linear", 1.0 * Linear()):
        model = KernelKMeans(3, kernel=kernel, init=start).fit(rows)
        np.testing.assert_array_equal(model.labels_, peer.labels_)
        assert model.inertia_ == pytest.approx(peer.inertia_)
        # Two clusters without a row, one of which nothing is said about.
        model = KernelKMeans(4, kernel=kernel, init=[0, 0, 0, 2, 2, 2]).fit(rows)
        assert len(np.unique(model.labels_)) == 4 and (np.diff(model.inertia_history_) <= 1e-9).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_fewer_distinct_rows_than_clusters(kernel: str) -> None:
    rows = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    given_ = rows @ rows.T if kernel == "precomputed" else rows
    model = KernelKMeans(5, kernel=kernel, random_state=0)
    with pytest.warns(ConvergenceWarning, match="3 clusters were found instead of n_clusters=5"):
        model.fit(given_)
    assert model.inertia_ == pytest.approx(0, abs=1e-12) and set(model.labels_) == {0, 1, 2}
    assert model.transform(given_, **({"diagonal": given_.diagonal()} if kernel == "precomputed" else {})).shape[1] == 5
    np.testing.assert_array_equal(model.predict(given_), model.labels_)
    constant = np.ones((7, 2))
    with pytest.warns(ConvergenceWarning, match="1 clusters were found"):
        alike = KernelKMeans(2, kernel="rbf").fit(constant)
    # Seven distances, each a sum of three numbers of size 1.
    rounding = 7 * 4 * np.finfo(float).eps
    assert alike.labels_.tolist() == [0] * 7 and alike.inertia_ <= rounding
    with pytest.warns(ConvergenceWarning, match="1 clusters were found"):
        # Rows that differ in what the kernel does not look at.
        alike = KernelKMeans(2, kernel=RBF().on([0]), init=[0, 1]).fit(np.column_stack([np.ones(7), np.arange(7)]))
    assert alike.labels_.tolist() == [0] * 7 and alike.inertia_ <= rounding


def test_one_cluster_is_the_mean() -> None:
    K = WIDE(X)
    model = KernelKMeans(1, kernel=WIDE).fit(X)
    assert model.inertia_ == pytest.approx(K.trace() - K.mean() * len(K), rel=1e-12)
    assert not model.labels_.any() and model.n_iter_ == 2
    as_many = KernelKMeans(30, kernel=WIDE, random_state=0).fit(X[:30])
    assert as_many.inertia_ == pytest.approx(0, abs=1e-12) and len(set(as_many.labels_)) == 30


def test_when_iterations_end() -> None:
    full = KernelKMeans(6, kernel=WIDE, init=ROWS).fit(X)
    for steps in (1, 2, 3):
        with pytest.warns(ConvergenceWarning, match=f"after max_iter={steps} iterations"):
            short = KernelKMeans(6, kernel=WIDE, init=ROWS, max_iter=steps).fit(X)
        assert short.n_iter_ == steps and short.certificate_.status.name == "iteration_limit"
        np.testing.assert_allclose(short.inertia_history_[:-1], full.inertia_history_[:steps])
        assert full.inertia_history_[steps] <= short.inertia_ <= full.inertia_history_[steps - 1]
        np.testing.assert_array_equal(short.predict(X), short.labels_)
        assert short.certificate_.kkt_violation > 0
    loose = KernelKMeans(6, kernel=WIDE, init=ROWS, tol=0.05).fit(X)
    assert loose.n_iter_ < full.n_iter_ and loose.certificate_.status.name == "converged"
    np.testing.assert_array_equal(loose.predict(X), loose.labels_)
    with mercer.config(memory=LAZY):
        again = KernelKMeans(6, kernel=WIDE, init=ROWS, tol=0.05).fit(X)
    np.testing.assert_array_equal(again.labels_, loose.labels_)


def test_landmarks() -> None:
    exact = KernelKMeans(6, kernel=WIDE, init=ROWS).fit(X)
    every = KernelKMeans(6, kernel=WIDE, init=ROWS, approximation="nystroem", n_landmarks=400, random_state=0).fit(X)
    np.testing.assert_array_equal(every.labels_, exact.labels_)
    assert every.inertia_ == pytest.approx(exact.inertia_, rel=1e-6)
    few = KernelKMeans(6, kernel=WIDE, init=ROWS, approximation="nystroem", n_landmarks=40, random_state=0).fit(X)
    assert few.cluster_centers_.shape == (6, 40) and not hasattr(few, "dual_coef_")
    # Means of the same labels anywhere in feature space are at least as near.
    free = KernelKMeans(6, kernel=WIDE, init=few.labels_).fit(X)
    assert free.inertia_history_[0] <= few.inertia_ * (1 + 1e-12)
    K = WIDE(X)
    F = few.map_.transform(X)
    means = np.array([F[few.labels_ == c].mean(axis=0) for c in range(6)])
    squared = K.diagonal()[:, None] - 2 * F @ means.T + (means**2).sum(axis=1)
    np.testing.assert_allclose(few.transform(X) ** 2, squared, atol=1e-12)
    # What does not fit is made anew whenever it is looked at.
    with mercer.config(memory=200_000):
        small = KernelKMeans(6, kernel=WIDE, init=ROWS, approximation="nystroem", n_landmarks=40, random_state=0).fit(X)
    np.testing.assert_array_equal(small.labels_, few.labels_)


def test_the_number_of_threads_does_not_matter() -> None:
    rows = np.random.default_rng(0).normal(size=(1500, 3))
    for memory in (None, 3_000_000):
        for kernel in ("rbf", "linear"):
            results = []
            for jobs in (1, 3):
                with mercer.config(memory=memory) if memory else mercer.config():
                    results.append(KernelKMeans(8, kernel=kernel, random_state=0, n_jobs=jobs).fit(rows))
            np.testing.assert_array_equal(results[0].labels_, results[1].labels_)
            np.testing.assert_array_equal(results[0].inertia_history_, results[1].inertia_history_)


def test_an_indefinite_kernel() -> None:
    with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
        KernelKMeans(3, kernel="sigmoid", allow_indefinite=False).fit(X)
    model = KernelKMeans(3, kernel="sigmoid", gamma=0.05, allow_indefinite=True, random_state=0).fit(X)
    assert model.certificate_.status.name in ("converged", "stationary") and not model.certificate_.convex
    assert len(set(model.labels_)) == 3 and (np.diff(model.inertia_history_[:-1]) <= 1e-9).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, but is 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"n_clusters": 401}, "n_samples=400 should be >= n_clusters=401"),
        ({"n_init": 0}, "n_init must be 'auto' or a whole number"),
        ({"n_init": "many"}, "n_init must be 'auto'"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"max_iter": np.inf}, "max_iter must be"),
        ({"tol": -1.0}, "tol must be a finite number of 0 or more"),
        ({"approximation": "fourier"}, "approximation must be None or 'nystroem'"),
        ({"approximation": "nystroem", "kernel": "precomputed"}, "needs rows"),
        ({"approximation": "nystroem", "n_landmarks": 0}, "n_landmarks must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"init": "kmeans"}, r"init must be 'k-means\+\+', 'random' or an array, but is 'kmeans'"),
        ({"init": [0, 1]}, r"positions of n_clusters=3 rows.*shape \(2,\)"),
        ({"init": [0, 1, 400]}, "positions of rows, which go from 0 to 399, but reaches from 0 to 400"),
        ({"init": np.full(400, 3)}, "labels, which go from 0 to 2"),
        ({"init": [0.0, 1.0, 2.0]}, "array of float64"),
        ({"init": np.full((3, 5), np.nan)}, "not finite"),
        ({"init": [[0], [1, 2]]}, "init must be"),
        ({"init": None}, "init must be"),
    ],
)
def test_parameters_that_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelKMeans(**{"n_clusters": 3, **parameters}).fit(X)


def test_weights_and_budgets_that_are_refused() -> None:
    with pytest.raises(DataError, match="negative"):
        KernelKMeans(3).fit(X, sample_weight=-np.ones(len(X)))
    with pytest.raises(DataError, match="no rows remain"):
        KernelKMeans(3).fit(X, sample_weight=np.zeros(len(X)))
    with mercer.config(memory=50_000), pytest.raises(MemoryBudgetError, match=r"distances of 400 rows from 6 means"):
        KernelKMeans(6).fit(X)
    # The linear kernel asks for no more than the distances.
    with mercer.config(memory=300_000):
        assert KernelKMeans(6, kernel="linear", random_state=0).fit(X).certificate_.peak_bytes < 300_000


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("kernel", ["linear", Polynomial(1, 1.0, 1.0)])
@pytest.mark.parametrize("scale", [1e152, 1e160])
def test_values_that_overflow(kernel: Any, scale: float) -> None:
    with pytest.raises(NumericalError, match=r"(overflow float64. S|returned inf; s)cale the columns of X"):
        KernelKMeans(3, kernel=kernel).fit(scale * X)


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (kernels.Spectrum(2), ["apple", "apply", "ample", "banana", "bandana", "cabana", "apple"]),
        (kernels.GlobalAlignment(1.0), [np.sin(t + np.arange(9.0)) * s for s in (1.0, 9.0) for t in (0.0, 0.1, 0.2)]),
    ],
)
def test_rows_that_are_not_vectors(kernel: Any, rows: list[Any]) -> None:
    K = kernel(rows)
    start = nearest_rows(K, np.array([0, 3]))
    expected, history = lloyd(K, start, 2, np.ones(len(rows)))
    for init in ([0, 3], start):
        model = KernelKMeans(2, kernel=kernel, init=init).fit(rows)
        np.testing.assert_array_equal(model.labels_, expected)
        assert model.inertia_ == pytest.approx(history[-1], rel=1e-9)
    np.testing.assert_array_equal(model.predict(rows[:2]), expected[:2])
    few = KernelKMeans(2, kernel=kernel, init=[0, 3], approximation="nystroem", n_landmarks=3, random_state=0).fit(rows)
    free = KernelKMeans(2, kernel=kernel, init=few.labels_).fit(rows)
    assert free.inertia_history_[0] <= few.inertia_ * (1 + 1e-9)
