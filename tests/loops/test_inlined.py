"""Loops that other loops call: one copy for the callers, another one for Python."""

import numpy as np

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
