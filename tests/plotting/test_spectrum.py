"""Spectra: sizes, signs and the effective dimension of eigenvalues, and orthonormal functions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mercer._errors import IndefiniteKernelError, ParameterError
from mercer.kernels import RBF, Sigmoid
from mercer.plotting import EigenfunctionsDisplay, GramDisplay, SpectrumDisplay
from mercer.spectrum import eigenfunctions

X = np.random.default_rng(0).normal(size=(50, 2))


def test_negative_eigenvalues_are_marked_by_shape() -> None:
    display = SpectrumDisplay.from_matrix(np.diag([4.0, 1.0, 0.0, -2.0]), ridge=1.0).plot()
    assert display.positive_.get_ydata().tolist() == [4.0, 1.0] and display.negative_.get_ydata().tolist() == [2.0]
    assert display.positive_.get_xdata().tolist() == [1, 3] and display.negative_.get_xdata().tolist() == [2]
    assert display.positive_.get_marker() != display.negative_.get_marker()
    assert np.isclose(display.effective_dimension, 4 / 5 + 1 / 2)
    assert display.line_.get_xdata()[0] == display.effective_dimension
    assert display.ax_.get_legend().get_title().get_text() == "1 within rounding of 0 left out"
    assert display.frame()["eigenvalue"].tolist() == [4.0, -2.0, 1.0, 0.0]
    # There is no rank between 1 and 2.
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


def test_a_kernel_on_a_sample_of_rows() -> None:
    display = SpectrumDisplay.from_kernel(RBF(1.0), X, max_rows=20, ridge=0.5).plot()
    assert len(display.eigenvalues) == 20 and np.isclose(display.eigenvalues.sum(), 20.0)
    assert "20 of 50 rows shown" in display.ax_.get_legend().get_title().get_text()
    with pytest.raises(ParameterError, match="ridge must be a number above 0"):
        SpectrumDisplay.from_kernel(RBF(1.0), X, ridge=0.0)


def test_eigenfunctions_are_those_of_the_sample() -> None:
    column = X[:, :1]
    display = EigenfunctionsDisplay.from_kernel(RBF(1.0), column, n_components=3, grid_resolution=40).plot()
    psi = eigenfunctions(RBF(1.0), column, 3)
    for line, values in zip(display.lines_, psi(display.grid[:, None]).T):
        np.testing.assert_allclose(line.get_ydata(), values, atol=1e-10)
    assert len({line.get_linestyle() for line in display.lines_}) == 3
    assert display.rows_.get_xdata().tolist() == column[:, 0].tolist()
    assert display.frame().shape == (40, 4)
    with pytest.raises(IndefiniteKernelError):
        EigenfunctionsDisplay.from_kernel(Sigmoid(1.0), column)


def test_kernels_of_named_columns_take_data_frames() -> None:
    table, kernel = pd.DataFrame(X, columns=["u", "v"]), RBF(1.0).on(["v"])
    np.testing.assert_allclose(GramDisplay.from_kernel(kernel, table, order="given").values, RBF(1.0)(X[:, 1:]))
    display = SpectrumDisplay.from_kernel(kernel, table)
    np.testing.assert_allclose(display.eigenvalues, np.linalg.eigvalsh(RBF(1.0)(X[:, 1:]))[::-1], atol=1e-12)
    named = EigenfunctionsDisplay.from_kernel(kernel, table, feature="v", grid_resolution=5)
    plain = EigenfunctionsDisplay.from_kernel(RBF(1.0), X[:, 1:], grid_resolution=5)
    np.testing.assert_allclose(named.functions, plain.functions, atol=1e-8)
