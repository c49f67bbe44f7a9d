"""Parts of a given matrix are picked when they are asked for."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import mercer
from mercer import SVC, SVR, OneClassSVM, kernels
from mercer._errors import DataError
from mercer.estimators.shared.base import KernelEstimator
from mercer.gram import PrecomputedGram, precomputed
from mercer.gram.precomputed import check_square, worst_asymmetry

RNG = np.random.default_rng(0)
A = RNG.normal(size=(9, 4))
K = A @ A.T
INDICES = {
    "all": None,
    "slice": slice(2, 7),
    "steps": slice(None, None, 3),
    "positions": [4, 4, 0, -1],
    "mask": np.arange(9) % 2 == 0,
    "none": [],
}


def chosen(name):
    index = INDICES[name]
    return np.arange(9)[slice(None) if index is None else np.array(index, dtype=int) if name == "none" else index]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", INDICES)
@pytest.mark.parametrize("columns", INDICES)
def test_parts_are_those_of_the_array(rows, columns, dtype):
    part = PrecomputedGram(K).restrict(INDICES[rows], INDICES[columns]).astype(dtype)
    expected = K[np.ix_(chosen(rows), chosen(columns))].astype(dtype)
    assert part.shape == expected.shape
    assert part.dtype == dtype
    assert part.nbytes == expected.nbytes
    np.testing.assert_array_equal(part.dense(), expected)
    V = RNG.normal(size=(expected.shape[1], 2)).astype(dtype)
    np.testing.assert_allclose(part @ V, expected @ V, atol=64 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(part.matrix, expected)
    if min(expected.shape) > 1:
        again = part.restrict([1, 0], slice(0, 1))
        np.testing.assert_array_equal(again.dense(), expected[[1, 0], :1])


def test_a_part_of_the_same_rows_is_symmetric_and_has_a_diagonal():
    index = np.array([5, 2, 2])
    part = PrecomputedGram(K).restrict(index, index)
    np.testing.assert_array_equal(part.diagonal(), K.diagonal()[index])
    with pytest.raises(DataError, match="diagonal"):
        PrecomputedGram(K).restrict(index, index.copy()).diagonal()


def test_a_part_copies_nothing_before_it_is_asked_for():
    n = 1000
    whole, index = PrecomputedGram(np.eye(n)), RNG.permutation(n)
    tracemalloc.start()
    part = whole.restrict(index, index).astype(np.float32).restrict(index, None)
    assert tracemalloc.get_traced_memory()[1] < n * n
    tracemalloc.stop()
    assert part.dense().sum() == n


def test_a_fit_of_many_classes_does_not_copy_the_matrix():
    digits = load_digits()
    X, y = np.vstack([digits.data, digits.data + RNG.normal(size=digits.data.shape)]), np.tile(digits.target, 2)
    matrix = kernels.RBF.from_gamma(0.001)(X)
    SVC(kernel="precomputed").fit(matrix[:900, :900], y[:900])
    tracemalloc.start()
    model = SVC(kernel="precomputed", n_jobs=1).fit(matrix, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < matrix.nbytes // 2
    assert model.fit_status_ == 0
    other = SVC(kernel=kernels.RBF.from_gamma(0.001)).fit(X, y)
    assert model.certificate_.dual == pytest.approx(other.certificate_.dual, rel=1e-6)
    assert (model.predict(matrix) == other.predict(X)).mean() > 0.999


@pytest.mark.parametrize("size", [3, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_entry_that_is_wrong_is_found_wherever_it_is(size, dtype):
    for i, j in ((0, size - 1), (size - 1, 0), (size // 2, size // 2)):
        bad = np.eye(size, dtype=dtype)
        bad[i, j] = np.inf
        with pytest.raises(DataError, match=rf"inf at \[{i}, {j}\]"):
            check_square(bad)
        if i != j:
            bad[i, j] = 0.5
            with pytest.raises(DataError, match="not symmetric"):
                check_square(bad)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_worst_asymmetry_is_found_among_smaller_ones(dtype):
    n, edges = 300, (0, 31, 32, 255, 256, 299)
    noise = np.random.default_rng(3).uniform(0, 1e-3, (n, n)).astype(dtype)
    for base in (np.eye(n, dtype=dtype), np.eye(n, dtype=dtype) + noise):
        for i, j in [(i, j) for i in edges for j in edges if i != j]:
            bad = base.copy()
            bad[i, j] += 0.5
            for matrix in (bad, np.asfortranarray(bad)):
                gap, row, column = worst_asymmetry(matrix)
                assert (row, column) == (min(i, j), max(i, j))
                assert gap == abs(bad[i, j] - bad[j, i])


@pytest.mark.parametrize("n", [400, 1500])
def test_a_matrix_that_curves_downwards_is_found_from_some_of_its_rows(n):
    x = np.linspace(0, 3, n)[:, None]
    distance = np.abs(x - x.T)
    with pytest.raises(ValueError, match="indefinite"):
        SVC(kernel="precomputed", allow_indefinite=False).fit(distance, x[:, 0] > 1)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("at", [(0, 0), (3, 61), (61, 3)])
def test_every_learner_refuses_a_matrix_with_an_entry_that_is_not_finite(at, wrong):
    K, y = np.eye(62) + 1.0, np.tile([0.0, 1.0], 31)
    K[at] = wrong
    public = [getattr(mercer, name) for name in mercer.__all__]
    learners = [one for one in public if isinstance(one, type) and issubclass(one, KernelEstimator)]
    assert len(learners) > 12
    for learner in learners:
        for allowed in ("warn", True):
            with pytest.raises(DataError, match=r"nan|NaN|inf"):
                learner(kernel="precomputed").set_params(**_silent(learner, allowed)).fit(K, y)


def _silent(learner, allowed):
    return {"allow_indefinite": allowed} if "allow_indefinite" in learner().get_params() else {}


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_values_of_new_rows_have_to_be_finite(wrong):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = SVC(kernel="precomputed").fit(X @ X.T, X[:, 0] > 0)
    bad = X[:5] @ X.T
    bad[2, 7] = wrong
    with pytest.raises(DataError, match=r"X contains (NaN|infinity)"):
        model.predict(bad)


@pytest.mark.parametrize("learner", [OneClassSVM(nu=0.1), SVR()])
def test_a_stored_matrix_is_read_as_it_lies(learner):
    x = np.random.default_rng(0).normal(size=(900, 2))
    K, y = kernels.RBF(1.0)(x), np.sin(x[:, 0])
    learner.set_params(kernel="precomputed").fit(K, y)
    # The copy in float32 would take 3.1 MiB; the part whose definiteness is examined takes 4.
    with mercer.config(memory="4.1MiB"):
        limited = clone(learner).fit(K, y)
    assert limited.certificate_.kkt_violation <= 1e-3
    assert limited.certificate_.peak_bytes < K.nbytes // 2
    rows = clone(learner).set_params(kernel=kernels.RBF(1.0)).fit(x, y)
    assert learner.certificate_.dual == pytest.approx(rows.certificate_.dual, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_seen_in_the_one_pass_over_the_matrix(monkeypatch, dtype):
    X = np.random.default_rng(0).normal(size=(300, 4))
    rounded = (X @ X.T).astype(dtype)
    rounded[1, 0] *= dtype(1 + 4 * np.finfo(dtype).eps)
    rounded[290, 7] *= dtype(1 - 4 * np.finfo(dtype).eps)
    assert worst_asymmetry(rounded)[0] > 0

    def never(*_):
        raise AssertionError("the worst asymmetry is not needed")

    monkeypatch.setattr(precomputed, "widest_gap", never)
    assert check_square(rounded) is rounded


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [None, slice(2, 7), [8, 0, 0, 3]])
@pytest.mark.parametrize("several", [False, True])
def test_products_with_most_columns_read_whole_rows(monkeypatch, dtype, rows, several):
    def picked(*_):
        raise AssertionError("entries are picked one by one")

    monkeypatch.setattr(precomputed, "pick_entries", picked)
    monkeypatch.setattr(precomputed, "_WIDE", 9)
    columns = [7, 0, 2, 2, 5]
    V = RNG.normal(size=(5, 3) if several else 5).astype(dtype)
    part = PrecomputedGram(K.astype(dtype), finite=True).restrict(rows, columns)
    expected = K[np.ix_(np.arange(9)[slice(None) if rows is None else rows], columns)] @ V
    product = part @ V
    assert product.dtype == dtype
    np.testing.assert_allclose(product, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-5)


def test_what_is_not_finite_stays_in_its_columns(monkeypatch):
    monkeypatch.setattr(precomputed, "_WIDE", 9)
    matrix = K.copy()
    matrix[:, 8] = np.nan
    product = PrecomputedGram(matrix, symmetric=False).restrict(None, np.arange(8)[::-1]) @ np.ones(8)
    np.testing.assert_allclose(product, K[:, :8].sum(axis=1))
