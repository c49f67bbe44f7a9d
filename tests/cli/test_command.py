"""The command that makes a model again."""

from __future__ import annotations

import pytest

from mercer.cli.command import command_of
from mercer.cli.options import FitOptions


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (FitOptions("sample:iris"), "mercer fit sample:iris"),
        (FitOptions("/home/me/a.csv", "y", seed=3, n_jobs=2), "mercer fit a.csv --target y --seed 3"),
        (
            FitOptions("a.csv", "y", drop=["b c"], roles={"t": "text"}),
            "mercer fit a.csv --target y --drop 'b c' --text t",
        ),
        (FitOptions("a.csv", "y", tune=60.0), "mercer fit a.csv --target y --tune 60s"),
        (
            FitOptions(
                "a.csv", "y", tune=90.0, time_option="--budget", kernel="rbf", kernels=["rbf", "linear"], folds=3
            ),
            "mercer tune a.csv --target y --kernel rbf --kernel linear --folds 3 --budget 90s",
        ),
    ],
)
def test_command(options: FitOptions, line: str) -> None:
    assert command_of(options) == line
