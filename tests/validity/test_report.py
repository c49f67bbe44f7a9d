"""The verdict on a Gram matrix, against spectra that are known because they were planted or computed by NumPy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF as SklearnRBF

from mercer import validity
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.engine.settings import config
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Constant, Linear, NegativeDistance, Sigmoid, White, from_function
from mercer.validity import Verdict, check, nearest
from spectra import planted, verify_witness

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
MANY = RNG.standard_normal((300, 3))
BY_LANCZOS = 64


# ---- verdicts


@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(0.1) + Linear(), White(0.5)], ids=repr)
def test_positive_definite_kernels(kernel):
    report = check(kernel, X)
    values = np.linalg.eigvalsh(kernel(X))
    assert report.verdict is Verdict.definite
    assert report.valid and report.symmetric and report.conditionally_positive
    assert report.witness is None and report.conditional_witness is None
    assert report.smallest == pytest.approx(values[0], abs=1e-12)
    assert report.largest == pytest.approx(values[-1])
    assert report.condition_number == pytest.approx(values[-1] / values[0], rel=1e-6)
    assert report.rank == 40
    assert report.declared == "positive"


def test_a_singular_kernel_is_semidefinite_with_the_rank_of_its_feature_map():
    report = check(Linear() + Constant(1.0), X)
    assert report.verdict is Verdict.semidefinite
    assert report.valid
    assert report.rank == 4
    assert report.condition_number == np.inf


def test_a_sigmoid_kernel_is_refuted_by_a_witness():
    kernel = Sigmoid(1.0, -1.0)
    report = check(kernel, X)
    assert report.verdict is Verdict.indefinite
    assert not report.valid and not report.conditionally_positive
    verify_witness(kernel(X), report)
    assert report.witness_value == pytest.approx(np.linalg.eigvalsh(kernel(X))[0])
    c = report.conditional_witness
    assert c.sum() == pytest.approx(0.0, abs=1e-12)
    assert c @ kernel(X) @ c == pytest.approx(report.conditional_smallest)
    assert report.conditional_smallest < -report.tolerance
    assert report.notes == ()


def test_the_negative_distance_is_conditionally_positive():
    kernel = NegativeDistance(1.0)
    report = check(kernel, X)
    assert report.verdict is Verdict.conditional
    assert report.conditionally_positive and not report.valid
    assert report.conditional_witness is None
    verify_witness(kernel(X), report)
    P = np.eye(40) - 1 / 40
    assert report.conditional_smallest == pytest.approx(np.linalg.eigvalsh(P @ kernel(X) @ P)[1:].min(), rel=1e-6)
    assert check(kernel.centered(X), X).valid


def test_conditional_positivity_is_decided_on_the_complement_of_constants():
    """The least value over c that sum to 0, against a basis of those c made by hand."""
    K = planted([-3.0, -1.0, 0.5, 2.0, 4.0], seed=3)
    basis = np.linalg.svd(np.ones((1, 5)))[2][1:]
    report = check(K)
    assert report.conditional_smallest == pytest.approx(np.linalg.eigvalsh(basis @ K @ basis.T)[0])
    shifted = K - 100.0
    assert check(shifted).conditional_smallest == pytest.approx(report.conditional_smallest)


def test_a_kernel_that_declares_too_much_is_told_so():
    report = check(from_function(lambda A, B: -(A @ B.T)), X)
    assert report.verdict is Verdict.indefinite
    assert report.notes == ("the kernel declares itself 'positive', but these rows refute it.",)
    modest = check(from_function(lambda A, B: A @ B.T, definiteness="indefinite"), X)
    assert modest.valid
    assert modest.notes == ("these rows do not refute that the kernel is positive; others may.",)


@pytest.mark.parametrize("limit", [3000, BY_LANCZOS])
def test_an_asymmetric_function_is_found_though_gram_matrices_are_mirrored(limit):
    # Whole tiles are what is mirrored, so the rows that show it are more than a tile apart.
    rows = RNG.standard_normal((600, 3))
    rows[0], rows[-1] = [9.0, 0.0, 0.0], [0.0, 9.0, 0.0]
    skew = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    report = check(from_function(lambda A, B: A @ (np.eye(3) + skew) @ B.T), rows, full_spectrum_up_to=limit)
    assert report.verdict is Verdict.asymmetric
    assert not report.symmetric and not report.valid
    i, j = report.asymmetry_at
    assert report.asymmetry == pytest.approx(2 * abs(rows[i] @ skew @ rows[j]))
    if limit == 3000:
        assert report.asymmetry == pytest.approx(2 * np.abs(rows @ skew @ rows.T).max())


def test_the_worst_asymmetry_of_a_matrix_is_named():
    K = np.eye(5)
    K[3, 1], K[1, 3], K[0, 2] = 0.5, 0.25, 0.125
    report = check(K)
    assert report.verdict is Verdict.asymmetric
    assert report.asymmetry == 0.25
    assert sorted(report.asymmetry_at) == [1, 3]
    assert report.smallest == pytest.approx(np.linalg.eigvalsh((K + K.T) / 2)[0])
    large = np.eye(600)
    large[550, 3] = 0.5
    assert sorted(check(large, full_spectrum_up_to=100).asymmetry_at) == [3, 550]


def test_rounding_is_no_asymmetry():
    K = RBF(1.0)(X)
    K[0, 1] = np.nextafter(K[0, 1], 2)
    report = check(K)
    assert 0 < report.asymmetry < 1e-15
    assert report.symmetric and report.valid


# ---- numbers, against NumPy


eigenvalues = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(values=eigenvalues, seed=st.integers(0, 5))
def test_any_planted_spectrum_is_found(values, seed):
    values = np.array(values)
    K = planted(values, seed)
    report = check(K, ridge=0.5)
    scale = np.abs(values).max()
    assert report.smallest == pytest.approx(values.min(), abs=1e-12 * max(scale, 1))
    assert report.largest == pytest.approx(values.max(), abs=1e-12 * max(scale, 1))
    positive = np.maximum(values, 0)
    assert report.effective_dimension == pytest.approx((positive / (positive + 0.5)).sum(), abs=1e-9)
    margin = 10 * report.tolerance
    if values.min() < -margin:
        verify_witness(K, report)
        assert report.verdict in (Verdict.indefinite, Verdict.conditional)
    elif values.min() > margin:
        assert report.verdict is Verdict.definite
        rounding = 1e-9 + 2 * report.tolerance / values.min()
        assert report.condition_number == pytest.approx(values.max() / values.min(), rel=rounding)
    sizes = np.abs(values)
    if not ((sizes > report.tolerance / 10) & (sizes < margin)).any():
        assert report.rank == (sizes > report.tolerance).sum()


def test_the_tolerance_follows_the_precision_of_the_matrix():
    K = planted([1.0, 2.0, 3.0, -1e-6])
    assert check(K).verdict is not Verdict.semidefinite
    report = check(K.astype(np.float32))
    assert report.verdict is Verdict.semidefinite
    assert report.tolerance == pytest.approx(4 * np.finfo(np.float32).eps * report.largest)
    assert "float32" in report.tolerance_reason
    assert check(K, tolerance=1e-3).verdict is Verdict.semidefinite
    assert check(K, tolerance=1e-3).tolerance_reason == "as given"
    assert check(RBF(1.0), X.astype(np.float32)).dtype == "float32"


def test_the_same_answer_from_every_form_of_input():
    kernel = RBF(0.5)
    K = kernel(X)
    expected = np.linalg.eigvalsh(K)[0]
    forms = [
        (kernel, X),
        (SklearnRBF(0.5), X),
        (lambda A, B: kernel(A, B), X),
        (Gram(kernel, X), None),
        (K, None),
        (PrecomputedGram(K), None),
        (K.tolist(), None),
    ]
    for source, rows in forms:
        assert check(source, rows).smallest == pytest.approx(expected, abs=1e-13)
    assert check("rbf", X).valid
    assert check(np.eye(3, dtype=int)).verdict is Verdict.definite


def test_the_smallest_matrices():
    assert check([[2.0]]).verdict is Verdict.definite
    assert check([[0.0]]).verdict is Verdict.semidefinite
    assert check(np.zeros((4, 4))).rank == 0
    report = check([[-1.0]])
    assert report.verdict is Verdict.conditional
    assert report.witness_value == -1.0
    assert check(White(1.0), [[1.0], [1.0]]).smallest == 1.0


# ---- bad input


BAD = [
    ((np.ones((2, 3)),), DataError, r"must be square.*\(2, 3\)"),
    ((Gram(RBF(), X, X[:3]),), DataError, r"must be square.*\(40, 3\)"),
    ((np.ones(3),), DataError, r"two dimensions.*\(3,\)"),
    ((np.empty((0, 0)),), DataError, "is empty"),
    ((np.array([[1.0, np.nan], [0.0, 1.0]]),), KernelValueError, "nan in row 0, column 1"),
    ((np.array([[1.0, 0.0], [np.inf, 1.0]]),), KernelValueError, "inf in row 1, column 0"),
    ((np.eye(2) * 1j,), DataError, "complex128"),
    ((np.array([["a"]]),), DataError, "must hold real numbers"),
    ((sp.eye(3).tocsr(),), DataError, r"sparse; pass it as an array: K\.toarray\(\)"),
    ((RBF(),), DataError, r"pass X as well: check\(RBF\(1\.0\), X\)"),
    (("rbf",), DataError, "pass X as well"),
    ((np.eye(3), X), DataError, "leave X out"),
    ((RBF(), np.empty((0, 2))), DataError, "is empty"),
    ((RBF(), [[np.nan]]), DataError, "NaN"),
    ((from_function(lambda A, B: np.full((len(A), len(B)), np.nan)), X), KernelValueError, "nan"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_input_is_refused_with_words(arguments, error, message):
    with pytest.raises(error, match=message):
        check(*arguments)


@pytest.mark.parametrize("name", ["ridge", "tolerance"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_numbers_that_must_be_positive(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be a number above 0"):
        check(np.eye(2), **{name: value})


def test_what_would_not_fit_the_memory_budget_is_refused():
    with config(memory="1MB"):
        with pytest.raises(MemoryBudgetError, match="eigenvalues of a 300 x 300 matrix"):
            check(RBF(), MANY, full_spectrum_up_to=300)
        assert check(RBF(0.1), MANY, full_spectrum_up_to=BY_LANCZOS).valid
        # Without a limit, what does not fit is not tried.
        assert check(RBF(0.1), MANY).method == "Lanczos"
    assert check(RBF(0.1), MANY).method == "full spectrum"


@pytest.mark.parametrize(
    ("n", "most", "whole"),
    [(64, 1, True), (65, 64, False), (3500, None, True), (8000, None, True), (8001, None, False), (9000, 9000, True)],
)
def test_all_eigenvalues_are_computed_where_that_is_quicker(n, most, whole):
    with config(memory="8GB"):
        assert validity._takes_all(n, most) is whole


def test_refusals_of_what_is_made_whole():
    with config(memory="1MB"), pytest.raises(MemoryBudgetError, match="eigenvectors of a 300 x 300 matrix"):
        nearest(np.eye(300))


def test_a_lazy_kernel_that_overflows_is_refused():
    kernel = from_function(lambda A, B: np.where(A @ B.T > 9, np.inf, A @ B.T))
    with pytest.raises(KernelValueError):
        check(kernel, MANY, full_spectrum_up_to=BY_LANCZOS)


# ---- the report


def test_the_report_reads_as_text():
    text = str(check(Sigmoid(1.0, -1.0), X))
    for part in ("40 x 40, float64, by full spectrum", "indefinite:", "c'Kc = -", "lambda = 1", "declares  indefinite"):
        assert part in text
    assert "witness" not in str(check(np.eye(3)))
    assert "at [" in str(check([[1.0, 2.0], [0.0, 1.0]]))


def test_the_report_is_a_value():
    report = check(np.eye(2))
    assert report.symmetric is True and check([[1.0, 2.0], [0.0, 1.0]]).symmetric is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.rank = 7
    assert {f.name for f in dataclasses.fields(report)} <= set(vars(report))
    assert validity.check is check
