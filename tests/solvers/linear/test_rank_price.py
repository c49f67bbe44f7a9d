"""The rank that pays: larger for systems with more steps and for products that take longer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.solvers.linear.rank_price import RankPrice

N, BLOCK = 10_000, 100


def rank_of(shift: float, product: float, fall: Callable[[int], float] = lambda rank: 1e3 / rank**1.5) -> int:
    """Where the factorisation of a matrix with these falls of the trace ends."""
    price = RankPrice(N, np.array([shift]), 1e-8, product)
    return next(rank for rank in range(BLOCK, N + 1, BLOCK) if rank == N or price(rank, fall(rank)))


def test_small_penalties_and_slow_products_take_more_columns() -> None:
    product = 10.0 * N**2
    assert rank_of(1e3, product) < rank_of(1e-1, product) < rank_of(1e-3, product) < N
    assert rank_of(1e-3, product) < rank_of(1e-3, 10 * product)


def test_the_rank_is_close_to_the_cheapest() -> None:
    price = RankPrice(N, np.array([1e-3]), 1e-8, 10.0 * N**2)
    costs = {rank: price._cost(rank, 1e3 / rank**1.5) for rank in range(BLOCK, N + 1, BLOCK)}
    assert costs[rank_of(1e-3, 10.0 * N**2)] <= 1.1 * min(costs.values())


@pytest.mark.parametrize("fall", [0.0, -1e-9])
def test_a_trace_that_no_longer_falls_ends_it(fall: float) -> None:
    assert rank_of(1e-3, 1e9, lambda rank: fall) == 3 * BLOCK


def test_penalties_close_to_zero_do_not_overflow() -> None:
    price = RankPrice(N, np.array([1e-300, 1.0]), 1e-8, 1e9)
    with np.errstate(all="raise"):
        assert not price(10, 1e200)
