"""The parts of a row sum to its decision value, for every kernel whose values are sums over parts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from kernel_table import EXAMPLES
from mercer import KernelRidge
from mercer import kernels as k
from mercer.explain import contributions
from mercer.kernels import Kernel, Linear, Spectrum
from mercer.kernels.algebra import Exp, Power, Product
from mercer.kernels.features import FeatureKernel

# Kernels whose values are sums over parts, beside those that count features.
_SUMS = (
    k.Linear,
    k.Polynomial,
    k.AllSubsets,
    k.Hamming,
    k.HistogramIntersection,
    k.AdditiveChiSquared,
    k.Mismatch,
    k.GappyKmers,
    k.WeightedDegree,
    k.SubsetTree,
    k.PartialTree,
    k.SetOf,
    k.SpatialPyramid,
    k.ConvolutionalPatches,
)


def fitted(kernel: Kernel, X: Any) -> KernelRidge:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelRidge(1.0, kernel=kernel, allow_indefinite=True).fit(X, np.arange(len(X)) % 3 - 0.5)


def is_sum(kernel: Any) -> bool:
    """Whether a kernel is declared to be a sum over parts, without asking the code that splits it."""
    if isinstance(kernel, (Exp, Power, Product)):
        return False
    children = [child for _, child in kernel.children()]
    if isinstance(kernel, (FeatureKernel, *_SUMS)):
        return True
    return bool(children) and all(is_sum(child) for child in children)


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES, ids=lambda value: repr(value)[:60] if value else None)
def test_values_and_intercept_sum_to_the_prediction(kernel: Kernel, data: tuple[Any, Any]) -> None:
    X, Z = data
    model = fitted(kernel, X)
    predicted = model.predict(Z)
    for number in range(min(len(Z), 2)):
        found = contributions(model, Z[number])
        scale = np.abs(found.values).sum() + abs(found.decision)
        assert found.decision == pytest.approx(predicted[number], rel=1e-9, abs=1e-12)
        if found.method == "exact":
            assert abs(found.sum - predicted[number]) <= 1e-10 * scale
        else:
            assert not is_sum(kernel)
        assert len(found.frame()) == len(found.parts) == len(found.values)
        assert (found.values != 0).all()
        assert repr(found).startswith(f"decision value {found.decision:.6g}")


def test_most_kernels_of_objects_are_sums() -> None:
    """So that the test above does not pass because nothing is a sum."""
    assert sum(is_sum(kernel) for kernel, _ in EXAMPLES) > 45
    assert is_sum(2.0 * Spectrum(2).normalized() + Linear().on([0])) and not is_sum(Spectrum(2) * Spectrum(3))


@pytest.mark.parametrize(("kernel", "data"), EXAMPLES[::7], ids=lambda value: repr(value)[:60] if value else None)
def test_rows_of_the_fit_sum_to_the_prediction(kernel: Kernel, data: tuple[Any, Any]) -> None:
    X, Z = data
    model = fitted(kernel, X)
    found = contributions(model, Z[0], by="rows")
    scale = np.abs(found.values).sum() + abs(found.decision)
    assert found.method == "exact" and abs(found.sum - model.predict(Z[:1])[0]) <= 1e-10 * scale
    assert {part.kind for part in found.parts} <= {"training row"}
