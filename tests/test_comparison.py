"""Alignment, discrepancy of means and dependence: against naive loops, explicit features and their distributions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer
from mercer import Gram, comparison, kernels
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, NumericalError, ParameterError
from mercer.comparison import hsic, mmd
from mercer.kernels import RBF, Linear, NegativeDistance, alignment

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(11, 3)), RNG.normal(size=(8, 3)) + 0.5
Y = X[:, :2] ** 2 + 0.1 * RNG.normal(size=(11, 2))


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear(), NegativeDistance()], ids=repr)
def test_discrepancy_by_loops(kernel: Any) -> None:
    def values(A: Any, B: Any) -> Any:
        return np.array([[kernel(a[None], b[None])[0, 0] for b in B] for a in A])

    def mean(K: Any, unbiased: bool) -> float:
        return float(np.mean([K[i, j] for i in range(len(K)) for j in range(len(K)) if not (unbiased and i == j)]))

    of_x, of_z, between = values(X, X), values(Z, Z), values(X, Z)
    for unbiased in (True, False):
        expected = mean(of_x, unbiased) + mean(of_z, unbiased) - 2 * float(np.mean(between))
        result = mmd(X, Z, kernel, unbiased=unbiased, n_permutations=0)
        assert result.statistic == pytest.approx(expected, abs=1e-12)
        assert result.p_value is None and not len(result.null)
    if kernel == Linear():
        # The biased estimate is the distance of the means.
        assert result.statistic == pytest.approx(((X.mean(axis=0) - Z.mean(axis=0)) ** 2).sum(), abs=1e-12)


def test_permutations_of_two_samples_are_those_of_the_rows() -> None:
    rows = np.concatenate([X, Z])
    result = mmd(X, Z, RBF(1.0), n_permutations=20, random_state=3)
    rng = np.random.RandomState(3)
    for value in result.null:
        order = rng.permutation(len(rows))
        first, second = np.sort(order[: len(X)]), np.sort(order[len(X) :])
        assert value == pytest.approx(mmd(rows[first], rows[second], RBF(1.0), n_permutations=0).statistic, abs=1e-12)
    assert result.p_value == (1 + (result.null >= result.statistic).sum()) / 21
    again = mmd(sp.csr_matrix(X), Z, RBF(1.0), n_permutations=20, random_state=3)
    np.testing.assert_allclose(again.null, result.null, atol=1e-12)


def _unbiased_dependence(K: np.ndarray, L: np.ndarray) -> float:
    """The mean over all quadruples of different rows of K_ij (L_ij + L_qr - 2 L_iq)."""
    terms = [K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q]) for i, j, q, r in itertools.permutations(range(len(K)), 4)]
    return float(np.mean(terms))


def test_dependence_by_loops() -> None:
    k, kernel_y = RBF(1.0), Linear() + 1.0
    K, L = k(X), kernel_y(Y)
    result = hsic(X, Y, k, kernel_y, n_permutations=0)
    assert result.statistic == pytest.approx(_unbiased_dependence(K, L), abs=1e-12) and result.p_value is None
    H = np.eye(11) - 1 / 11
    biased = hsic(X, Y, k, kernel_y, unbiased=False, n_permutations=15, random_state=1)
    assert biased.statistic == pytest.approx(np.trace(K @ H @ L @ H) / 121, abs=1e-12)
    rng = np.random.RandomState(1)
    for value in biased.null:
        order = rng.permutation(11)
        assert value == pytest.approx(np.trace(K @ H @ L[np.ix_(order, order)] @ H) / 121, abs=1e-12)
    assert biased.p_value == (1 + (biased.null >= biased.statistic).sum()) / 16
    # With linear kernels: the squared norm of the covariance matrix.
    linear = hsic(X, Y, Linear(), unbiased=False, n_permutations=0).statistic
    assert linear == pytest.approx((((X - X.mean(axis=0)).T @ Y / 11) ** 2).sum(), abs=1e-12)


def test_matrices_in_the_place_of_rows() -> None:
    rows = np.concatenate([X, Z])
    for unbiased in (True, False):
        options: dict[str, Any] = {"unbiased": unbiased, "n_permutations": 9, "random_state": 2}
        given, lazy = mmd(RBF(1.0)(rows), 11, "precomputed", **options), mmd(X, Z, RBF(1.0), **options)
        np.testing.assert_allclose([given.statistic, *given.null], [lazy.statistic, *lazy.null], atol=1e-14)
        lazy = hsic(X, Y, RBF(1.0), Linear(), **options)
        for parts in (
            (RBF(1.0)(X), Linear()(Y), "precomputed", None),
            (X, Linear()(Y), RBF(1.0), "precomputed"),
            (RBF(1.0)(X), Y, "precomputed", Linear()),
        ):
            given = hsic(*parts, **options)
            np.testing.assert_allclose([given.statistic, *given.null], [lazy.statistic, *lazy.null], atol=1e-14)


def test_any_kernel_on_any_rows() -> None:
    options: dict[str, Any] = {"n_permutations": 7, "random_state": 2}
    expected = mmd(X[:, :2], Z[:, :2], RBF(1.0), **options)
    table, other = pd.DataFrame(X, columns=["a", "b", "c"]), pd.DataFrame(Z, columns=["a", "b", "c"])
    kernel = RBF(1.0).on(["a", "b"])
    calls = [
        mmd(table, other, kernel, **options),
        mmd(sp.csr_array(X), sp.csr_array(Z), RBF(1.0).on([0, 1]), **options),
        mmd(X, Z, lambda A, B: RBF(1.0)(A[:, :2], B[:, :2]), **options),
    ]
    for result in calls:
        np.testing.assert_allclose([result.statistic, *result.null], [expected.statistic, *expected.null], atol=1e-12)
    paired = hsic(X[:, :2], Y, RBF(1.0), Linear(), **options)
    result = hsic(table, sp.csr_array(Y), kernel, Linear(), **options)
    np.testing.assert_allclose([result.statistic, *result.null], [paired.statistic, *paired.null], atol=1e-12)
    words, texts = ["banana", "ananas", "nab", "bandana"], ["tree", "trees", "street", "reset", "steer"]
    K = kernels.Spectrum(2)(words + texts)
    result, expected = mmd(words, texts, kernels.Spectrum(2), **options), mmd(K, 4, "precomputed", **options)
    assert (result.statistic, result.null.tolist()) == (expected.statistic, expected.null.tolist())
    result, lengths = (
        hsic(texts, [4, 5, 6, 5, 5], kernels.Spectrum(2), RBF(1.0), **options),
        np.array([4.0, 5, 6, 5, 5]),
    )
    expected = hsic(kernels.Spectrum(2)(texts), RBF(1.0)(lengths[:, None]), "precomputed", **options)
    np.testing.assert_allclose([result.statistic, *result.null], [expected.statistic, *expected.null], atol=1e-12)
    turned = hsic(lengths[:, None], texts, RBF(1.0), kernels.Spectrum(2), **options)
    assert turned.statistic == pytest.approx(result.statistic)


def test_several_tiles_and_threads() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(700, 2))
    y = rows[:, 0] ** 2 + rng.normal(size=700)
    for gamma in (None, "scale"):
        one, two = (hsic(rows, y, gamma=gamma, n_permutations=5, random_state=0, n_jobs=jobs) for jobs in (1, 2))
        assert one.statistic == two.statistic and one.null.tolist() == two.null.tolist()
    K, L = (RBF.from_gamma(1 / (part.shape[1] * part.var()))(part) for part in (rows, y[:, None]))
    H = np.eye(700) - 1 / 700
    biased = hsic(rows, y, gamma="scale", unbiased=False, n_permutations=0).statistic
    assert biased == pytest.approx(float(np.vdot(H @ K @ H, L)) / 700**2, rel=1e-9)
    assert alignment(Gram(RBF(1.0), rows), y) == pytest.approx(alignment(RBF(1.0)(rows), y), rel=1e-12)


def test_p_values_are_small_where_there_is_something_and_even_where_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    assert mmd(x, x + 1.5, n_permutations=99, random_state=0).p_value == 0.01
    assert hsic(x, np.cos(2 * x), n_permutations=99, random_state=0).p_value == 0.01
    levels = [
        (
            mmd(a, b, "rbf", n_permutations=19, random_state=i).p_value,
            hsic(a, b, "rbf", n_permutations=19, random_state=i).p_value,
        )
        for i in range(100)
        for a, b in [rng.normal(size=(2, 15, 1))]
    ]
    # At most 1/10 each by construction; 23 or more of 100 has a probability below 1e-4.
    assert ((np.array(levels) <= 0.1).sum(axis=0) < 23).all()
    # Of equal rows every order has the same statistic.
    same = np.ones((6, 2))
    assert mmd(same, same, RBF(1.0), random_state=0).p_value == 1.0
    assert hsic(same, same, RBF(1.0), random_state=0).p_value == 1.0


@pytest.mark.parametrize("unbiased", [True, False])
def test_p_values_are_uniform_where_there_is_nothing(unbiased: bool) -> None:
    rng = np.random.default_rng(7)
    options: dict[str, Any] = {"unbiased": unbiased, "n_permutations": 9}
    results = []
    for i in range(100):
        rows, other = rng.normal(size=(16, 2)), rng.exponential(size=(16, 1))
        results.append(
            (
                mmd(rows[:5], rows[5:], RBF(1.0), random_state=i, **options).p_value,
                hsic(rows, other, RBF(1.0), random_state=i, **options).p_value,
                hsic(RBF(1.0)(rows), other[:, 0], "precomputed", NegativeDistance(), random_state=i, **options).p_value,
            )
        )
    # Of ten values that are drawn alike each place is as likely: 1/10, 2/10, ..., 1, with 10 of 100 each.
    for values in np.array(results).T:
        counts = np.bincount(np.rint(10 * values).astype(int), minlength=11)
        assert counts[0] == 0
        # Chi squared with nine degrees of freedom is above 34 with a probability of 1e-4.
        assert ((counts[1:] - 10) ** 2 / 10).sum() < 34


def _offsets(rng: Any) -> Any:
    return rng.normal(size=(100, 3)) + np.array([0, 10, 20])


def _outlier(rng: Any) -> Any:
    rows = rng.normal(size=(100, 3))
    rows[0] = 1e4
    return rows


@pytest.mark.parametrize("sample", [_offsets, _outlier, lambda rng: rng.standard_t(1, size=(100, 2))])
def test_by_default_power_depends_neither_on_origins_nor_on_outliers(sample: Any) -> None:
    # With the one width of gamma="scale", some p-value of each sample is above 0.05.
    options: dict[str, Any] = {"n_permutations": 99, "random_state": 0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, other = sample(rng), sample(rng)
        middle = np.median(other, axis=0)
        assert mmd(rows, middle + 1.8 * (other - middle), **options).p_value < 0.05
        y = np.abs(rows[:, 0] - np.median(rows[:, 0])) + 0.3 * rng.normal(size=100)
        assert hsic(rows, y, **options).p_value < 0.05


def test_the_statistic_of_several_kernels_is_that_of_the_best_one() -> None:
    rng = np.random.default_rng(2)
    for unbiased in (True, False):
        options: dict[str, Any] = {"unbiased": unbiased, "n_permutations": 39, "random_state": 4}
        for test, pair in ((mmd, (X, Z)), (hsic, (X, Y)), (hsic, (rng.normal(size=(30, 1)), rng.normal(size=30)))):
            result = test(*pair, **options)
            single = test(*pair, *result.kernels, **options)
            assert single.kernels == result.kernels
            assert result.statistic == pytest.approx(single.statistic, rel=1e-12)
            assert result.p_value == (1 + (result.null >= result.statistic).sum()) / 40
            # A permutation counts with the best kernel for it.
            alone = test(*pair, *result.kernels, unbiased=unbiased, n_permutations=0)
            assert alone.statistic == pytest.approx(single.statistic, rel=1e-12)
            assert result.null.mean() > single.null.mean()
    assert len(mmd(X, Z, n_permutations=0).kernels) == 1 and len(hsic(X, Y, n_permutations=0).kernels) == 2
    assert mmd(np.eye(5), 2, "precomputed").kernels == (None,)


def test_by_default_units_and_origins_of_columns_do_not_matter() -> None:
    scale, shift = np.array([1e-3, 1.0, 2e4]), np.array([5.0, -3.0, 1e4])
    options: dict[str, Any] = {"n_permutations": 49, "random_state": 0}
    for test, other in ((mmd, Z), (hsic, X[::-1] ** 2)):
        expected, result = test(X, other, **options), test(X * scale + shift, other * scale + shift, **options)
        assert result.p_value == expected.p_value and result.statistic == pytest.approx(expected.statistic, rel=1e-6)
    sparse = mmd(sp.csr_array(X), sp.csr_array(Z), **options)
    np.testing.assert_allclose(sparse.null, mmd(X, Z, **options).null, rtol=1e-9)
    # Columns that are constant, or nearly, and rows that are all equal.
    counts = np.zeros((40, 2))
    counts[:3, 0] = 1
    assert mmd(counts, counts + np.array([1.0, 0.0]), **options).p_value == 0.02
    assert mmd(counts[3:], counts[3:], **options).p_value == hsic(counts[3:], counts[3:], **options).p_value == 1.0


@pytest.mark.parametrize("unit", [1e-200, 1e200, np.array([1e-200, 1.0, 1e280])], ids=["small", "large", "mixed"])
def test_by_default_extreme_units_change_nothing(unit: Any) -> None:
    options: dict[str, Any] = {"n_permutations": 19, "random_state": 0}
    for test, other in ((mmd, Z), (hsic, X[::-1] ** 2)):
        expected = test(X, other, **options)
        for convert in (np.asarray, sp.csr_array):
            result = test(convert(X * unit), convert(other * unit), **options)
            np.testing.assert_allclose(result.null, expected.null, rtol=1e-9)
            assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)


@pytest.mark.parametrize("unbiased", [True, False])
def test_all_pairs_of_widths_are_those_of_single_tests(unbiased: bool) -> None:
    """The Gaussians of Y are powers of the widest one; each pair is compared with a test of these two kernels."""
    options: dict[str, Any] = {"unbiased": unbiased, "n_permutations": 0}
    of_x, of_y = ([RBF((s * w).tolist()) for s in (1, 0.5, 2, 0.25)] for w in (np.ones(3), np.full(2, 0.3)))
    orders = np.stack([np.arange(11), RNG.permutation(11)])
    L = of_y[2](Y) * (1 - unbiased * np.eye(11))
    values, _ = comparison._dependences([Gram(k, X) for k in of_x], L, 4, orders, unbiased, None)
    for order, column in zip(orders, values.T):
        pairs = itertools.product((of_y[w] for w in (2, 0, 1, 3)), of_x)
        expected = [hsic(X, Y[order], k, kernel_y, **options).statistic for kernel_y, k in pairs]
        np.testing.assert_allclose(column, expected, rtol=1e-10, atol=1e-14)


def _levels(repetitions: int, n: int) -> np.ndarray:
    """How often each test rejects at 5% rows of one distribution."""
    rng = np.random.default_rng(11)
    draws = (lambda shape: rng.normal(size=shape), lambda shape: rng.standard_t(1, size=shape))
    values = []
    for i in range(repetitions):
        draw = draws[i % 2]
        options: dict[str, Any] = {"n_permutations": 39, "random_state": i, "unbiased": i % 3 > 0}
        p = mmd(draw((n, 2)), draw((2 * n, 2)), **options).p_value, hsic(draw((n, 2)), draw((n, 1)), **options).p_value
        values.append(p)
    return (np.array(values) <= 0.05).mean(axis=0)


def test_several_kernels_keep_the_level() -> None:
    assert (_levels(40, 12) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)).all()


@pytest.mark.slow
def test_several_kernels_keep_the_level_in_many_repetitions() -> None:
    assert (np.abs(_levels(600, 25) - 0.05) <= 3 * np.sqrt(0.05 * 0.95 / 600)).all()


def test_alignment_by_its_formula() -> None:
    H = np.eye(11) - 1 / 11
    labels = np.array(["a", "b", "c"])[np.arange(11) % 3]
    columns = (labels[:, None] == np.array(["a", "b", "c"])).astype(float)
    for kernel in (RBF(1.0), Linear(), kernels.Polynomial(2)):
        for y, targets in ((X[:, 0], X[:, :1]), (Y, Y), (labels, columns), (labels.astype(object), columns)):
            A, B = H @ kernel(X) @ H, H @ targets @ targets.T @ H
            expected = np.vdot(A, B) / (np.linalg.norm(A) * np.linalg.norm(B))
            for result in (alignment(kernel, y, X), alignment(kernel(X), y), alignment(Gram(kernel, X), y)):
                assert result == pytest.approx(expected, abs=1e-12)
    single = alignment(RBF(1.0), X[:, 0].astype(object), X.astype(np.float32))
    # The kernel's values in float32 are off by some eps.
    assert single == pytest.approx(alignment(RBF(1.0), X[:, 0], X), rel=1e-5)
    assert alignment(np.outer(X[:, 0], X[:, 0]), 3 * X[:, 0] + 7) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mmd(X, Z[:, :2]), DataError, "X has 3 columns and Z has 2"),
        (lambda: mmd(np.eye(5), 5, "precomputed"), DataError, "rows of the first sample, from 1 to 4, but is 5"),
        (lambda: mmd(np.eye(5), np.eye(5), "precomputed"), DataError, "rows of the first sample"),
        (lambda: mmd(X, 5, "precomputed"), DataError, "precomputed X must be square"),
        (lambda: hsic(X, Y, "precomputed"), DataError, "precomputed X must be square"),
        (lambda: hsic(np.eye(11), Y, "precomputed"), DataError, "precomputed Y must be square"),
        (lambda: mmd(X, Z[:1]), DataError, "needs at least two rows of each sample, but there are 11 and 1"),
        (lambda: mmd(X, np.full((4, 3), np.nan)), DataError, "Z cannot be used.*NaN"),
        (lambda: mmd(X, Z, kernels.Sigmoid()), IndefiniteKernelError, "no feature space"),
        (lambda: mmd(X, Z, "rbff"), ParameterError, "no kernel 'rbff'"),
        (lambda: mmd(X, Z, n_permutations=-1), ParameterError, "n_permutations must be a whole number"),
        (lambda: mmd(X, Z, n_permutations=True), ParameterError, "n_permutations must be a whole number"),
        (lambda: mmd(X, Z, unbiased="no"), ParameterError, "unbiased must be True or False"),
        (lambda: mmd(X, Z, random_state="now"), ParameterError, "random_state must be a whole number"),
        (lambda: mmd(X, Z, n_jobs=0), ParameterError, "n_jobs=0 is not a number of threads"),
        (lambda: hsic(X, Z), DataError, "X has 11 rows and Y has 8"),
        (lambda: hsic(X[:3], Y[:3]), DataError, "needs at least 4 rows, but there are 3"),
        (lambda: hsic(X, ["a"] * 11), DataError, "Y cannot be used"),
        (lambda: alignment(RBF(1.0), X[:, 0]), ParameterError, "needs rows; pass X"),
        (lambda: alignment(np.eye(3), [1, 2, 3], X[:3]), ParameterError, "X applies only to a kernel"),
        (lambda: alignment(np.ones((2, 3)), [1, 2]), DataError, r"square.*\(2, 3\)"),
        (lambda: alignment(Gram(RBF(1.0), X, Z), [1] * 11), DataError, r"square.*\(11, 8\)"),
        (lambda: alignment(np.eye(3), [1, 2]), DataError, "K has 3 rows, but y has the shape"),
        (lambda: alignment(np.eye(1), [1]), DataError, "at least two rows"),
        (lambda: alignment(np.eye(3), [1, 1, 1]), DataError, "the same in every row"),
        (lambda: alignment(np.eye(3), [1, np.nan, 1]), DataError, "y contains NaN"),
        (lambda: alignment(np.eye(2), [["a", "b"], ["c", "d"]]), DataError, "one-dimensional labels"),
        (lambda: alignment(np.eye(3), ["a", None, "b"]), DataError, "without missing values"),
        (lambda: alignment(np.ones((3, 3)), [1, 2, 3]), DataError, "K is constant, so it is zero once centred"),
        (lambda: alignment(np.full((3, 3), np.nan), [1, 2, 3]), DataError, "not finite"),
    ],
)
def test_what_is_refused(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_what_overflows_is_not_called_significant(unbiased: bool) -> None:
    rows = np.concatenate([X, Z])
    for call in (
        lambda: mmd(3e306 * np.sign(rows @ rows.T), 11, "precomputed", unbiased=unbiased),
        lambda: hsic(1e100 * X, 1e100 * Y, "linear", unbiased=unbiased),
        lambda: hsic(1e200 * X @ X.T, 1e200 * Y @ Y.T, "precomputed", unbiased=unbiased),
    ):
        with pytest.raises(NumericalError, match=r"statistic overflows float64.*Scale the columns"):
            call()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_a_kernel_does_not_matter(scale: float) -> None:
    K, options = RBF(1.0)(np.concatenate([X, Z])), {"n_permutations": 39, "random_state": 0}
    expected, result = (mmd(factor * K, 11, "precomputed", **options) for factor in (1.0, scale))
    assert result.p_value == expected.p_value
    np.testing.assert_allclose(result.null / scale, expected.null, rtol=1e-9, atol=1e-15)


def test_a_budget_that_is_too_small() -> None:
    with mercer.config(memory="1KiB"):
        with pytest.raises(MemoryBudgetError, match="500 permutations of 19 rows"):
            mmd(X, Z, "rbf")
        with pytest.raises(MemoryBudgetError, match="kernel matrix of Y"):
            hsic(X, Y, "rbf")
        for call in (mmd, hsic):
            with pytest.raises(MemoryBudgetError):
                call(X, X)


@pytest.mark.parametrize(("length_scale", "tolerance"), [(1.0, 1e-13), (1e3, 1e-10), (1e5, 1e-6)])
@pytest.mark.parametrize("n", [40, 600])
def test_an_alignment_of_a_wide_kernel(length_scale: float, tolerance: float, n: int) -> None:
    # Centring takes the 1 off, so that exp(-t) - 1 in long doubles does as well.
    rows = np.random.default_rng(3).normal(size=(n, 3))
    y = np.sign(rows[:, 0])
    t = ((rows[:, None] - rows[None]).astype(np.longdouble) ** 2).sum(axis=2) / (2 * np.longdouble(length_scale) ** 2)
    K = np.expm1(-t)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    c = y - y.mean()
    expected = float((c @ K @ c) / (np.sqrt((K**2).sum()) * (c @ c)))
    # Entries near 1 are rounded to 1e-16, and what is left of them is of the size of length_scale^-2.
    assert alignment(RBF(length_scale), y, rows) == pytest.approx(expected, rel=tolerance)
    assert alignment(RBF(length_scale)(rows), y) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("scale", [1e-200, 1e-80, 1e80, 1e200])
def test_an_alignment_does_not_depend_on_the_scale(scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    K, y = RBF(1.0)(X), np.sin(X[:, 0])
    expected = alignment(K, y)
    assert alignment(scale * K, y) == pytest.approx(expected, rel=1e-12)
    assert alignment(K, scale * y) == pytest.approx(expected, rel=1e-12)


def test_a_test_is_printed_without_the_values_of_its_permutations():
    result = mmd(np.arange(8.0)[:, None], np.arange(8.0)[:, None] + 3.0, random_state=0)
    assert len(result.null) == 500
    assert repr(result) == f"PermutationTest(statistic={result.statistic!r}, p_value={result.p_value!r})"
