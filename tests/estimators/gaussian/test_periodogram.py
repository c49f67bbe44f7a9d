"""Where the search for periods starts, and what it reaches from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mercer import GaussianProcessRegressor
from mercer.estimators.gaussian.periodogram import peak_periods, period_starts
from mercer.kernels import RBF, ExpSineSquared, Periodic

RNG = np.random.default_rng(0)
TIMES = np.sort(RNG.uniform(0, 20, 100))[:, None]
NOISE = 0.1 * RNG.normal(size=100)


def waves(period: float) -> np.ndarray:
    """Two harmonics."""
    phase = 2 * np.pi * TIMES[:, 0] / period
    return np.sin(phase) + 0.3 * np.sin(2 * phase)


@pytest.mark.parametrize("period", [0.5, 2.0, 17.0])
@pytest.mark.parametrize("kind", [Periodic, ExpSineSquared])
@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_landmarks": 40}], ids=["exact", "landmarks"])
def test_the_period_is_learnt_from_any_start(period: float, kind: Any, options: dict[str, Any]) -> None:
    y = waves(1.7) + NOISE
    model = GaussianProcessRegressor(1.0 * kind(1.0, period=period), noise=0.1, **options).fit(TIMES, y)
    assert model.kernel_.kernel.period == pytest.approx(1.7, rel=1e-2)
    # From the start that was given, it ends at -109.
    assert model.log_marginal_likelihood_value_ > 50


def test_several_periods_columns_targets_and_trends() -> None:
    trend = 0.05 * (TIMES[:, 0] - 10) ** 2
    y = waves(1.7) + 0.8 * waves(4.3) + trend + NOISE
    assert peak_periods(TIMES, y)[:2] == pytest.approx([1.7, 4.3], rel=0.02)
    table = pd.DataFrame({"other": RNG.normal(size=100), "time": TIMES[:, 0]})
    kernel = Periodic(1.0, period=0.5).on(["time"]) + Periodic(1.0, period=0.6).on(["time"]) + RBF(1.0).on(["time"])
    bound = GaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(table, y).kernel_
    free = [p for p in bound.parameters if p.free]
    (start,) = period_starts(bound, table.to_numpy(), np.stack([y, 2 * y], axis=1), free)
    named = dict(zip([p.name for p in free], np.exp(start), strict=True))
    assert [value for name, value in named.items() if name.endswith("period")] == pytest.approx([1.7, 4.3], rel=0.02)
    assert all(value == pytest.approx(1.0) for name, value in named.items() if "period" not in name)


def test_without_free_periods_or_rows_there_is_no_further_start() -> None:
    y = waves(1.7)
    for kernel in (None, RBF(1.0), Periodic(1.0, period=2.0).fixed("period")):
        free = () if kernel is None else [p for p in kernel.parameters if p.free]
        assert period_starts(kernel, TIMES, y, free) == []
    for few in range(1, 8):
        X = np.arange(float(few))[:, None]
        assert all(1.999 * (few - 1) / few <= period <= 0.501 * (few - 1) for period in peak_periods(X, np.sin(X)))
    assert peak_periods(np.ones((9, 1)), y[:9]) == []
    model = GaussianProcessRegressor(Periodic().fixed("period"), noise=0.1, n_restarts_optimizer=0).fit(TIMES, y)
    assert len(model.search_.trials) == 1
