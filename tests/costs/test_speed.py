"""Work in seconds of one thread and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mercer.costs.speed import Machine, Speed
from mercer.costs.ways import Way

ONE = Machine(1e-10, 5e-11, 1e-10, 1e-10)
SHARED = {
    "values": Way("", 0, before=1e9),
    "passes": Way("", 0, a_pass=1e8, passes=10, exact=2),
    "operations": Way("", 0, operations=1e10, single=1e10),
    "memory": Way("", 10**9, read=1e10),
}


def seconds(way: Way, gain: float, n: int = 10**6) -> float:
    return Speed(2e-9, 1e-9, replace(ONE, products=gain, algebra=gain, memory=gain)).seconds(way, n)


@pytest.mark.parametrize("way", SHARED.values(), ids=SHARED)
def test_shared_work_is_divided_among_threads(way: Way) -> None:
    begin, one = seconds(Way("", 0), 1.0), seconds(way, 1.0)
    for gain in (2.0, 11.0):
        assert seconds(way, gain) - begin == pytest.approx((one - begin) / gain, rel=0.01)


def test_work_of_one_thread_and_of_one_tile_is_not_divided() -> None:
    alone = Way("", 0, alone=1e10)
    assert seconds(alone, 16.0) == seconds(alone, 1.0) > 1.0
    few, some = ([seconds(SHARED["operations"], gain, n) for gain in (1.0, 16.0)] for n in (400, 2000))
    assert few[0] == few[1]
    assert some[0] / 16 < some[1] < some[0] / 2


def test_a_machine_is_measured_once_for_each_number_of_threads() -> None:
    one, two = Machine.of(1), Machine.of(2)
    assert Machine.of(2) is two
    assert (one.products, one.algebra, one.memory) == (1.0, 1.0, 1.0)
    assert all(1.0 <= gain <= 2.0 for gain in (two.products, two.algebra, two.memory))
    assert min(two.operation, two.operation_in_single, two.written, two.read) > 0
