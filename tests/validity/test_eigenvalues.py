"""Large matrices, by products alone: the ends of the spectrum and a trace, against the full spectrum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from mercer import config
from mercer._errors import MemoryBudgetError
from mercer.kernels import RBF, Linear, NegativeDistance, Sigmoid, White
from mercer.validity import Verdict, check
from mercer.validity.eigenvalues import ends
from spectra import planted, verify_witness

RNG = np.random.default_rng(0)
MANY = RNG.standard_normal((300, 3))
BY_LANCZOS = 64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lanczos_agrees_with_the_full_spectrum_on_definite_kernels(dtype):
    kernel = RBF(1.0) + White(0.1)
    rows = MANY.astype(dtype)
    values = np.linalg.eigvalsh(kernel(MANY))
    report = check(kernel, rows, full_spectrum_up_to=BY_LANCZOS)
    assert report.method == "Lanczos"
    assert report.verdict is Verdict.definite
    assert report.smallest == pytest.approx(values[0], rel=1e-2)
    assert report.largest == pytest.approx(values[-1], rel=1e-5)
    assert report.condition_number == pytest.approx(values[-1] / values[0], rel=1e-2)
    expected = (values / (values + 1)).sum()
    assert abs(report.effective_dimension - expected) < 2 * report.effective_dimension_error
    assert 0 < report.effective_dimension_error < 0.05 * expected
    assert report.rank is None
    assert "not computed" in str(report) and "evidence, not a proof" in str(report)


def test_the_effective_dimension_of_a_low_rank_matrix_is_exact_by_lanczos_too():
    report = check(Linear(), MANY, full_spectrum_up_to=BY_LANCZOS, ridge=10.0)
    values = np.linalg.svd(MANY, compute_uv=False) ** 2
    assert report.verdict is Verdict.semidefinite
    assert report.effective_dimension == pytest.approx((values / (values + 10.0)).sum(), rel=1e-8)
    assert report.condition_number == np.inf


@pytest.mark.parametrize("kernel", [Sigmoid(1.0, -1.0), NegativeDistance(1.0)], ids=repr)
def test_lanczos_finds_witnesses(kernel):
    full, lazy = check(kernel, MANY), check(kernel, MANY, full_spectrum_up_to=BY_LANCZOS)
    assert lazy.verdict is full.verdict
    assert lazy.smallest == pytest.approx(full.smallest, rel=1e-6)
    assert lazy.largest == pytest.approx(full.largest, rel=1e-3)
    verify_witness(kernel(MANY), lazy)
    assert lazy.conditional_smallest >= full.conditional_smallest - 1e-9
    assert lazy.conditional_smallest == pytest.approx(full.conditional_smallest, abs=1e-3 * abs(full.smallest))
    assert lazy.effective_dimension is None and lazy.condition_number is None


def test_lanczos_measures_conditional_positivity_off_the_constants():
    basis = np.linalg.svd(np.ones((1, 200)))[2][1:]
    K = (basis.T * np.linspace(1.0, 2.0, 199)) @ basis - 5.0 / 200
    report = check((K + K.T) / 2, full_spectrum_up_to=BY_LANCZOS)
    assert report.verdict is Verdict.conditional
    assert report.smallest == pytest.approx(-5.0, rel=1e-6)
    assert report.conditional_smallest == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("negative", [-1.0, -1e-3, -20.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lanczos_finds_one_planted_negative_eigenvalue(negative, dtype):
    values = np.r_[negative, np.geomspace(0.5, 10.0, 199)]
    K = planted(values).astype(dtype)
    report = check(K, full_spectrum_up_to=BY_LANCZOS)
    assert report.smallest == pytest.approx(negative, rel=1e-3)
    assert report.largest == pytest.approx(10.0, rel=1e-3)
    verify_witness(K.astype(np.float64), report)


def test_lanczos_on_an_asymmetric_array_looks_at_its_symmetric_part():
    K = planted(np.linspace(1.0, 5.0, 150))
    K[3, 100] += 1.0
    report = check(K, full_spectrum_up_to=BY_LANCZOS)
    assert report.verdict is Verdict.asymmetric
    assert report.smallest == pytest.approx(np.linalg.eigvalsh((K + K.T) / 2)[0], rel=1e-3)


SPECTRA = {
    "identity": np.ones(200),
    "near the identity": 1 + 0.01 * RNG.standard_normal(200),
    "even": np.linspace(0.0, 1.0, 200),
    "decaying": np.exp(-np.arange(200) / 5.0),
    "zero": np.zeros(200),
    "one large": np.r_[1e6, RNG.random(199)],
    "all negative": -np.linspace(0.5, 1.0, 200),
    "both signs": np.linspace(-1.0, 1.0, 200),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_lanczos_ends_well_on_every_kind_of_spectrum(name):
    values = SPECTRA[name]
    report = check(planted(values), full_spectrum_up_to=BY_LANCZOS)
    scale = np.abs(values).max()
    assert report.method == "Lanczos"
    assert report.smallest == pytest.approx(values.min(), abs=1e-6 * scale)
    assert report.largest == pytest.approx(values.max(), abs=1e-6 * scale)
    assert report.valid == (values.min() >= 0)


def test_lanczos_gives_the_same_report_twice():
    one, two = (check(RBF(0.3), MANY, full_spectrum_up_to=BY_LANCZOS) for _ in range(2))
    assert str(one) == str(two)


@pytest.mark.parametrize("offset", [0.0, -0.5, -2.0])
def test_one_space_finds_both_ends_of_clustered_and_of_indefinite_spectra(offset):
    """Within 128 products, also where the eigenvalues crowd at the lower end, or all of them are negative."""
    rng = np.random.default_rng(3)
    turns = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    for values in (np.linspace(0.0, 1.0, 300) ** 3, np.repeat([0.0, 1.0], 150), 0.9 ** np.arange(300)):
        values = values + offset
        K, products = (turns * values) @ turns.T, [0]

        def multiply(v, K=K, products=products):
            products[0] += 1
            return K @ v

        spectrum, c = ends(LinearOperator(K.shape, matvec=multiply, dtype=np.float64), rng)
        scale = np.abs(values).max()
        assert products[0] <= 128
        assert abs(spectrum.largest - values.max()) <= 1e-6 * scale
        assert -1e-12 * scale <= spectrum.smallest - values.min() <= 1e-4 * scale
        assert c @ K @ c == pytest.approx(spectrum.smallest, abs=1e-12 * scale)
        np.testing.assert_allclose(np.linalg.norm(K @ c - spectrum.smallest * c), spectrum.residual, atol=1e-12)
        assert np.abs(values - spectrum.smallest).min() <= spectrum.residual + 1e-12


def test_the_space_for_the_ends_is_smaller_where_the_memory_budget_is():
    diagonal, products = np.linspace(1.0, 2.0, 5000), [0]

    def multiply(v):
        products[0] += 1
        return diagonal * v.ravel()

    operator = LinearOperator((5000, 5000), matvec=multiply, dtype=np.float64)
    with config(memory=16 * 5000 * 60):
        ends(operator, np.random.default_rng(0))
    assert products[0] <= 60
    with config(memory=16 * 5000), pytest.raises(MemoryBudgetError, match="vectors of 5000 numbers"):
        ends(operator, np.random.default_rng(0))
