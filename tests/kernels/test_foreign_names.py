"""Kernels made by the names and the formulas of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mercer import kernels as k
from mercer._errors import KernelSyntaxError, ParameterError, UnknownParameterError

X, Z = np.random.default_rng(0).normal(size=(5, 2)), np.random.default_rng(1).normal(size=(4, 2))
SQUARES = (X[:, None] - Z) ** 2


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: k.RBF(gamma=0.5), "RBF.from_gamma(0.5)"),
        (lambda: k.RBF(sigma=3.0), "RBF(3.0)"),
        (lambda: k.RBF(variance=4.0), "RBF.from_variance(4.0)"),
        (lambda: k.RBF(lengthscale=3.0), "RBF(length_scale=3.0)"),
        (lambda: k.Polynomial(3, coef0=1), "Polynomial(3, offset=1)"),
        (lambda: k.Polynomial(2, gamma=0.5, coef0=1), "Polynomial(2, scale=0.5, offset=1)"),
        (lambda: k.Sigmoid(gamma=0.1), "Sigmoid(scale=0.1)"),
        (lambda: k.Laplacian(gamma=0.25), "Laplacian(4.0)"),
        (lambda: k.Matern(length=2.0, nu=2.5), "Matern(length_scale=2.0, nu=2.5)"),
        (lambda: k.Periodic(periodicity=2.0), "Periodic(period=2.0)"),
        (lambda: k.White(noise_level=0.1), "White(variance=0.1)"),
        (lambda: k.Constant(constant_value=2.0), "Constant(value=2.0)"),
    ],
)
def test_unknown_names_are_answered_with_the_right_call(make: Callable[[], Any], call: str) -> None:
    with pytest.raises(UnknownParameterError) as caught:
        make()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ParameterError)
    assert f"{call}." in str(caught.value)
    kernel = k.parse_kernel(call)
    assert kernel(np.abs(X)).shape == (5, 5)


def test_what_nothing_stands_for_and_too_many_arguments() -> None:
    with pytest.raises(UnknownParameterError, match=r"no parameter wings; it has degree, scale, offset\."):
        k.Polynomial(wings=2)
    with pytest.raises(TypeError, match="positional arguments"):
        k.RBF(1.0, 2.0, 3.0)  # type: ignore[call-arg]
    with pytest.raises(KernelSyntaxError, match=r"column 7: RBF has no parameter gamma; .*RBF\.from_gamma\(0\.5\)"):
        k.parse_kernel("2.0 * RBF(gamma=0.5)")


def test_formulas_of_other_books() -> None:
    whole = SQUARES.sum(axis=-1)
    np.testing.assert_allclose(k.RBF.from_gamma(0.7)(X, Z), np.exp(-0.7 * whole), rtol=1e-12)
    np.testing.assert_allclose(k.RBF.from_variance(0.7)(X, Z), np.exp(-whole / 1.4), rtol=1e-12)
    np.testing.assert_allclose(k.RBF.from_width(0.7)(X, Z), np.exp(-whole / 0.49), rtol=1e-12)
    for scales in ([0.7, 2.0], (0.7, 2.0), np.array([0.7, 2.0])):
        weights = np.array([0.7, 2.0])
        np.testing.assert_allclose(k.RBF.from_gamma(scales)(X, Z), np.exp(-SQUARES @ weights), rtol=1e-12)
        np.testing.assert_allclose(k.RBF.from_variance(scales)(X, Z), np.exp(-SQUARES @ (0.5 / weights)), rtol=1e-12)
        np.testing.assert_allclose(k.RBF.from_width(scales)(X, Z), np.exp(-SQUARES @ weights**-2), rtol=1e-12)
    for make in (k.RBF.from_gamma, k.RBF.from_variance, k.RBF.from_width):
        for wrong in (0.0, -1.0, np.inf, True, "scale", [1.0, 0.0], [[1.0]]):
            with pytest.raises(ParameterError, match=r"must be (a finite number|finite numbers) above 0.*, but is"):
                make(wrong)


def test_division_by_a_number() -> None:
    np.testing.assert_allclose((k.RBF(1.0) / 4)(X, Z), k.RBF(1.0)(X, Z) / 4)
    assert k.RBF(1.0) / np.float64(2.0) == 0.5 * k.RBF(1.0)
    for divide in (lambda: k.RBF() / k.Linear(), lambda: k.RBF() / 0, lambda: k.RBF() / -2.0, lambda: 1 / k.RBF()):
        with pytest.raises(ParameterError, match=r"quotient|above 0|cannot be a divisor"):
            divide()
    with pytest.raises(TypeError):
        k.RBF() / "2"
