"""Kernel principal components: scikit-learn's answers, its conventions, and what it does not say."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import KernelPCA
from mercer._errors import DataError, MemoryBudgetError, MercerWarning, NumericalError, ParameterError
from mercer.engine import arrays
from mercer.kernels import RBF, Matern, NegativeDistance

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(90, 4)), RNG.normal(size=(20, 4))
MANY, MORE = RNG.normal(size=(700, 6)), RNG.normal(size=(15, 6))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.7, "n_components": 6, "fit_inverse_transform": True},
        {"kernel": "poly", "degree": 2, "n_components": 5, "coef0": 0.5},
        {"kernel": "cosine", "n_components": 3, "fit_inverse_transform": True, "alpha": 0.1},
        {"kernel": "linear", "n_components": 10},
        {"kernel": "linear", "n_components": 10, "remove_zero_eig": True},
        {"kernel": "rbf", "n_components": 4, "eigen_solver": "arpack", "random_state": 0},
        {"kernel": "rbf", "n_components": 4, "eigen_solver": "dense"},
    ],
    ids=str,
)
def test_the_same_as_scikit_learns(parameters: dict[str, Any]) -> None:
    ours, theirs = KernelPCA(**parameters).fit(X), Peer(**parameters).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-11 * theirs.eigenvalues_[0])
    assert ours.gamma_ == theirs.gamma_
    coordinates, expected = ours.transform(NEW), theirs.transform(NEW)
    # Of the smallest of all components rounding is divided by the square root of the eigenvalue.
    np.testing.assert_allclose(coordinates, expected, atol=1e-8)
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    np.testing.assert_allclose(KernelPCA(**parameters).fit_transform(X), ours.transform(X), atol=1e-8)
    if "fit_inverse_transform" in parameters:
        np.testing.assert_allclose(ours.inverse_transform(coordinates), theirs.inverse_transform(expected), atol=1e-8)


def test_the_linear_kernel_is_pca() -> None:
    ours, pca = KernelPCA(3).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_ / 89, pca.explained_variance_, rtol=1e-12)
    expected = pca.transform(NEW)
    coordinates = ours.transform(NEW)
    np.testing.assert_allclose(coordinates * np.sign((coordinates * expected).sum(0)), expected, atol=1e-12)
    left = ours.certificate_.primal / 89
    assert left == pytest.approx(X.var(axis=0, ddof=1).sum() - pca.explained_variance_.sum(), rel=1e-10)


@pytest.mark.parametrize("kernel", [RBF(3.0), Matern(2.0, nu=1.5), "linear", 2.0 * RBF(1.0) + 0.5], ids=repr)
@pytest.mark.parametrize("memory", ["1GiB", "3.6MB"])
def test_block_lanczos_finds_what_lapack_finds(kernel: Any, memory: str) -> None:
    reference = KernelPCA(5, kernel=kernel, eigen_solver="dense").fit(MANY)
    with mercer.config(memory=memory):
        model = KernelPCA(5, kernel=kernel, random_state=0).fit(MANY)
    assert (model.solver_, reference.solver_) == ("block Lanczos", "dense")
    assert (model.certificate_.peak_bytes >= 8 * 700**2) == (memory == "1GiB")
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-11)
    gap = -np.diff(reference.eigenvalues_).max() / reference.eigenvalues_[0]
    # By Davis and Kahan a vector is off by the residual over the gap.
    np.testing.assert_allclose(model.transform(MORE), reference.transform(MORE), atol=1e-9 / gap)
    assert model.certificate_.status.name == "converged" and model.certificate_.kkt_violation < 1e-11


def test_restarts_of_block_lanczos() -> None:
    from_uniform = np.random.default_rng(1).uniform(size=(500, 8))
    model = KernelPCA(2, kernel=RBF(0.3), random_state=3).fit(from_uniform)
    K = RBF(0.3)(from_uniform)
    H = np.eye(500) - 1 / 500
    values = eigh(H @ K @ H, eigvals_only=True)[::-1][:2]
    # More blocks than the basis holds.
    assert model.certificate_.iterations > 10
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)


def test_randomized_is_near_where_the_spectrum_falls() -> None:
    exact = KernelPCA(3, kernel=RBF(4.0), eigen_solver="dense").fit(MANY)
    randomized = KernelPCA(3, kernel=RBF(4.0), eigen_solver="randomized", random_state=0).fit(MANY)
    np.testing.assert_allclose(randomized.eigenvalues_, exact.eigenvalues_, rtol=1e-4)
    assert (randomized.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-12)).all()
    more = KernelPCA(3, kernel=RBF(4.0), eigen_solver="randomized", random_state=0, iterated_power=30).fit(MANY)
    assert more.certificate_.violations["eigenpair"] < randomized.certificate_.violations["eigenpair"]


def test_components_of_few_products_are_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 products; raise max_iter or tol"):
        model = KernelPCA(5, kernel="rbf", max_iter=1, random_state=0).fit(MANY)
    assert model.certificate_.status.name == "iteration_limit"


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
@pytest.mark.parametrize("rows", [X, MANY], ids=len)
def test_negative_eigenvalues_are_reported(rows: np.ndarray, solver: str) -> None:
    K = np.tanh(0.5 * rows @ rows.T + 1)
    H = np.eye(len(K)) - 1 / len(K)
    values = eigh(H @ K @ H, eigvals_only=True)
    assert values[0] < -1e-3 * values[-1]
    with pytest.warns(MercerWarning, match=r"negative eigenvalues, down to -.*positive part only"):
        model = KernelPCA(3, kernel="sigmoid", gamma=0.5, eigen_solver=solver, random_state=0).fit(rows)
    rough = {"rtol": 0.05 if solver == "randomized" else 1e-10}
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:3], **rough)
    assert values[0] * (1 + 1e-10) <= model.negative_eigenvalues_[0] < 0
    with pytest.warns(MercerWarning, match="negative eigenvalues"):
        given = KernelPCA(3, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)
    np.testing.assert_allclose(given.eigenvalues_, model.eigenvalues_, rtol=1e-9)


def test_all_negative_eigenvalues_where_all_components_are_computed() -> None:
    K = np.diag([3.0, -1.0, 2.0, -2.0, 1.0])
    H = np.eye(5) - 1 / 5
    values = eigh(H @ K @ H, eigvals_only=True)
    with pytest.warns(MercerWarning, match="negative eigenvalues"):
        model = KernelPCA(kernel="precomputed").fit(K)
    np.testing.assert_allclose(model.negative_eigenvalues_, values[values < -1e-9])
    np.testing.assert_allclose(model.eigenvalues_, values[values > 1e-9][::-1])
    with pytest.warns(MercerWarning, match="negative eigenvalues"):
        padded = KernelPCA(5, kernel="precomputed").fit(K)
    assert (padded.eigenvalues_ >= 0).all() and len(padded.eigenvalues_) == 5
    assert (padded.transform(K)[:, padded.eigenvalues_ == 0] == 0).all()


@pytest.mark.parametrize("kernel", [RBF(1.0), NegativeDistance()], ids=repr)
def test_no_warning_for_kernels_that_are_valid_when_centred(kernel: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelPCA(kernel=kernel).fit(np.vstack([X, X[:30]]))
    assert len(model.negative_eigenvalues_) == 0
    assert len(model.eigenvalues_) <= 89


def test_precomputed_and_functions_and_sparse_rows() -> None:
    kernel = RBF(1.5)
    expected = KernelPCA(4, kernel=kernel).fit(X)
    given = KernelPCA(4, kernel="precomputed").fit(kernel(X))
    np.testing.assert_allclose(given.transform(kernel(NEW, X)), expected.transform(NEW), atol=1e-10)
    np.testing.assert_array_equal(given.X_fit_, kernel(X))
    sparse = KernelPCA(4, kernel=kernel).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(NEW)), expected.transform(NEW), atol=1e-10)

    def power(A: np.ndarray, B: np.ndarray, p: int) -> np.ndarray:
        return (A @ B.T) ** p

    own = KernelPCA(4, kernel=power, kernel_params={"p": 2}).fit(X)
    named = KernelPCA(4, kernel="poly", degree=2, gamma=1.0, coef0=0.0).fit(X)
    np.testing.assert_allclose(own.eigenvalues_, named.eigenvalues_, rtol=1e-10)


def test_copies_of_the_rows() -> None:
    rows = X.copy()
    assert not np.shares_memory(KernelPCA(2).fit(rows).X_fit_, rows)
    assert np.shares_memory(KernelPCA(2, copy_X=False).fit(rows).X_fit_, rows)
    np.testing.assert_array_equal(rows, X)


def test_float32_rows_have_float32_coordinates() -> None:
    model = KernelPCA(3, kernel="rbf", fit_inverse_transform=True).fit(X.astype(np.float32))
    coordinates = model.transform(NEW.astype(np.float32))
    assert coordinates.dtype == np.float32 and model.inverse_transform(coordinates).dtype == np.float32
    np.testing.assert_allclose(coordinates, KernelPCA(3, kernel="rbf").fit(X).transform(NEW), atol=1e-5)


def test_another_fit_forgets_the_inverse() -> None:
    model = KernelPCA(2, fit_inverse_transform=True).fit(X)
    model.set_params(fit_inverse_transform=False).fit(X)
    with pytest.raises(NotFittedError, match="pass fit_inverse_transform=True"):
        model.inverse_transform(model.transform(X))


def test_equal_rows() -> None:
    rows = np.ones((7, 2))
    with pytest.warns(MercerWarning, match="all rows are equal for this kernel"):
        assert KernelPCA(2, kernel="rbf").fit_transform(rows).tolist() == [[0.0, 0.0]] * 7
    with pytest.warns(MercerWarning, match="all rows are equal"):
        assert KernelPCA().fit(rows).transform(rows).shape == (7, 0)
    with pytest.warns(MercerWarning), pytest.raises(DataError, match="no component to learn an inverse"):
        KernelPCA(fit_inverse_transform=True).fit(rows)
    with pytest.warns(MercerWarning, match="all rows are equal"):
        KernelPCA(2, eigen_solver="arpack").fit(rows)
    with pytest.warns(MercerWarning, match="all rows are equal"):
        model = KernelPCA(2).fit(np.ones((600, 2)))
    assert model.solver_ == "block Lanczos" and model.eigenvalues_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("memory", ["1GiB", "6MB"])
def test_rows_that_repeat(memory: str) -> None:
    few = np.random.default_rng(2).normal(size=(20, 3))
    with mercer.config(memory=memory):
        model = KernelPCA(10, kernel="rbf", random_state=0).fit(np.tile(few, (35, 1)))
    alone = KernelPCA(10, kernel="rbf").fit(few)
    assert model.solver_ == "block Lanczos"
    np.testing.assert_allclose(model.eigenvalues_, 35 * alone.eigenvalues_, rtol=1e-11)
    np.testing.assert_allclose(model.transform(NEW[:, :3]), alone.transform(NEW[:, :3]), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components must be None or a whole number of at least 1, but is 0"),
        ({"n_components": 2.5}, "n_components must be"),
        ({"n_components": 91}, "n_components=91 exceeds the 90 rows.*at most 89"),
        ({"n_components": 90, "eigen_solver": "arpack"}, "ARPACK finds fewer.*90 of 90.*eigen_solver='dense'"),
        ({"eigen_solver": "lobpcg"}, "eigen_solver must be 'auto', 'dense', 'arpack' or 'randomized'"),
        ({"tol": -1.0}, "tol must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"iterated_power": -1}, "iterated_power must be 'auto' or"),
        ({"random_state": "x"}, "random_state must be"),
        ({"fit_inverse_transform": True, "kernel": "precomputed"}, "needs rows, and kernel='precomputed' has none"),
        ({"kernel": "rbff"}, "there is no kernel 'rbff'"),
        ({"kernel": "rbf", "gamma": "big"}, "gamma must be"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelPCA(**parameters).fit(X)


def test_rows_that_cannot_be_used() -> None:
    with pytest.raises(DataError, match="1 sample, which has no variance; at least 2 rows"):
        KernelPCA(1).fit(X[:1])
    with pytest.raises(DataError, match="contains NaN"):
        KernelPCA(1).fit(np.where(X > 1, np.nan, X))
    with pytest.raises(DataError, match=r"must be square"):
        KernelPCA(1, kernel="precomputed").fit(X)
    with pytest.raises(DataError, match=r"not symmetric"):
        KernelPCA(1, kernel="precomputed").fit(X[:4])
    with pytest.raises(DataError, match=r"needs dense rows, and X is sparse; pass X.toarray"):
        KernelPCA(1, fit_inverse_transform=True).fit(sp.csr_array(X))
    model = KernelPCA(2, fit_inverse_transform=True).fit(X)
    with pytest.raises(DataError, match="X has 3 columns, but there are 2 components"):
        model.inverse_transform(X[:, :3])
    with pytest.raises(DataError, match="X has 3 features"):
        model.transform(X[:, :3])
    with pytest.raises(NotFittedError):
        KernelPCA().transform(X)


@pytest.mark.parametrize("components", [None, 3])
def test_a_budget_that_is_too_small(components: int | None) -> None:
    with mercer.config(memory="100KiB"), pytest.raises(MemoryBudgetError, match="Ask for few components"):
        KernelPCA(components, kernel="rbf").fit(MANY)


def test_all_components_take_what_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    # Arrays that are mapped would not be traced.
    monkeypatch.setattr(arrays, "_MAPPED", np.inf)
    K = RBF(1.0)(np.random.default_rng(0).normal(size=(700, 3)))
    tracemalloc.start()
    try:
        model = KernelPCA(kernel="precomputed", copy_X=False).fit(K)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Vectors and work arrays are not reserved.
    assert peak < model.certificate_.peak_bytes + K.nbytes / 4
    # A matrix of full rank, with vectors as scikit-learn turns them.
    other = Peer(kernel="precomputed", eigen_solver="dense").fit(K)
    count = int((other.eigenvalues_ > 1e-6).sum())
    np.testing.assert_allclose(model.eigenvectors_[:, :count], other.eigenvectors_[:, :count], atol=1e-7)
    V = model.eigenvectors_
    expected = np.abs(V.T @ V - np.eye(V.shape[1])).max()
    assert expected <= model.certificate_.violations["orthogonality"] <= 1e-12


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
@pytest.mark.parametrize("n", [5, 60, 700])
def test_a_kernel_that_overflows(solver: str, n: int) -> None:
    rows = RNG.normal(size=(n, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    with pytest.raises(NumericalError, match=r"\|k\(x, x\)\| is up to inf. Scale the columns of X"):
        KernelPCA(2, eigen_solver=solver).fit(rows * 1e160)
    # Values that are finite, and neither their sums nor the squares of these.
    with pytest.raises(NumericalError, match=r"overflow float64.*Scale the columns of X"):
        KernelPCA(2, eigen_solver=solver).fit(rows * 1.2e154)
    result, expected = (KernelPCA(2, eigen_solver=solver, random_state=0).fit(s * rows) for s in (2.0**230, 1.0))
    np.testing.assert_allclose(result.eigenvalues_ / 2.0**460, expected.eigenvalues_, rtol=1e-9)


def test_a_matrix_need_be_symmetric_only_once_it_is_centred() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    K, new = X @ X.T, rng.normal(size=(5, 4)) @ X.T
    # Rows may be moved by numbers of their own, and columns by others: centring takes both away.
    columns = rng.normal(size=30)
    lopsided = K + rng.normal(size=30)[:, None] + columns
    expected = KernelPCA(3, kernel="precomputed").fit(K)
    model = KernelPCA(3, kernel="precomputed").fit(lopsided)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(model.eigenvectors_), np.abs(expected.eigenvectors_), atol=1e-10)
    signs = np.sign((model.eigenvectors_ * expected.eigenvectors_).sum(axis=0))
    moved = new + rng.normal(size=5)[:, None] + columns
    np.testing.assert_allclose(model.transform(moved) * signs, expected.transform(new), atol=1e-10)
    np.testing.assert_allclose(model.transform(lopsided), model.fit_transform(lopsided), atol=1e-10)
    theirs = Peer(3, kernel="precomputed").fit(lopsided)
    np.testing.assert_allclose(np.abs(model.transform(moved)), np.abs(theirs.transform(moved)), atol=1e-9)
    lopsided[2, 7] += 1.0
    with pytest.raises(DataError, match="not symmetric"):
        KernelPCA(3, kernel="precomputed").fit(lopsided)


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "landmarks": "uniform", "random_state": 0}])
def test_digits_that_rows_far_from_zero_lose_are_reported(options):
    near = np.random.default_rng(0).normal(size=(80, 3)) * [3.0, 2.0, 1.0]
    expected = np.linalg.svd(near - near.mean(axis=0))[1][:2] ** 2
    far = 1e8 + near
    with pytest.warns(
        MercerWarning, match=r"rounding may change eigenvalues .* Subtract the means of the columns of X"
    ):
        lost = KernelPCA(2, kernel="linear", **options).fit(far)
    assert lost.certificate_.violations["rounding"] > 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        model = KernelPCA(2, kernel="linear", **options).fit(StandardScaler(with_std=False).fit_transform(far))
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-6)
