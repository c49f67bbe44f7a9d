"""Loops that other loops call: one copy for the callers, another one for Python."""

import numpy as np
import pytest

from mercer.loops._jit import jit, jit_in_order, vector_jit


def _sum(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k]
    return total


def _caller_of(inner):
    def twice(x):
        return inner(x[::1]) + inner(x)

    return jit_in_order(twice)


def test_callers_have_the_same_bits_whatever_was_compiled_before():
    x = np.random.default_rng(0).normal(size=1001)
    for decorator in (jit, jit_in_order, vector_jit):
        inner = decorator(_sum)
        first = _caller_of(inner)(x)
        # The caller compiled a copy of its own alone.
        assert not inner.overloads
        assert abs(inner(x) - x.sum()) < 1e-10
        assert len(inner.overloads) == 1
        assert _caller_of(inner)(x) == first
        other = decorator(_sum)
        other(x)
        assert _caller_of(other)(x) == first


def test_sums_in_order_stay_in_order_within_a_caller_that_reorders():
    x = np.random.default_rng(1).normal(size=1001)
    inner = jit_in_order(_sum)

    def once(x):
        return inner(x)

    assert jit(once)(x) == np.cumsum(x)[-1]


def _rest(x):
    return x[1:]


def test_loops_share_arrays_with_their_callers_and_new_ones_are_freed():
    x, inner = np.arange(5.0), jit(_rest)

    def total_of_rest(x):
        return inner(x).sum()

    def double_the_rest(x):
        # An expression makes an array without a name that says so.
        return inner(x) * 2.0

    assert jit(total_of_rest)(x) == 10.0
    np.testing.assert_array_equal(jit(double_the_rest)(x), [2.0, 4.0, 6.0, 8.0])
    np.testing.assert_array_equal(inner(x), x[1:])


def test_a_loop_that_returns_views_beside_other_values_is_an_error():
    def rest_and_size(x):
        return x[1:], x.shape[0]

    with pytest.raises(TypeError, match="rest_and_size returns arrays that it did not make"):
        jit(rest_and_size)(np.arange(5.0))
