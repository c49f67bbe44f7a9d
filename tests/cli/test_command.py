"""The command that makes a model again."""

from __future__ import annotations

import dataclasses

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
        (
            FitOptions("a.csv", "y", calibrate=True, parse_numbers=True),
            "mercer fit a.csv --target y --calibrate --parse-numbers",
        ),
        (
            FitOptions("a.csv", "y", approximation="nystroem", certify="exact"),
            "mercer fit a.csv --target y --approximation nystroem --certify exact",
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


# What changes neither the model nor what is written of it: names of files, threads, and how the command prints.
ASIDE = {
    "out",
    "memory",
    "n_jobs",
    "quiet",
    "json",
    "log",
    "checkpoint",
    "dry_run",
    "report",
    "time_option",
    "kernels",
    "details",
}


def test_every_option_that_changes_the_model_is_printed() -> None:
    plain = FitOptions("a.csv", "y")
    others = {"str": "x", "bool": True, "int": 7, "float": 0.5, "list[str]": ["x"], "dict[str, str]": {"x": "text"}}
    others["tuple[str, str]"] = ("time", "x")
    for field in dataclasses.fields(FitOptions):
        if field.name in ASIDE | {"folds"}:
            continue
        kind = str(field.type).split(" | ")[0]
        value = False if field.name == "refit" else others[kind]
        assert command_of(dataclasses.replace(plain, **{field.name: value})) != command_of(plain), field.name
