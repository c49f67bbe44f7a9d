"""Functions as kernels: of two blocks or of two single rows, told apart, and called no more often than needed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as SklearnPCA
from sklearn.kernel_ridge import KernelRidge as SklearnRidge

import estimator_table
import mercer
from mercer import SVC, GaussianProcessClassifier, GaussianProcessRegressor, Gram, KernelPCA, KernelRidge
from mercer._errors import KernelValueError
from mercer.kernels import RBF, Constant, White, as_kernel, from_function
from mercer.validity import check

# A fit of densities searches for neighbours, too, for which each pair is evaluated again.
ALL = [case for case in estimator_table.ALL if case not in estimator_table.OUTLIERS]
# Each pair is a call of Python.
N = 45
X, CLASSES, NUMBERS = estimator_table.X[:N], estimator_table.CLASSES[:N], estimator_table.NUMBERS[:N]
PAIRS = N * (N + 1) // 2
# A few pairs are tried in both orders.
TRIALS = range(1, 17)
MORE = [
    pytest.param(mercer.OnlineKernelRegressor(budget=20, random_state=0), NUMBERS, id="OnlineKernelRegressor, budget"),
    pytest.param(mercer.KernelQuantileRegression([0.2, 0.8]), NUMBERS, id="KernelQuantileRegression, two"),
    pytest.param(SVC(), np.digitize(X[:, 0], [-0.5, 0.5]), id="SVC, three classes"),
    pytest.param(
        GaussianProcessClassifier(multi_class="multinomial"), np.digitize(X[:, 0], [-0.5, 0.5]), id="GPC, three classes"
    ),
    pytest.param(GaussianProcessRegressor(noise=0.1), NUMBERS, id="GaussianProcessRegressor, noise"),
]


class Counted:
    """The Gaussian kernel of two single rows, which counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, x: np.ndarray, z: np.ndarray) -> float:
        assert x.ndim == z.ndim == 1
        with self._lock:
            self.calls += 1
        return float(np.exp(-0.5 * ((x - z) ** 2).sum()))


@pytest.mark.parametrize(("model", "y"), [*ALL, *MORE])
def test_a_function_of_single_rows_is_called_once_for_most_pairs(model: Any, y: np.ndarray) -> None:
    function = Counted()
    fitted = clone(model).set_params(kernel=from_function(function, pairwise=True)).fit(X, y[:N])
    assert function.calls - PAIRS in TRIALS
    plain = clone(model).set_params(kernel=RBF(1.0).fixed()).fit(X, y[:N])
    np.testing.assert_allclose(_answers(fitted), _answers(plain), atol=2e-3)


def _answers(model: Any) -> np.ndarray:
    if isinstance(model, KernelPCA):
        return np.abs(model.transform(X))
    values = model.predict(X)
    return values if values.dtype.kind == "f" else values == values[0]


@pytest.mark.parametrize(("model", "y"), ALL)
def test_inside_other_kernels_and_a_search(model: Any, y: np.ndarray) -> None:
    function = Counted()
    kernel = 2.0 * from_function(function, pairwise=True) + Constant(0.5)
    clone(model).set_params(kernel=kernel).fit(X, y[:N])
    assert function.calls - PAIRS in TRIALS


def test_choices_of_columns_share_their_values_too() -> None:
    function = Counted()
    kernel = 2.0 * from_function(function, pairwise=True).on([0, 2]) + White(0.1)
    GaussianProcessRegressor(kernel).fit(X, NUMBERS)
    assert function.calls - PAIRS in TRIALS


@pytest.mark.parametrize(("model", "y"), ALL)
def test_a_bare_function_of_single_rows(model: Any, y: np.ndarray) -> None:
    # The trial is one call with two blocks; then pairs, the first of them once more.
    calls: list[tuple[int, ...]] = []

    def gaussian(x: np.ndarray, z: np.ndarray) -> float:
        calls.append(np.shape(x))
        return float(np.exp(-0.5 * ((x - z) ** 2).sum()))

    bare = clone(model).set_params(kernel=gaussian).fit(X, y[:N])
    assert [shape for shape in calls if len(shape) == 2] == [(1, 3)]
    assert len(calls) - PAIRS - 2 in TRIALS
    declared = clone(model).set_params(kernel=from_function(gaussian, pairwise=True)).fit(X, y[:N])
    np.testing.assert_array_equal(_answers(bare), _answers(declared))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, z: np.minimum(x, z).sum(),
        lambda x, z: np.dot(x, z),
        lambda x, z: x @ z,
        lambda x, z: np.exp(-abs(x - z).max()),
        lambda x, z: x[0] * z[0] + 1.0,
        lambda x, z: 1.0,
        lambda x, z: sum(a * b for a, b in zip(x, z, strict=True)),
    ],
)
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_what_scikit_learn_calls_pair_by_pair(function: Any, columns: int) -> None:
    rows, new = np.abs(X[:20, :columns]), np.abs(X[20:30, :columns])
    ours = KernelRidge(0.5, kernel=function).fit(rows, NUMBERS[:20])
    theirs = SklearnRidge(0.5, kernel=function).fit(rows, NUMBERS[:20])
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-8, atol=1e-10)
    K = as_kernel(function, X=rows)(rows)
    np.testing.assert_allclose(K, [[function(x, z) for z in rows] for x in rows], rtol=1e-12)


