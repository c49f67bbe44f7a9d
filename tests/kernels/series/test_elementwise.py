"""Kernels on vectors for series of one length."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SVC, GaussianProcessRegressor
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF, Elementwise, Kernel, Linear, Spectrum, product_of

RNG = np.random.default_rng(3)
X, NEW = RNG.normal(size=(12, 5, 2)), RNG.normal(size=(4, 5, 2))


@pytest.mark.parametrize("inner", [RBF(2.0), RBF([0.5] * 10), Linear(), RBF(1.0).on([0, 3]) + 1.0], ids=repr)
def test_it_is_the_kernel_of_the_values_in_a_row(inner: Kernel) -> None:
    kernel, rows, new = Elementwise(inner), X.reshape(12, -1), NEW.reshape(4, -1)
    np.testing.assert_allclose(kernel(list(X)), inner(rows), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(list(NEW), list(X)), inner(new, rows), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(X), kernel(list(X)), rtol=1e-12)


def test_learners_take_it_as_they_take_the_vectors() -> None:
    y, rows = X[:, 0, 0], X.reshape(12, -1)
    model = GaussianProcessRegressor(Elementwise(RBF(1.0)), noise=0.1).fit(list(X), y)
    # A kernel on objects gets a factor, which is learnt.
    learnt = model.kernel_.factor * RBF(model.kernel_.kernel.kernel.length_scale)
    other = GaussianProcessRegressor(learnt, alpha=model.noise_, noise=None, optimizer=None).fit(rows, y)
    assert model.kernel_.kernel.kernel.length_scale != 1.0
    assert model.log_marginal_likelihood_value_ == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-6)
    np.testing.assert_allclose(model.predict(list(NEW)), other.predict(NEW.reshape(4, -1)), rtol=1e-6)


def test_beside_numbers_in_a_table() -> None:
    table = np.empty((12, 2), dtype=object)
    for i in range(12):
        table[i] = [X[i], float(i)]
    kernel = product_of({0: Elementwise(RBF(2.0)), 1: RBF(5.0)})
    expected = RBF(2.0)(X.reshape(12, -1)) * RBF(5.0)(np.arange(12.0)[:, None])
    np.testing.assert_allclose(kernel(table), expected, rtol=1e-12)
    assert SVC(kernel=kernel).fit(table, [0, 1] * 6).score(table, [0, 1] * 6) > 0.5


def test_unequal_lengths_and_other_kernels_are_refused() -> None:
    kernel = Elementwise(RBF(1.0))
    with pytest.raises(DataError, match="row 1 of X is a series of length 3, and the first of length 2"):
        kernel([[1.0, 2.0], [1.0, 2.0, 3.0]])
    with pytest.raises(DataError, match="of one side have 2 values, and those of the other 3"):
        kernel([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    for inner in ("rbf", Spectrum(2), RBF(1.0).on([0]) * Spectrum(2).on([1])):
        with pytest.raises(ParameterError, match=r"Elementwise takes a kernel( on vectors)?, but got"):
            Elementwise(inner)
