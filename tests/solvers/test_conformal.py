"""Ends of intervals by sorting, and with counts as with repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.solvers.conformal import jackknife_plus, least_rows, lower_ends, tail_rank

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n", [9, 20, 101])
def test_ends_are_those_of_sorted_numbers(coverage: float, n: int) -> None:
    centres, radii = RNG.normal(size=(4, n)), RNG.exponential(size=(4, n))
    lower, upper = jackknife_plus(centres.copy(), radii, coverage)
    rank = int(np.floor(round((1 - coverage) * (n + 1), 9)))
    if rank == 0:
        assert np.isneginf(lower).all()
        assert np.isposinf(upper).all()
        return
    ends = np.sort(centres - radii, axis=1)[:, rank - 1], np.sort(centres + radii, axis=1)[:, -rank]
    np.testing.assert_array_equal(lower, np.minimum(*ends))
    np.testing.assert_array_equal(upper, np.maximum(*ends))


def test_counts_are_repetitions() -> None:
    values, counts = RNG.normal(size=(5, 12)), RNG.integers(1, 5, 12)
    repeated = np.repeat(values, counts, axis=1)
    for coverage in (0.5, 0.8, 0.9):
        np.testing.assert_array_equal(
            lower_ends(values.copy(), coverage, counts.astype(float)), lower_ends(repeated.copy(), coverage)
        )


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_least_number_of_rows_has_bounded_intervals_and_one_less_has_not(coverage: float) -> None:
    assert tail_rank(coverage, least_rows(coverage)) == 1
    assert tail_rank(coverage, least_rows(coverage) - 1) == 0
