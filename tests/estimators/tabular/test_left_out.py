"""Quantiles of errors: Student's for a few rows, those of the errors for many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from mercer.estimators.tabular.left_out import error_quantiles, student_quantiles

LEVELS = np.array([0.01, 0.05, 0.5, 0.95, 0.99])


@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_the_interval_of_a_mean_has_its_coverage(n: int) -> None:
    expected = t.ppf(LEVELS, n - 1) * np.sqrt(n / (n - 1))
    np.testing.assert_allclose(student_quantiles(n, LEVELS), expected, atol=1e-9)


def test_many_rows_have_gaussian_tails_and_one_has_those_of_two() -> None:
    np.testing.assert_allclose(student_quantiles(10**6, LEVELS), norm.ppf(LEVELS), atol=1e-4)
    np.testing.assert_allclose(student_quantiles(1, LEVELS), t.ppf(LEVELS, 1), atol=1e-9)


def test_small_errors_make_no_tail_narrower() -> None:
    assert (np.abs(error_quantiles(np.zeros(3), LEVELS)) >= np.abs(student_quantiles(3, LEVELS)) - 1e-12)[
        [0, 1, 3]
    ].all()
    errors = np.linspace(-4, 4, 99)
    np.testing.assert_allclose(error_quantiles(errors, np.array([0.25, 0.5, 0.75])), [-2.0, 0.0, 2.0], atol=0.05)
