"""The variance of all entries: the same of an array and of CSR, wherever the entries lie."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.data.column_statistics import variance_of_entries
from mercer.estimators.shared.weights import weighted_scale
from mercer.kernels.convert import rate_of_scale

X = np.random.default_rng(0).normal(size=(60, 4))


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_sparse_and_dense_agree_to_rounding_however_far_from_zero(shift, kind):
    rows = X + shift
    expected = np.var(rows)
    # A mean of 240 entries is off by a rounding of each, whose square goes into the variance.
    rounding = 1e-13 * expected + (rows.size * np.finfo(float).eps * abs(shift)) ** 2
    assert abs(variance_of_entries(kind(rows)) - expected) <= rounding
    tolerance = 1e-12 + rounding / expected
    assert rate_of_scale(kind(rows)) == pytest.approx(rate_of_scale(rows), rel=tolerance)
    weight = np.arange(60.0)
    assert weighted_scale(kind(rows), weight) == pytest.approx(weighted_scale(rows, weight), rel=tolerance)


def test_zeros_that_are_not_stored_count():
    rows = np.where(X > 0.7, X + 3.0, 0.0)
    assert variance_of_entries(sp.csr_array(rows)) == pytest.approx(np.var(rows), rel=1e-13)
    assert variance_of_entries(sp.csr_array((5, 3))) == 0.0


def test_entries_that_are_stored_in_parts_are_added_up():
    twice = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert variance_of_entries(twice) == np.var([[3.0, 0.0], [0.0, 5.0]])
    assert twice.nnz == 3


def test_learners_take_the_same_width_for_both():
    rows, y = X + 1e9, np.where(X[:, 0] > 0, 1, -1)
    dense, sparse = (mercer.SVC().fit(form, y).kernel_.length_scale for form in (rows, sp.csr_matrix(rows)))
    assert sparse == pytest.approx(dense, rel=1e-10)
