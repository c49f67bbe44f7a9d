"""The choice of landmarks: what is refused before any work, samples of many rows, and given rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer
from mercer._errors import DataError, IndefiniteKernelError, MercerWarning, ParameterError
from mercer.data.columns import MixedRows
from mercer.data.strings import Strings
from mercer.kernels import RBF, Constant, Kernel, Linear, NegativeDistance, Sigmoid, Spectrum, product_of
from mercer.landmarks import choose as module
from mercer.landmarks.choose import METHODS, Landmarks, Names, choose

NAMES = Names("KernelRidge")
X = np.random.default_rng(5).normal(size=(300, 3))
WORDS = Strings.of(["abc", "abd", "bcd", "aab", "ddd", "abcd"])
every_method = pytest.mark.parametrize("method", METHODS)


def chosen(
    how: Any, m: Any = 10, rows: Any = X, kernel: Kernel | None = None, seed: int = 0, weight: Any = None
) -> Landmarks:
    random = np.random.RandomState(seed)
    return choose(kernel or RBF(1.0), rows, m, how, random, names=NAMES, sample_weight=weight)


def residual(rows: np.ndarray, landmarks: Any) -> float:
    """The trace of what the landmarks leave of the kernel matrix."""
    between, own = RBF(1.0)(rows, landmarks), RBF(1.0)(landmarks)
    return len(rows) - float(np.einsum("ij,ji->", between, np.linalg.lstsq(own, between.T, rcond=1e-12)[0]))


@every_method
def test_landmarks_are_rows_or_means(method: str) -> None:
    result = chosen(method)
    assert result.rows.shape == (10, 3) and result.rows.dtype == X.dtype
    if method == "kmeans":
        assert result.indices is None
    else:
        assert result.indices is not None
        np.testing.assert_array_equal(X[result.indices], result.rows)
        assert len(set(result.indices.tolist())) == 10
    assert residual(X, result.rows) < 0.75 * residual(X, X[:2])
    again = chosen(method)
    np.testing.assert_array_equal(again.rows, result.rows)
    with mercer.config(n_jobs=2):
        np.testing.assert_array_equal(chosen(method).rows, result.rows)
    assert chosen(method, rows=X.astype(np.float32)).rows.dtype == np.float32


@every_method
def test_more_landmarks_than_rows(method: str) -> None:
    result = chosen(method, 1000, X[:20])
    np.testing.assert_allclose(np.sort(result.rows, axis=0), np.sort(X[:20], axis=0), atol=1e-12)
    weight = np.r_[np.zeros(5), np.ones(15)]
    assert len(chosen(method, 1000, X[:20], weight=weight).rows) == 15


@every_method
def test_rows_of_weight_zero_are_never_chosen_and_heavy_ones_more_often(method: str) -> None:
    weight = np.r_[np.zeros(100), np.ones(200)]
    result = chosen(method, 40, weight=weight)
    if result.indices is None:
        np.testing.assert_array_equal(result.rows, chosen(method, 40, X[100:], weight=np.ones(200)).rows)
        return
    assert result.indices.min() >= 100
    heavy = np.where(np.arange(300) < 30, 1000.0, 1.0)
    counts = [
        int((chosen(method, 20, kernel=RBF(0.1), seed=s, weight=w).indices < 30).sum())
        for w in (heavy, np.ones(300))
        for s in range(3)
    ]
    assert min(counts[:3]) > 2 * max(counts[3:])


@pytest.mark.parametrize("method", ["kmeans", "leverage", "rpcholesky"])
def test_of_many_rows_a_sample_is_looked_at(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MORE", 50)
    seen: list[int] = []
    calls = module.sampling if method == "kmeans" else module._CHOICES
    name = "centres" if method == "kmeans" else method
    original = getattr(calls, name, None) or calls[name]

    def watch(*arguments: Any) -> Any:
        rows = next(a for a in arguments if hasattr(a, "shape"))
        seen.append(rows.shape[0])
        return original(*arguments)

    (monkeypatch.setattr if method == "kmeans" else monkeypatch.setitem)(calls, name, watch)
    few, more = chosen(method, 4), chosen(method, 20)
    assert seen == [58, 90]
    for result in (few, more):
        if result.indices is not None:
            np.testing.assert_array_equal(X[result.indices], result.rows)
    # Rows of weight 0 are not in the sample.
    weight = np.r_[np.zeros(200), np.ones(100)]
    only = chosen(method, 4, weight=weight)
    assert only.indices is None or only.indices.min() >= 200
    # Where the sample does not fit the memory budget, it is smaller.
    seen.clear()
    with mercer.config(memory=module._BYTES[method](90, 20) - 1):
        chosen(method, 20)
    assert seen == [45]


def test_given_rows() -> None:
    result = chosen([[1, 2, 3], [4, 5, 6]], m=77)
    assert result.indices is None and result.rows.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert chosen(X[:4].astype(np.float32)).rows.dtype == np.float64
    sparse = chosen(sp.csr_matrix(X[:4]), rows=sp.csr_matrix(X))
    assert sp.issparse(sparse.rows) and (sparse.rows.toarray() == X[:4]).all()
    words = chosen(["abc", "bb"], rows=WORDS, kernel=Spectrum(2))
    assert isinstance(words.rows, Strings) and list(words.rows) == list(Strings.of(["abc", "bb"]))
    kernel = product_of({"text": Spectrum(1), "hour": RBF(1.0)})
    table = pd.DataFrame({"text": ["ab", "ba", "b"], "hour": [1.0, 2.0, 3.0]})
    mixed = MixedRows.of(table, {0: Strings, 1: None})
    some = chosen(table.iloc[:2], rows=mixed, kernel=kernel)
    assert isinstance(some.rows, MixedRows) and some.rows.shape == (2, 2)
    with pytest.raises(DataError, match="KernelRidge: landmarks has the columns hour, text, but X has text, hour"):
        chosen(table[["hour", "text"]], rows=mixed, kernel=kernel)


@pytest.mark.parametrize("kind", ["array", "sparse", "strings"])
def test_given_rows_that_repeat_others_are_left_out(kind: str) -> None:
    places = [3, 1, 3, 2, 1, 3]
    whole: Any = WORDS if kind == "strings" else sp.csr_matrix(X) if kind == "sparse" else X
    kernel = Spectrum(2) if kind == "strings" else RBF(1.0)
    message = "KernelRidge: landmarks has 3 rows that repeat others. They are left out, and 3 of 6 landmarks remain"
    with pytest.warns(MercerWarning, match=message):
        rows = chosen(whole[places], rows=whole, kernel=kernel).rows
    expected = whole[[3, 1, 2]]
    assert rows == expected if kind == "strings" else abs(rows - expected).max() == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"how": "best"}, ParameterError, "KernelRidge: landmarks must be one of 'uniform'.* or rows of the kind of X"),
        ({"how": None}, ParameterError, "landmarks must be one of .*but is None"),
        ({"how": 5}, ParameterError, "landmarks must be one of .*but is 5"),
        ({"how": "uniform", "m": 0}, ParameterError, "KernelRidge: n_landmarks must be a whole number of at least 1"),
        ({"how": "uniform", "m": 2.5}, ParameterError, "n_landmarks must be a whole number"),
        ({"how": X[:3], "m": 0}, ParameterError, "n_landmarks must be a whole number"),
        ({"how": "uniform", "kernel": Linear() + Sigmoid()}, IndefiniteKernelError, r"KernelRidge needs .* Sigmoid\(1"),
        ({"how": X[:3], "kernel": NegativeDistance()}, IndefiniteKernelError, "positive semi-definite"),
        ({"how": X[:3, :2]}, DataError, "KernelRidge: landmarks has 2 columns, but X has 3. Give rows with"),
        ({"how": [[1.0, np.nan, 2.0]]}, DataError, "KernelRidge: landmarks cannot be used .*contains NaN"),
        ({"how": ["ab", "b"]}, DataError, "KernelRidge: landmarks cannot be used as rows beside those of X"),
        ({"how": X[:3], "rows": WORDS, "kernel": Spectrum(2)}, DataError, "landmarks cannot be used as rows beside"),
        (
            {"how": "kmeans", "rows": WORDS, "kernel": Spectrum(2)},
            DataError,
            'landmarks="kmeans" needs rows of numbers',
        ),
        ({"how": ["ab"], "kernel": Constant(1.0)}, DataError, "holds objects, but X holds rows of numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        chosen(**options)
