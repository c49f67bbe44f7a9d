"""What kernels take as rows, what they refuse, and what they say then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer import kernels as k
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.gram import Gram
from mercer.kernels import Kernel, inputs

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3))
COMPOSITE = 0.5 * k.RBF([1.0, 2.0, 3.0]) + k.Linear() * k.Laplacian() + k.ArcCosine().on([0, 2])


def _read_only(A: np.ndarray) -> np.ndarray:
    A = A.copy()
    A.setflags(write=False)
    return A


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda A: np.repeat(A, 2, axis=0)[::2],
        lambda A: np.hstack([A, A])[:, :3],
        lambda A: A[::-1][::-1],
        _read_only,
        lambda A: A.tolist(),
        lambda A: tuple(map(tuple, A)),
        lambda A: A.astype(object),
        lambda A: A.astype(np.longdouble),
        lambda A: pd.DataFrame(A),
    ],
)
def test_the_form_of_the_rows_does_not_matter(form: Any) -> None:
    for kernel in (COMPOSITE, k.Periodic(), k.Linear().normalized(), k.Hamming(), k.RBF().centered(form(Z))):
        plain = k.RBF().centered(Z) if isinstance(kernel, k.Centered) else kernel
        np.testing.assert_array_equal(kernel(form(X), form(Z)), plain(X, Z))
        np.testing.assert_array_equal(kernel(form(X)), plain(X))
        np.testing.assert_array_equal(kernel.diagonal(form(X)), plain.diagonal(X))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool, np.float16])
def test_other_numbers_are_read_as_float64(dtype: type) -> None:
    A = (np.abs(X) * 3).astype(dtype)
    for kernel in (k.RBF(), k.Linear(), k.HistogramIntersection(), k.Hamming(), k.Laplacian()):
        block = kernel(A, A[:3])
        assert block.dtype == np.float64
        np.testing.assert_array_equal(block, kernel(A.astype(float), A[:3].astype(float)))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [("f4", "f4", "f4"), ("f4", "f8", "f8"), ("f8", "f4", "f8"), ("f4", "i8", "f8"), ("f8", "f8", "f8")],
)
def test_inputs_decide_the_dtype(left: str, right: str, result: str) -> None:
    A, B = X.astype(left), Z.astype(right)
    block = COMPOSITE(A, B)
    assert block.dtype == result
    np.testing.assert_allclose(block, COMPOSITE(A.astype(float), B.astype(float)), rtol=1e-5, atol=1e-5)
    assert COMPOSITE.diagonal(A).dtype == left
    out = np.empty((8, 5))
    assert COMPOSITE.block(A, B, out=out) is out


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 5, 3), (5, 1, 3), (2, 2, 40), (1, 1, 40)])
def test_few_rows_and_many_columns(n: int, m: int, d: int) -> None:
    A, B = RNG.normal(size=(n, d)), RNG.normal(size=(m, d))
    for kernel in (k.RBF(3.0), k.Matern([3.0] * d), k.Linear(), k.Laplacian(), k.Polynomial(2).normalized()):
        block = kernel(A, B)
        assert block.shape == (n, m)
        assert kernel.pullback(A, B, np.ones((n, m))).shape == kernel.theta.shape
        assert kernel(A).shape == (n, n)


def test_codes_are_compared_in_full() -> None:
    codes = np.array([[2.0**24, 0.0], [2.0**24 + 1, 0.0]])
    assert Gram(k.Hamming(), codes, dtype=np.float32).dense().tolist() == [[1.0, 0.5], [0.5, 1.0]]


@pytest.mark.parametrize("form", [np.array, list, "frame"])
def test_codes_above_the_whole_numbers_of_float64_are_compared_in_full(form: Any) -> None:
    large = 2**53
    make = pytest.importorskip("pandas").DataFrame if form == "frame" else form
    X, Z = make([[large, 1], [large + 1, 1], [large + 2, 2]]), make([[1, 1], [large + 1, 5]])
    np.testing.assert_array_equal(k.Hamming()(X), [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(k.Hamming().on([0])(X), np.eye(3))
    np.testing.assert_array_equal(k.Hamming()(X, Z), [[0.5, 0], [0.5, 0.5], [0, 0]])
    np.testing.assert_array_equal(k.Hamming()(Z, X), k.Hamming()(X, Z).T)


def test_columns_of_other_frames_beside_text() -> None:
    class Frame:
        """The interface of polars: names and a conversion, choices by [rows, columns], and no iloc."""

        def __init__(self, columns: dict[str, list[Any]]) -> None:
            self._data, self.columns = columns, list(columns)
            self.shape = len(next(iter(columns.values()))), len(columns)

        def to_numpy(self) -> np.ndarray:
            return pd.DataFrame(self._data).to_numpy()

        def __getitem__(self, index: Any) -> Frame:
            rows, columns = index
            chosen = {self.columns[i]: self._data[self.columns[i]] for i in columns}
            return Frame({name: values[rows] for name, values in chosen.items()})

        def __len__(self) -> int:
            return self.shape[0]

        @property
        def dtypes(self) -> list[np.dtype]:
            return list(pd.DataFrame(self._data).dtypes)

    columns = {"a": [1.0, 2.0, 4.0], "text": ["x", "xy", "z"], "b": [1.0, 0.0, 1.0]}
    frame, table = Frame(columns), pd.DataFrame(columns)
    for kernel in (k.RBF(1.0).on("a"), k.RBF(1.0).on(["b", "a"]), k.Spectrum(1).on("text"), k.Hamming().on([2])):
        np.testing.assert_array_equal(kernel(frame), kernel(table))


def test_a_name_of_two_columns_is_an_error() -> None:
    frame = pytest.importorskip("pandas").DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    with pytest.raises(DataError, match="2 columns are named 'a', at the positions 0, 1; rename them, or use pos"):
        k.Linear().on("a")(frame)
    np.testing.assert_array_equal(k.Linear().on(1)(frame), [[4, 8], [8, 16]])


def test_a_row_is_itself_only_in_one_matrix() -> None:
    kernel = k.White(0.5)
    np.testing.assert_array_equal(kernel(np.ones((3, 1))), 0.5 * np.eye(3))
    assert not kernel(X, X).any()
    gram = Gram(k.White(0.5) + k.RBF(), X)
    np.testing.assert_array_equal(gram.block([2, 5], [5, 2, 0]), gram.dense()[np.ix_([2, 5], [5, 2, 0])])
    np.testing.assert_array_equal((kernel.on([0]) + kernel.warped(np.tanh))(X), np.eye(8))


def test_deep_nesting() -> None:
    kernel: Kernel = k.Linear()
    expected = X @ Z.T
    for i in range(12):
        kernel = k.RBF(1.0 + i) + k.RBF(2.0) * (kernel + 0.5)
        rbf = np.exp(-0.5 * ((X[:, None] - Z) ** 2).sum(-1) / (1.0 + i) ** 2)
        expected = rbf + np.exp(-0.125 * ((X[:, None] - Z) ** 2).sum(-1)) * (expected + 0.5)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)
    assert kernel.pullback(X, Z, expected).shape == kernel.theta.shape


def test_a_function_may_call_kernels_itself() -> None:
    inner = k.RBF() + k.Linear()
    kernel = k.Linear() * k.Matern() + k.from_function(lambda A, B: inner(A, B)) * k.RBF()
    np.testing.assert_allclose(kernel(X, Z), (k.Linear() * k.Matern() + inner * k.RBF())(X, Z), rtol=1e-12)
    np.testing.assert_allclose(Gram(kernel, X) @ X, kernel(X) @ X, rtol=1e-10)


# ---- tables with names


def test_columns_by_name() -> None:
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": ["x"] * 8, "dtype": X[:, 2]})
    assert np.array_equal(k.Linear().on("b")(table), np.outer(X[:, 1], X[:, 1]))
    both = k.RBF().on(["b", "a"])
    np.testing.assert_array_equal(both(table), k.RBF()(X[:, [1, 0]]))
    np.testing.assert_array_equal(both(table[["b", "word", "a"]]), both(table))
    np.testing.assert_array_equal(k.Linear().on("a").on(["b", "a"])(table), np.outer(X[:, 0], X[:, 0]))
    numbers = table[["a", "b"]]
    centred = k.Linear().on("b").centered(numbers)
    np.testing.assert_allclose(centred(numbers[["b", "a"]]).sum(), 0, atol=1e-12)
    assert centred == k.Linear().on("b").centered(numbers)
    gram = Gram(both, table)
    np.testing.assert_array_equal(gram.rows([3, 1]), both(table)[[3, 1]])
    ones = np.ones((8, 8))
    np.testing.assert_allclose(both.pullback(table, None, ones), k.RBF().pullback(X[:, [1, 0]], None, ones))


def test_functions_see_lists_as_arrays() -> None:
    rows = [[1.0, 2.0], [3.0, 4.0]]
    assert k.Linear().scaled_by(lambda A: A[:, 0])(rows).tolist() == [[5.0, 33.0], [33.0, 225.0]]
    assert k.Linear().warped(lambda A: A[:, :1])(tuple(rows)).tolist() == [[1.0, 3.0], [3.0, 9.0]]
    lengths = k.from_function(lambda x, z: float(len(x) * len(z)), pairwise=True)
    assert lengths([[1.0], [1.0, 2.0]]).tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_functions_see_the_table_itself() -> None:
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    scaled = k.Linear().scaled_by(lambda T: T["a"] ** 2)
    np.testing.assert_allclose(scaled(table), (k.Linear().scaled_by(lambda A: A[:, 0] ** 2))(X[:, :2]))
    warped = k.RBF().warped(lambda T: T[["b"]])
    np.testing.assert_array_equal(warped(table), k.RBF()(X[:, [1]]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("c", "there is no column 'c'; the columns are a, b"),
        (2, "the kernel uses column 2, but X has 2 columns"),
        (-3, "the kernel uses column -3, but X has 2 columns"),
    ],
)
def test_columns_that_are_not_there(columns: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        k.Linear().on(columns)(pd.DataFrame({"a": [1.0], "b": [2.0]}))


# ---- sparse rows

SPARSE = [
    k.Linear(),
    k.Polynomial(2),
    k.RBF(1.3),
    k.RBF([1.0, 2.0, 0.5, 1.0]),
    k.Matern([1.0, 2.0, 0.5, 1.0], nu=2.5),
    k.RationalQuadratic(),
    k.Sigmoid(0.3),
    k.ExponentialDot(0.2),
    k.ArcCosine(1),
    k.Tanimoto(),
    k.Linear().normalized(),
    k.RBF().on([0, 2]) + k.White(0.5),
    k.NegativeDistance(),
    0.5 * k.RBF() * k.Linear() + k.exp(0.1 * k.Linear()),
]


@pytest.mark.parametrize("wide", [False, True], ids=["made dense", "kept sparse"])
@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
def test_sparse_rows(kernel: Kernel, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(inputs, "DENSE_ENTRIES", 1)
    A = sp.random(9, 4, density=0.5, random_state=1, format="csr")
    B = sp.random(7, 4, density=0.5, random_state=2, format="csr")
    expected, diagonal = kernel(A.toarray(), B.toarray()), kernel.diagonal(A.toarray())
    weights = np.cos(np.arange(63.0)).reshape(9, 7)
    for form in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix):
        np.testing.assert_allclose(kernel(form(A), form(B)), expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(kernel(form(A), B.toarray()), expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(kernel(A.toarray(), form(B)), expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(kernel(form(A)), kernel(A.toarray()), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(kernel.diagonal(form(A)), diagonal, atol=1e-12)
    gram = Gram(kernel, sp.coo_matrix(A), B)
    np.testing.assert_allclose(gram.block([4, 2], slice(1, 5)), expected[[4, 2], 1:5], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(gram @ B.toarray(), expected @ B.toarray(), rtol=1e-7, atol=1e-7)
    got, slopes = kernel.pullback(A, B, weights), kernel.pullback(A.toarray(), B.toarray(), weights)
    np.testing.assert_allclose(got, slopes, rtol=1e-7, atol=1e-7)
    single = kernel(A.astype(np.float32), B.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-3)


def test_duplicate_entries_of_sparse_rows_are_summed() -> None:
    A = sp.csr_matrix(([1.0, 2.0, 3.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    assert k.Linear()(A)[0, 0] == 18.0


@pytest.mark.parametrize("kernel", [k.Laplacian(), k.ChiSquared(), k.AllSubsets(), k.Hamming(), k.Periodic()], ids=repr)
def test_kernels_that_need_dense_rows_say_so(kernel: Kernel) -> None:
    with pytest.raises(DataError, match=r"needs dense rows; pass X.toarray\(\)"):
        kernel(sp.eye(3, format="csr"))


# ---- what is refused


@pytest.mark.parametrize("call", [lambda kernel, A: kernel(A), lambda kernel, A: kernel(X, A), Gram, Kernel.diagonal])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, np.nan, 2.0]], "X contains NaN in 1 places, first in row 0"),
        (np.where(np.arange(24).reshape(8, 3) == 7, np.inf, X), "X contains infinity in 1 places, first in row 2"),
        ([[np.inf, -np.inf, 0.0]], "X contains infinity in 2 places"),
        (sp.csr_matrix([[0.0, np.nan, 1.0]]), "X contains NaN in 1 places"),
        (np.empty((0, 3)), r"X is empty: its shape is \(0, 3\)"),
        (np.empty((3, 0)), r"X is empty: its shape is \(3, 0\)"),
        ([], "X is empty: it has no rows"),
        (np.ones(3), r"must have two dimensions \(rows, columns\), but has shape \(3,\); use X.reshape\(-1, 1\)"),
        (np.ones((2, 3, 4)), r"must have two dimensions .* shape \(2, 3, 4\)"),
        (np.ones((2, 3)) + 1j, "X holds complex numbers"),
        (sp.csr_matrix(np.ones((2, 3)) + 1j), "X holds complex numbers"),
        (np.full((2, 3), np.datetime64("2020-01-01")), r"X holds dates or times \(datetime64"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "X holds dates or times"),
        (np.ma.masked_greater(np.ones((2, 3)), 0.5), "X has 6 masked entries; fill them in"),
        ([["a", "b", "c"]], "must be a table of numbers, but is not: .*Encode text and categories"),
        ("text", "must be a table of numbers"),
        ([[1, 2], [3]], "must be a table of numbers"),
        ([[None, 1.0, 2.0]], "(must be a table of numbers|contains NaN)"),
        (5, "X must be a table, or a sequence of rows, but is 5"),
        (np.float64(5), "X must be a table, or a sequence of rows"),
    ],
)
def test_rows_that_are_refused(rows: Any, message: str, call: Any) -> None:
    with pytest.raises(DataError, match=message):
        call(k.RBF(), rows)


@pytest.mark.parametrize(
    ("evaluate", "error", "message"),
    [
        (lambda: k.RBF()(X, X[:, :2]), DataError, "the same number of columns, but have 3 and 2"),
        (lambda: k.Laplacian()(X, X[:, :2]), DataError, "the same number of columns"),
        (lambda: k.RBF([1.0, 2.0])(X), DataError, "the kernel has 2 length scales, but X has 3 columns"),
        (lambda: k.Laplacian([1.0, 2.0])(X), DataError, "the kernel has 2 length scales, but X has 3 columns"),
        (lambda: k.Linear().on("a")(X), DataError, "uses the column 'a' by name, but X has no column names"),
        (lambda: k.ChiSquared()(X), DataError, "ChiSquared is defined for values of at least 0, but X has -"),
        (lambda: k.ChiSquared()(abs(X), X), DataError, r"first in row \d+, column \d\); scale the columns"),
        (lambda: k.HistogramIntersection()(X), DataError, "HistogramIntersection is defined for values of at least 0"),
        (lambda: k.Sigmoid(-1.0).normalized()(X), DataError, "< 0 in row .*only positive semi-definite kernels can"),
        (lambda: k.RBF()(1e200 * X), DataError, "the distances overflow float64: row 0 is too far"),
        (
            lambda: k.RBF().block(X, out=np.empty((3, 3))),
            DataError,
            r"shape \(3, 3\), but the block has shape \(8, 8\)",
        ),
        (lambda: k.RBF().block(X, out=np.empty((8, 8), int)), ParameterError, "float32 or float64, not in int64"),
        (lambda: k.RBF().pullback(X, None, np.ones(8)), DataError, r"dK must have the shape of the block, \(8, 8\)"),
        (lambda: k.RBF().warped(lambda A: A[:2])(X), DataError, "returned 2 rows for 8"),
        (lambda: k.RBF().scaled_by(lambda A: A)(X), DataError, r"8 finite numbers, one a row, .* shape \(8, 3\)"),
        (lambda: k.RBF().scaled_by(lambda A: A[:, 0] / 0)(X), DataError, "returned NaN or an infinity"),
        (lambda: k.RBF().centered(X)(X[:, :2]), DataError, "the same number of columns"),
        (lambda: k.RBF().centered([1.0, 2.0]), DataError, r"reference rows of centered\(\) must have two dimensions"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_evaluations_that_are_refused(evaluate: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda A, B: np.ones(3),
            r"called on (\d+) and \1 rows and returned an array of shape \(3,\); .* pairwise=True",
        ),
        (lambda A, B: None, "returned NoneType .* it must return an array of real numbers"),
        (lambda A, B: A @ B.T + 1j, "complex128"),
        (lambda A, B: [["a"] * len(B)] * len(A), "it must return an array of real numbers"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "returned nan; scale the columns"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "returned -inf"),
    ],
)
def test_functions_that_return_something_else(function: Any, message: str) -> None:
    kernel = k.from_function(function)
    total = kernel + k.RBF()
    for evaluate in (lambda: kernel(X), lambda: Gram(kernel, X), lambda: kernel.diagonal(X), lambda: total(X)):
        with pytest.raises(KernelValueError, match=message):
            evaluate()


@pytest.mark.parametrize("value", [None, "a", [1.0, 2.0], np.ones(2)])
def test_pair_functions_that_return_something_else(value: Any) -> None:
    with pytest.raises(KernelValueError, match=r"called on a pair of rows and returned .* it must return one number"):
        k.from_function(lambda x, z: value, pairwise=True)(X)


def test_a_nan_in_a_late_tile_is_found() -> None:
    def function(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.where((A[:, :1] > 598) & (B.T[:1] > 598), np.nan, 1.0)

    rows = np.arange(600.0)[:, None]
    for evaluate in (lambda: k.from_function(function)(rows), lambda: Gram(k.from_function(function), rows) @ rows):
        with pytest.raises(KernelValueError, match="returned nan"):
            evaluate()


def test_functions_may_return_integers_lists_and_sparse_blocks() -> None:
    counts = k.from_function(lambda A, B: [[1] * len(B)] * len(A))
    np.testing.assert_array_equal(counts(X), np.ones((8, 8)))
    products = k.from_function(lambda A, B: A @ B.T)
    np.testing.assert_allclose(products(sp.csr_matrix(X)), X @ X.T)


def test_words_are_rows_for_a_function() -> None:
    kernel = k.from_function(lambda x, z: float(len(set(x) & set(z))), pairwise=True)
    words = ["gram", "mercer", "ram"]
    assert kernel(words).tolist() == [[4, 2, 3], [2, 4, 2], [3, 2, 3]]
    assert kernel(np.array(words)).shape == (3, 3)
    assert kernel.normalized()(words)[0, 0] == pytest.approx(1.0)
    assert Gram(kernel, words).block([2], [0])[0, 0] == 3.0


def test_what_would_not_fit_is_refused_before_it_is_tried() -> None:
    message = r"the 200 x 200 kernel matrix in float64 would take 312.5 KiB"
    with mercer.config(memory="100 kB"), pytest.raises(MemoryBudgetError, match=message):
        k.RBF()(np.zeros((200, 1)))
    with mercer.config(memory="100 kB"):
        assert k.RBF()(np.zeros((100, 1))).shape == (100, 100)
        assert k.RBF().block(np.zeros((200, 1)), out=np.empty((200, 200))).shape == (200, 200)


def test_a_factor_does_not_hide_that_a_kernel_chooses_columns() -> None:
    table = k.Spectrum(2).on([0])
    for vectors in (2.0 * k.RBF(1.0).on([1]), k.RBF(1.0).on([1]) * k.Linear().on([2]), k.RBF(1.0).on([1]).normalized()):
        assert (table + vectors).kind_of_rows() == (3.0 * table + vectors).kind_of_rows() == "table"
    for vectors in (2.0 * k.RBF(1.0), k.RBF(1.0).on([1]) + k.Linear()):
        with pytest.raises(ParameterError, match="no row suits both"):
            (table + vectors).kind_of_rows()
