"""Nearest rows in feature space: against scikit-learn, explicit features and naive loops."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from threadpoolctl import threadpool_limits

import mercer
from mercer import KernelNeighborsClassifier, KernelNeighborsRegressor, kernels
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.gram.smallest import smallest
from mercer.kernels.geometry import ranking

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(700, 4)), RNG.normal(size=(530, 4))
LABELS = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
TWO = np.column_stack([LABELS, np.where(X[:, 2] > 0, "up", "down")])
Y = np.sin(X[:, 0]) + X[:, 1]
WEIGHTS = ["uniform", "distance", None, lambda d: np.exp(-d)]


def squares(A: np.ndarray) -> np.ndarray:
    """The features of (1 + <x, z>)^2."""
    d = A.shape[1]
    pairs = [np.sqrt(2) * A[:, i] * A[:, j] for i in range(d) for j in range(i)]
    return np.column_stack([np.ones(len(A)), np.sqrt(2) * A, A**2, *pairs])


SPACES = [pytest.param("linear", lambda A: A, id="linear"), pytest.param(kernels.Polynomial(2), squares, id="squares")]


@pytest.mark.parametrize(("kernel", "features"), SPACES)
@pytest.mark.parametrize(
    ("weights", "count"), list(zip(WEIGHTS, [1, 6, 6, 4], strict=True)), ids=["uniform", "distance", "none", "function"]
)
def test_as_scikit_learn_on_explicit_features(kernel: Any, features: Any, weights: Any, count: int) -> None:
    rows = features(X)
    queries = ((NEW, features(NEW)), (None, None))
    # Its threads wait for each other in a loop, which takes long where others are at work.
    with threadpool_limits(1):
        for y in (LABELS, TWO):
            model = KernelNeighborsClassifier(count, weights=weights, kernel=kernel).fit(X, y)
            other = KNeighborsClassifier(count, weights=weights, algorithm="brute").fit(rows, y)
            for mine, theirs in queries:
                np.testing.assert_array_equal(model.predict(mine), other.predict(theirs))
                for a, b in zip(model.predict_proba(mine), other.predict_proba(theirs), strict=True):
                    np.testing.assert_allclose(a, b, atol=1e-9)
        for y in (Y, np.column_stack([Y, X[:, 3]])):
            model = KernelNeighborsRegressor(count, weights=weights, kernel=kernel).fit(X, y)
            other = KNeighborsRegressor(count, weights=weights, algorithm="brute").fit(rows, y)
            for mine, theirs in queries:
                np.testing.assert_allclose(model.predict(mine), other.predict(theirs), rtol=1e-9)
        for mine, theirs in queries:
            distances, indices = model.kneighbors(mine)
            expected, places = other.kneighbors(theirs)
            np.testing.assert_array_equal(indices, places)
            np.testing.assert_allclose(distances, expected, rtol=1e-9)
            for mode in ("connectivity", "distance"):
                graph = model.kneighbors_graph(mine, mode=mode)
                np.testing.assert_allclose(graph.toarray(), other.kneighbors_graph(theirs, mode=mode).toarray())


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.RBF(1.3),
        kernels.RBF([1.0, 2.0, 3.0, 4.0]),
        3.0 * kernels.RBF(1.0) + 2.0,
        kernels.Laplacian(2.0),
        kernels.RBF(1.0).on([1, 3]),
        kernels.Matern(nu=0.5),
        kernels.Matern(nu=np.inf),
        kernels.Matern(nu=1.5),
        kernels.RationalQuadratic(1.0, alpha=0.7),
        kernels.Periodic(1.0, period=3.0),
        2.0 * kernels.Linear() + 5.0,
        kernels.NegativeDistance(),
        kernels.NegativeDistance(1.5),
        kernels.RBF(1.0) + kernels.Linear(),
        kernels.RBF(1.0) * kernels.Linear(),
        kernels.ArcCosine(),
        kernels.Linear().normalized(),
        "rbf",
        "poly",
        pytest.param(lambda A, B: np.exp(A @ B.T), id="function"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_are_those_of_the_formula(kernel: Any, dtype: Any) -> None:
    rows, new = X.astype(dtype), NEW[:60].astype(dtype)
    model = KernelNeighborsClassifier(9, kernel=kernel).fit(rows, LABELS)
    distances, indices = model.kneighbors(new)
    assert distances.dtype == dtype
    k, exact, exact_new = model.kernel_, rows.astype(float), new.astype(float)
    terms = k.diagonal(exact_new)[:, None], k(exact_new, exact), k.diagonal(exact)
    squared = terms[0] - 2 * terms[1] + terms[2]
    # Every term is rounded, and the squared norms within it, too.
    eps = 64 * float(np.finfo(dtype).eps)
    size = max(float(np.abs(part).max()) for part in terms) + (exact**2).sum(axis=1).max()
    result = np.take_along_axis(squared, indices, axis=1)
    np.testing.assert_allclose(distances.astype(float) ** 2, result, rtol=eps, atol=eps * size)
    nearest = np.sort(squared, axis=1)[:, :9]
    np.testing.assert_allclose(result, nearest, rtol=eps, atol=eps * size)
    assert (np.diff(distances, axis=1) >= 0).all()


def test_of_equal_distances_the_first_rows_are_taken() -> None:
    rows = np.tile([[0.0], [1.0], [1.0]], (400, 1))
    for kernel in ("linear", "rbf", "poly"):
        model = KernelNeighborsRegressor(5, kernel=kernel).fit(rows, np.arange(1200))
        distances, indices = model.kneighbors([[1.0], [0.0]])
        assert indices.tolist() == [[1, 2, 4, 5, 7], [0, 3, 6, 9, 12]] and not distances.any()
        assert model.kneighbors([[1.0]], 600)[1].tolist() == [[i for i in range(900) if i % 3]]
        # A row is not its own neighbour, also where it has many doubles.
        assert model.kneighbors(n_neighbors=3)[1][[0, 4, 1199]].tolist() == [[3, 6, 9], [1, 2, 5], [1, 2, 4]]


def test_of_classes_with_equal_votes_the_first_is_taken() -> None:
    model = KernelNeighborsClassifier(2).fit([[0.0], [1.0]], ["b", "a"])
    assert model.predict([[0.1]]).tolist() == ["a"]
    assert model.predict_proba([[0.1]]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("kernel", [2.0 * kernels.RBF(1.0), kernels.RationalQuadratic(), kernels.Matern(nu=0.5)])
def test_rows_whose_kernel_values_are_equal_are_told_apart(kernel: Any) -> None:
    rows = np.array([[3e-9], [1e-9], [2e-9], [5.0]])
    model = KernelNeighborsRegressor(3, kernel=kernel).fit(rows, [0.0, 1.0, 2.0, 3.0])
    distances, indices = model.kneighbors([[0.0]])
    assert indices.tolist() == [[1, 2, 0]]
    # Near 0, 1 - k is a power of the distance: 2 for the smooth kernels, and 1 for the one with a kink.
    power = 0.5 if isinstance(kernel, kernels.Matern) else 1.0
    np.testing.assert_allclose(distances[0] / distances[0, 0], np.array([1.0, 2.0, 3.0]) ** power, rtol=1e-6)
    far = KernelNeighborsRegressor(2, kernel=kernels.RBF(1.0)).fit([[90.0], [70.0], [80.0]], [0.0, 1.0, 2.0])
    assert kernels.RBF(1.0)([[0.0]], [[70.0]]) == 0
    assert far.kneighbors([[0.0]])[1].tolist() == [[1, 2]]


@pytest.mark.parametrize("kernel", ["poly", kernels.RBF(1.0) + kernels.Linear()], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_training_row_is_at_distance_0_of_itself(kernel: Any, dtype: Any) -> None:
    rows = (X + 3).astype(dtype)
    model = KernelNeighborsRegressor(4, kernel=kernel, weights="distance").fit(rows, Y)
    distances, indices = model.kneighbors(rows)
    assert not distances[:, 0].any()
    np.testing.assert_array_equal(indices[:, 0], np.arange(len(X)))
    np.testing.assert_array_equal(model.predict(rows), Y)


def test_sparse_rows() -> None:
    rows, new = X * (RNG.random(X.shape) < 0.5), NEW * (RNG.random(NEW.shape) < 0.5)
    for kernel in ("linear", "rbf", "poly"):
        dense = KernelNeighborsClassifier(4, kernel=kernel, weights="distance").fit(rows, LABELS)
        sparse = KernelNeighborsClassifier(4, kernel=kernel, weights="distance").fit(sp.csr_matrix(rows), LABELS)
        distances, expected = sparse.kneighbors(sp.csr_array(new))[0], dense.kneighbors(new)[0]
        # What cancellation leaves of a squared distance of 0 is some eps of the squared norms, which are below 60.
        np.testing.assert_allclose(distances**2, expected**2, atol=60 * 16 * np.finfo(float).eps, rtol=1e-9)


def test_a_given_matrix() -> None:
    k = kernels.Polynomial(2)
    K, K_new, own = k(X), k(NEW, X), k.diagonal(NEW)
    for weights in ("uniform", "distance"):
        model = KernelNeighborsRegressor(kernel=k, weights=weights).fit(X, Y)
        given = KernelNeighborsRegressor(kernel="precomputed", weights=weights).fit(K, Y)
        np.testing.assert_allclose(given.predict(K_new, diagonal=own), model.predict(NEW), rtol=1e-9)
        np.testing.assert_allclose(given.predict(None), model.predict(None), rtol=1e-9)
    np.testing.assert_array_equal(given.kneighbors(K_new, return_distance=False), model.kneighbors(NEW)[1])
    with pytest.raises(ParameterError, match=r"need k\(x, x\) of the new rows.*diagonal="):
        given.predict(K_new)
    with pytest.raises(DataError, match=r"diagonal must be 530 finite numbers.*shape \(3,\)"):
        given.kneighbors(K_new, diagonal=[1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="entries that are not finite"):
        given.kneighbors(K_new, diagonal=np.full(530, np.nan))
    with pytest.raises(ParameterError, match="diagonal applies only to new rows of kernel='precomputed'"):
        model.kneighbors(NEW, diagonal=own)
    with pytest.raises(ParameterError, match="diagonal applies only to new rows"):
        given.kneighbors(diagonal=own)
    # One number for all training rows is taken for the new ones.
    smooth = kernels.RBF(2.0)
    given = KernelNeighborsClassifier(kernel="precomputed").fit(smooth(X), LABELS)
    direct = KernelNeighborsClassifier(kernel=smooth).fit(X, LABELS)
    np.testing.assert_allclose(given.kneighbors(smooth(NEW, X))[0], direct.kneighbors(NEW)[0], atol=1e-7)
    assert cross_val_score(given, smooth(X), LABELS, cv=3).mean() > 0.8


def test_the_matrix_is_never_held_and_threads_do_not_matter() -> None:
    rows = np.random.default_rng(1).normal(size=(6000, 3))
    model = KernelNeighborsRegressor(3, kernel="rbf", n_jobs=1).fit(rows, rows[:, 0])
    expected = model.predict(rows)
    tracemalloc.start()
    model.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 6000**2 / 20
    other = KernelNeighborsRegressor(3, kernel="rbf", n_jobs=3).fit(rows, rows[:, 0])
    np.testing.assert_array_equal(other.predict(rows), expected)


def test_progress_and_cancelling() -> None:
    model = KernelNeighborsRegressor(kernel="rbf").fit(X, Y)
    heard: list[Any] = []
    with mercer.on_progress(lambda *what: heard.append(what)):
        model.predict(X)
    assert heard[-1][1:] == (2, 2)

    def cancel(*what: Any) -> None:
        raise InterruptedError

    with mercer.on_progress(cancel), pytest.raises(InterruptedError):
        model.predict(X)


def test_ranking_of_kernels() -> None:
    assert ranking(kernels.RBF(1.0) + kernels.Linear()).finish is None
    assert ranking(2.0 * (kernels.RBF(1.0) ** 2)).finish is None
    assert ranking((0.5 * kernels.RBF(1.0)).on([0]) + 1.0).finish is not None
    assert ranking(kernels.ExpSineSquared()).finish is None


def test_what_is_refused() -> None:
    model = KernelNeighborsClassifier(3).fit(X, LABELS)
    for value in (0, -2, 2.5, True, "3", None):
        with pytest.raises(ParameterError, match="n_neighbors must be a whole number of 1 or more"):
            KernelNeighborsClassifier(value).fit(X, LABELS)
    with pytest.raises(ParameterError, match="n_neighbors must be a whole number"):
        model.kneighbors(NEW, 0)
    with pytest.raises(ParameterError, match=r"701.*n_samples_fit = 700: there are 700 training rows;"):
        model.kneighbors(NEW, 701)
    with pytest.raises(ParameterError, match="there are 699 training rows beside each row itself"):
        model.kneighbors(None, 700)
    with pytest.raises(ParameterError, match=r"weights must be 'uniform'.*'closest'"):
        KernelNeighborsRegressor(weights="closest").fit(X, Y)
    with pytest.raises(ParameterError, match="mode must be 'connectivity' or 'distance', but is 'both'"):
        model.kneighbors_graph(NEW, mode="both")
    for function, words in (
        (lambda d: d[:, 0], r"returned an array of shape \(530,\)"),
        (lambda d: np.full(d.shape, np.nan), "finite numbers"),
        (lambda d: -d, "finite numbers of 0 or more"),
        (lambda d: 0 * d, "gave every neighbour of 530 rows the weight 0"),
    ):
        with pytest.raises(DataError, match=words):
            KernelNeighborsRegressor(weights=function).fit(X, Y).predict(NEW)
    with pytest.raises(DataError, match="at least one column"):
        KernelNeighborsClassifier().fit(X, np.empty((700, 0)))
    for value in (np.nan, -np.inf, np.inf):
        matrix = np.zeros((600, 700))
        matrix[580, 690] = value
        with pytest.raises(KernelValueError, match="entries that are not finite"):
            smallest(PrecomputedGram(matrix, symmetric=False), 700, factor=-2.0)
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match="the 3 neighbours of 530 rows"):
        model.predict(NEW)


def test_indefinite_kernels() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for allowed in ("warn", False, True):
            KernelNeighborsRegressor(kernel=lambda A, B: -A @ B.T, allow_indefinite=allowed).fit(X, Y)
            KernelNeighborsRegressor(kernel="precomputed", allow_indefinite=allowed).fit(-X @ X.T, Y)
        model = KernelNeighborsRegressor(3, kernel=kernels.Sigmoid(2.0, -1.0)).fit(X, Y)
    k = model.kernel_
    squared = k.diagonal(NEW)[:, None] - 2 * k(NEW, X) + k.diagonal(X)
    distances, indices = model.kneighbors(NEW)
    np.testing.assert_array_equal(indices, squared.argsort(axis=1, kind="stable")[:, :3])
    result = np.sqrt(np.maximum(np.take_along_axis(squared, indices, axis=1), 0))
    np.testing.assert_allclose(distances, result, atol=1e-7)


def test_one_row_one_class_and_constant_columns() -> None:
    model = KernelNeighborsClassifier(1, kernel="rbf").fit([[2.0]], ["only"])
    assert model.predict([[7.0]]).tolist() == ["only"] and model.predict_proba([[7.0]]).tolist() == [[1.0]]
    assert KernelNeighborsRegressor(2).fit(np.ones((3, 2)), [1.0, 3.0, 9.0]).predict([[5.0, 5.0]]).tolist() == [2.0]


@pytest.mark.parametrize("kernel", ["linear", "poly", kernels.RBF(2.0), kernels.Matern(3.0)], ids=repr)
def test_ties_of_whole_numbers_go_to_the_first_rows(kernel: Any) -> None:
    rng = np.random.default_rng(4)
    rows, new = rng.integers(-3, 9, size=(150, 3)).astype(float), rng.integers(-3, 9, size=(40, 3)).astype(float)
    if kernel == "poly":
        kernel = kernels.Polynomial(2)
        own, others = squares(rows), squares(new)
        # Roots of two are rounded, so the distances are made of whole numbers.
        distances = (1 + (new**2).sum(1))[:, None] ** 2 + (1 + (rows**2).sum(1)) ** 2 - 2 * (1 + new @ rows.T) ** 2
        np.testing.assert_allclose(distances, ((others[:, None] - own) ** 2).sum(axis=2), atol=1e-6)
    else:
        distances = ((new[:, None] - rows) ** 2).sum(axis=2)
    model = KernelNeighborsClassifier(9, kernel=kernel).fit(rows, np.arange(150) % 2)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :9]
    assert np.array_equal(model.kneighbors(new, return_distance=False), expected)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_no_other_row_is_nearer_than_the_radius(kernel: str) -> None:
    rng = np.random.default_rng(5)
    rows, new = rng.normal(size=(300, 4)), rng.normal(size=(20, 4))
    model = KernelNeighborsRegressor(7, kernel=kernel, gamma=0.2).fit(rows, rows[:, 0])
    radius, chosen = (
        distances[:, -1] if number == 0 else distances for number, distances in enumerate(model.kneighbors(new))
    )
    K, own = model.kernel_(new, rows), model.kernel_(rows).diagonal()
    squares = model.kernel_(new).diagonal()[:, None] - 2.0 * K + own
    scale = 300 * float(np.finfo(np.float64).eps) * (1.0 + float(np.abs(squares).max()))
    for number in range(len(new)):
        others = np.delete(squares[number], chosen[number])
        assert others.min() >= radius[number] ** 2 - scale >= squares[number, chosen[number]].max() - 2 * scale
