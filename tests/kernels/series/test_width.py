"""Widths that kernels on series take from the data of a fit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelRidge
from mercer._errors import ParameterError
from mercer.data.columns import MixedRows
from mercer.data.series import Series
from mercer.kernels import RBF, GlobalAlignment, Kernel, SetOf, SignaturePDE
from mercer.kernels.parse import parse_kernel
from mercer.kernels.series.width import alignment_width, median_distance

_rng = np.random.default_rng(5)
WALKS = [0.7 * _rng.normal(size=(n, 2)).cumsum(axis=0) for n in (5, 9, 12, 12, 20, 7)]
LABELS = np.arange(6) % 2


def _rule(rows: list[np.ndarray]) -> float:
    """As it is written: the median distance of points, times the square root of the median length."""
    return float(np.median(pdist(np.concatenate(rows))) * math.sqrt(np.median([len(row) for row in rows])))


def test_the_rule_of_cuturi() -> None:
    assert alignment_width(Series.of(WALKS)) == pytest.approx(_rule(WALKS), rel=1e-14)
    # Of many points some are taken.
    many = list(_rng.normal(size=(30, 80, 1)).cumsum(axis=1))
    assert alignment_width(Series.of(many)) == pytest.approx(_rule(many), rel=0.05)
    # Of these values 11 of 25 pairs are nearer than 3.
    assert median_distance(Series.of([np.tile([0.0, 1.0, 5.0, 2.0, 20.0], 2000)])) == 3.0


@pytest.mark.parametrize("scale", [1e-320, 1e-150, 1e150])
def test_widths_of_any_scale(scale: float) -> None:
    width = alignment_width(Series.of([[0.0, scale], [scale, 0.0, scale]]))
    assert GlobalAlignment(width).sigma == width > 0
    assert alignment_width(Series.of([[0.0, 0.0], [0.0]])) == math.sqrt(1.5)
    # Most are equal: the distances between the others count.
    assert median_distance(Series.of([[2.0] * 30, [2.0, 7.0]])) == 5.0


@pytest.mark.parametrize(
    ("kernel", "X", "fitted"),
    [
        (GlobalAlignment(), WALKS, GlobalAlignment(_rule(WALKS))),
        (2.0 * GlobalAlignment(triangular=4).normalized(), WALKS, 2.0 * GlobalAlignment(_rule(WALKS), 4).normalized()),
        (GlobalAlignment().bounded(sigma=(0.5, 50.0)), WALKS, GlobalAlignment(_rule(WALKS)).bounded(sigma=(0.5, 50.0))),
        (
            SignaturePDE(0.2, length_scale="median"),
            WALKS,
            SignaturePDE(0.2, length_scale=float(np.median(pdist(np.concatenate(WALKS))))),
        ),
        (
            SetOf(GlobalAlignment().normalized()),
            [WALKS[:2], WALKS[2:]],
            SetOf(GlobalAlignment(_rule(WALKS)).normalized()),
        ),
        (
            GlobalAlignment().on([1]) * RBF(1.0).on([0]),
            MixedRows([np.arange(6.0), Series.of(WALKS)]),
            GlobalAlignment(_rule(WALKS)).on([1]) * RBF(1.0).on([0]),
        ),
    ],
)
def test_every_place_of_a_kernel(kernel: Kernel, X: Any, fitted: Kernel) -> None:
    assert kernel.needs_data and kernel.theta.size == fitted.theta.size - 1
    result = kernel.with_data(X)
    assert not result.needs_data and result.with_data(X) is result
    np.testing.assert_allclose([p.value for p in result.parameters], [p.value for p in fitted.parameters], rtol=1e-14)
    assert [(p.name, p.bounds, p.free) for p in result.parameters] == [
        (p.name, p.bounds, p.free) for p in fitted.parameters
    ]
    assert parse_kernel(repr(kernel)) == kernel and mercer.kernels.GlobalAlignment("median") == GlobalAlignment()


def test_learners_take_it_from_the_rows_of_the_fit(tmp_path: Path) -> None:
    kernel = GlobalAlignment().normalized()
    model = SVC(kernel=kernel).fit(WALKS, LABELS)
    assert model.kernel == kernel and model.kernel_.sigma == pytest.approx(_rule(WALKS), rel=1e-14)
    far = [1e4 * row for row in WALKS]
    np.testing.assert_allclose(
        SVC(kernel=kernel).fit(far, LABELS).decision_function(far), model.decision_function(WALKS), rtol=1e-6, atol=1e-9
    )
    path = tmp_path / "model.mercer"
    mercer.save(model, path)
    again = mercer.load(path)
    assert again.kernel == kernel and again.kernel_ == model.kernel_
    assert np.array_equal(again.decision_function(WALKS), model.decision_function(WALKS))
    # Prediction takes the width of the fit, and so does what looks at a matrix.
    assert KernelRidge(kernel=kernel).fit(WALKS, LABELS).predict(WALKS[:1]).shape == (1,)
    assert mercer.validity.check(kernel, WALKS).n == 6
    gaussian = GaussianProcessRegressor(kernel, alpha=0.1).fit(WALKS, LABELS)
    # With the factor that a kernel on objects gets.
    assert not gaussian.kernel_.needs_data and len(gaussian.kernel_.theta) == 2


def test_a_width_that_is_not_known_is_named() -> None:
    for kernel in (GlobalAlignment(), GlobalAlignment().normalized(), SignaturePDE(length_scale="median")):
        with pytest.raises(ParameterError, match=r"='median' is computed from training data.*kernel\.with_data\(X\)"):
            kernel(WALKS)
    with pytest.raises(ParameterError, match="sigma must be a number or 'median', but is 'mean'"):
        GlobalAlignment("mean")
    with pytest.raises(ParameterError, match=r"scale must be a number, but is 'median'"):
        SignaturePDE("median")  # type: ignore[arg-type]
