"""Learners on series: vowels of several lengths, arrays of three dimensions, and model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelNeighborsClassifier, KernelRidge
from mercer._errors import DataError, IndefiniteKernelError
from mercer.kernels import RBF, DynamicTimeWarping, GlobalAlignment, Signature, SignaturePDE, exp

_rng = np.random.default_rng(0)


def _bumps(n: int, length: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Series with one bump or two, anywhere, in two channels."""
    classes, series = np.arange(n) % 2, []
    for kind in classes:
        t = np.arange(length + _rng.integers(5))
        places = _rng.uniform(6, 12) + 8.0 * np.arange(kind + 1)
        bump = np.exp(-0.5 * (t[:, None] - places) ** 2).sum(axis=1)
        series.append(np.c_[bump, -bump] + 0.05 * _rng.normal(size=(len(t), 2)))
    return series, classes


X, Y = _bumps(40, 28)
NEW, NEW_Y = _bumps(20, 28)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [GlobalAlignment(1.0).normalized(), Signature(3, time=1.0), SignaturePDE(0.3, time=1.0)],
    ids=lambda kernel: type(kernel).__name__,
)
def test_classes_targets_and_model_files(kernel: Any, tmp_path: Path) -> None:
    models = {
        "svc": SVC(C=100.0, kernel=kernel).fit(X, Y),
        "ridge": KernelRidge(kernel=kernel, alpha=1e-2).fit(X, 1.0 * Y),
        "gp": GaussianProcessRegressor(kernel.fixed(), alpha=1e-2).fit(X, 1.0 * Y),
    }
    for name, model in models.items():
        answers = model.predict(NEW)
        # By chance, 14 of 20 are right once in 17 times.
        assert ((answers > 0.5) == NEW_Y).mean() > 0.7
        mercer.save(model, tmp_path / name)
        assert np.array_equal(mercer.load(tmp_path / name).predict(NEW), answers)


def test_warping_is_taken_where_indefinite_kernels_are() -> None:
    with pytest.raises(IndefiniteKernelError, match="DynamicTimeWarping"):
        SVC(kernel=exp(0.5 * DynamicTimeWarping()), allow_indefinite=False).fit(X, Y)
    nearest = KernelNeighborsClassifier(1, kernel=DynamicTimeWarping()).fit(X, Y)
    rows = -DynamicTimeWarping()(NEW, X)
    assert np.array_equal(nearest.predict(NEW), Y[rows.argmin(axis=1)])


def test_arrays_of_three_dimensions_are_lists() -> None:
    cut = np.stack([x[:20] for x in X])
    kernel = GlobalAlignment(1.0).normalized()
    model = SVC(kernel=kernel).fit(cut, Y)
    assert np.array_equal(model.decision_function(cut), SVC(kernel=kernel).fit(list(cut), Y).decision_function(cut))
    # Without a channel's axis, rows of equal length are vectors as well.
    assert SVC(kernel=RBF(1.0)).fit(cut[:, :, 0], Y).score(cut[:, :, 0], Y) > 0.5
    padded = np.full((3, 40, 2), np.nan)
    for row, x in zip(padded, X):
        row[: len(x)] = x
    with pytest.raises(DataError, match="from_padded"):
        model.predict(padded)


def test_the_evidence_finds_sigma() -> None:
    start = GlobalAlignment(0.4).normalized()
    free, fixed = (GaussianProcessRegressor(k, alpha=1e-2).fit(X, 1.0 * Y) for k in (start, start.fixed()))
    assert free.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ + 1.0
    step = free.kernel_.with_theta(free.kernel_.theta + 0.05)
    beside = GaussianProcessRegressor(step.fixed(), alpha=1e-2).fit(X, 1.0 * Y)
    assert beside.log_marginal_likelihood_value_ < free.log_marginal_likelihood_value_
