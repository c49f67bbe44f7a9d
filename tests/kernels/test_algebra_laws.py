"""Laws of the algebra of kernels, on kernels that are made up at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import kernels
from mercer.kernels import Kernel, exp
from mercer.kernels.algebra import Constant, Product, Scaled, Sum
from mercer.kernels.parse import parse_kernel

X = np.random.default_rng(3).normal(size=(11, 3)) / 2
# Sixteenths: sums and products of a few are exact, in whatever order they are taken.
NUMBERS = st.integers(2, 48).map(lambda v: v / 16)

LEAVES = st.one_of(
    st.builds(kernels.RBF, NUMBERS),
    st.builds(kernels.RBF, st.lists(NUMBERS, min_size=3, max_size=3)),
    st.builds(kernels.Matern, NUMBERS, nu=st.sampled_from([0.5, 1.5, 2.5, float("inf")])),
    st.builds(kernels.Polynomial, st.integers(1, 3), scale=NUMBERS, offset=st.just(0.0) | NUMBERS),
    st.builds(kernels.Linear),
    st.builds(kernels.Constant, NUMBERS),
    st.builds(kernels.White, NUMBERS),
    st.builds(kernels.Laplacian, NUMBERS),
    st.builds(kernels.Periodic, NUMBERS, period=NUMBERS),
    st.builds(kernels.ArcCosine, st.integers(0, 2)),
    st.builds(lambda k, c: k.on(c), st.builds(kernels.RBF, NUMBERS), st.lists(st.integers(-3, 2), min_size=1)),
)


def _grown(parts: st.SearchStrategy[Kernel]) -> st.SearchStrategy[Kernel]:
    return st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, b: a * b, parts, parts),
        st.builds(lambda c, k: c * k, NUMBERS, parts),
        st.builds(lambda c, k: k + c, NUMBERS, parts),
        st.builds(lambda k, e: k**e, parts, st.integers(1, 3)),
        st.builds(lambda k: k.normalized(), parts),
        st.builds(lambda k: exp(k.normalized()), parts),
        st.builds(lambda k: k.fixed(), parts.filter(lambda k: k.parameters)),
    )


KERNELS = st.recursive(LEAVES, _grown, max_leaves=6)


def _same(a: Any, b: Any) -> None:
    scale = np.abs(b).max()
    assert np.abs(a - b).max() <= 1e-10 * scale


@given(KERNELS)
def test_is_symmetric_and_positive(k: Kernel) -> None:
    K = k(X)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    _same(K, K.T)
    assert k.definiteness == "positive"
    assert eigenvalues[0] >= -1e-8 * eigenvalues[-1]
    # An angle of 0 is known to the square root of the rounding only.
    assert np.abs(k.diagonal(X) - np.diag(K)).max() <= 1e-7 * np.abs(K).max()


@given(KERNELS)
def test_prints_as_an_expression_that_builds_an_equal_kernel(k: Kernel) -> None:
    again = parse_kernel(repr(k))
    assert again == k
    assert hash(again) == hash(k)
    assert repr(again) == repr(k)


@given(KERNELS, KERNELS, KERNELS)
def test_sums_and_products_commute_associate_and_distribute(a: Kernel, b: Kernel, c: Kernel) -> None:
    A, B, C = a(X), b(X), c(X)
    _same((a + b)(X), A + B)
    _same((b + a)(X), A + B)
    _same(((a + b) + c)(X), A + B + C)
    _same((a * b)(X), A * B)
    _same((b * (a * c))(X), A * B * C)
    _same((a * (b + c))(X), A * B + A * C)
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert sum([a, b, c]) == a + b + c


@given(KERNELS, KERNELS, NUMBERS, NUMBERS)
def test_numbers_fold_into_one(a: Kernel, b: Kernel, s: float, t: float) -> None:
    product = s * a * (t * b)
    assert not any(isinstance(term, Scaled) and not term.tuning for term in _terms(product))
    _same(product(X), s * t * a(X) * b(X))
    total = s + a + (t + b)
    numbers = [term for term in _terms(total, Sum) if isinstance(term, Constant) and not term.tuning]
    assert len(numbers) == 1
    _same(total(X), s + t + a(X) + b(X))


def _terms(k: Kernel, kind: type = Product) -> tuple[Any, ...]:
    inside: Any = k.kernel if isinstance(k, Scaled) and kind is Product else k
    return inside.terms if isinstance(inside, kind) else (inside,)


@given(KERNELS, st.data())
def test_gradients_of_composites(k: Kernel, data: st.DataObject) -> None:
    weights = np.cos(np.arange(121.0)).reshape(11, 11)
    theta = k.theta
    gradient = k.pullback(X, None, weights)
    assert gradient.shape == theta.shape
    if len(theta):
        i = data.draw(st.integers(0, len(theta) - 1))
        step = 1e-5 * np.eye(len(theta))[i]
        up, down = (k.with_theta(theta + s)(X) for s in (step, -step))
        scale = np.abs(weights * k(X)).sum()
        assert abs(gradient[i] - (weights * (up - down)).sum() / 2e-5) <= 1e-6 * scale


@given(KERNELS)
def test_theta_and_parameters_go_out_and_in(k: Kernel) -> None:
    again = k.with_theta(k.theta)
    np.testing.assert_allclose(again.theta, k.theta, rtol=1e-12, atol=1e-12)
    assert k.with_params(**k.get_params()) == k
    assert [p.name for p in again.parameters] == [p.name for p in k.parameters]
    assert k.fixed().theta.size == 0 if k.parameters else k.theta.size == 0


@given(KERNELS, KERNELS)
def test_parts_are_replaced_by_name_as_if_they_had_been_typed(a: Kernel, b: Kernel) -> None:
    joined = kernels.RBF(9.0) + a * kernels.Linear()
    first, *_ = dict(joined.children())
    replaced = joined.with_params(**{first: b})
    assert replaced == b + a * kernels.Linear()
    assert parse_kernel(repr(replaced)) == replaced


@pytest.mark.parametrize("k", [kernels.RBF(2.0), kernels.RBF(2.0) + kernels.Linear()])
def test_a_kernel_is_a_key(k: Kernel) -> None:
    assert {k: 1}[parse_kernel(repr(k))] == 1