def test_with_keyword_arguments() -> None:
    def power(x: np.ndarray, z: np.ndarray, degree: int) -> float:
        return float(np.dot(x, z) + 1.0) ** degree

    options = {"kernel": power, "kernel_params": {"degree": 2}}
    ours, theirs = KernelRidge(**options).fit(X, NUMBERS), SklearnRidge(**options).fit(X, NUMBERS)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)
    ours, theirs = KernelPCA(2, **options).fit_transform(X), SklearnPCA(2, **options).fit_transform(X)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 3])
def test_functions_of_blocks_stay_what_they_are(columns: int) -> None:
    shapes: list[tuple[int, int]] = []

    def linear(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        shapes.append((A.ndim, B.ndim))
        return A @ B.T

    SVC(kernel=linear).fit(X[:, :columns], CLASSES)
    assert set(shapes) == {(2, 2)} and len(shapes) < 20


def test_sparse_rows_frames_and_words() -> None:
    pd = pytest.importorskip("pandas")

    def product(x: Any, z: Any) -> float:
        return (x @ z.T).sum()

    expected = X @ X.T
    np.testing.assert_allclose(from_function(product, pairwise=True)(sp.csr_matrix(X)), expected)
    np.testing.assert_allclose(from_function(product, pairwise=True)(pd.DataFrame(X)), expected)
    words = ["ab", "abc", "b", "bca", "cab", "d"]
    shared = SVC(kernel=lambda a, b: len(set(a) & set(b)), allow_indefinite=True).fit(words, [0, 1, 0, 1, 1, 0])
    assert shared.predict(words).tolist() == [0, 1, 0, 1, 1, 0]


def test_neither_blocks_nor_rows() -> None:
    with pytest.raises(KernelValueError, match=r"must return one value for every pair.*pairwise=True"):
        SVC(kernel=lambda A, B: np.ones((len(A), 5))).fit(X, CLASSES)
    with pytest.raises(TypeError, match="takes 1 positional"):
        SVC(kernel=lambda A: A).fit(X, CLASSES)


def test_values_that_do_not_fit_the_budget_are_computed_again() -> None:
    function = Counted()
    with mercer.config(memory=f"{8 * N * N * 3}B"):
        k = from_function(function, pairwise=True)
        first = mercer.Gram(k, X)
        before = function.calls
        _ = first @ np.ones(N), first @ np.ones(N)
        assert function.calls - before > PAIRS
    np.testing.assert_allclose(first.dense(), RBF(1.0)(X), atol=1e-12)


def _one_sided(a: Any, b: Any) -> float:
    return float(np.exp(-abs(a[0] - b[0])) * (1.0 if a[0] <= b[0] else 0.6))


def _one_sided_blocks(A: Any, B: Any) -> np.ndarray:
    return np.array([[_one_sided(a, b) for b in B] for a in A])


@pytest.mark.parametrize(
    "kernel", [from_function(_one_sided, pairwise=True), from_function(_one_sided_blocks)], ids=repr
)
@pytest.mark.parametrize(("model", "y"), ALL)
def test_a_function_that_is_not_symmetric_is_an_error(model: Any, y: np.ndarray, kernel: Any) -> None:
    with pytest.raises(KernelValueError, match=r"is not symmetric: it is .* for the rows \d+ and \d+ of X, and"):
        clone(model).set_params(kernel=kernel).fit(X, y[:N])
    mean = from_function(lambda a, b: (_one_sided(a, b) + _one_sided(b, a)) / 2, pairwise=True)
    clone(model).set_params(kernel=mean).fit(X, y[:N])


@pytest.mark.parametrize("kernel", [from_function(_one_sided, pairwise=True), 2.0 * from_function(_one_sided_blocks)])
@pytest.mark.parametrize("limit", [None, 10])
def test_the_report_on_a_function_that_is_not_symmetric(kernel: Any, limit: int | None) -> None:
    for source in ((kernel, X), (Gram(kernel, X),)):
        report = check(*source, full_spectrum_up_to=limit)
        i, j = report.asymmetry_at
        expected = abs(kernel(X[i : i + 1], X[j : j + 1]) - kernel(X[j : j + 1], X[i : i + 1]))[0, 0]
        assert report.verdict.name == "asymmetric"
        assert report.asymmetry == pytest.approx(expected, rel=1e-12) and expected > 0
