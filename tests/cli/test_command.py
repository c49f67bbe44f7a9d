"""The command that makes a model again."""

from __future__ import annotations

import dataclasses
import re
from typing import get_type_hints

import pytest

from mercer.cli.command import command_of
from mercer.cli.options import FitOptions, TuneOptions


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (FitOptions("sample:iris"), "mercer fit sample:iris"),
        (FitOptions("/home/me/a.csv", "y", seed=3, n_jobs=2), "mercer fit a.csv --target y --seed 3"),
        (FitOptions("a.csv", "y", drop=["b c"], text=["t"]), "mercer fit a.csv --target y --drop 'b c' --text t"),
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
            TuneOptions("a.csv", "y", tune=90.0, kernels=["rbf", "linear"], folds=3),
            "mercer tune a.csv --target y --kernel rbf --kernel linear --budget 90s --folds 3",
        ),
    ],
)
def test_command(options: FitOptions, line: str) -> None:
    assert command_of(options) == line


# What changes neither the model nor what is written of it: names of files, threads, and how the command prints.
ASIDE = {"out", "memory", "n_jobs", "quiet", "json", "log", "checkpoint", "dry_run", "report", "details"}


@pytest.mark.parametrize("kind", [FitOptions, TuneOptions])
def test_every_option_that_changes_the_model_is_printed(kind: type[FitOptions]) -> None:
    plain = kind("a.csv", "y")
    others = {"str": "x", "bool": True, "int": 7, "float": 0.5, "list": ["x"], "tuple": ("time", "x")}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name in ASIDE or not hasattr(hint, "__metadata__"):
            continue
        kind_of_value = re.search(r"\w+", str(hint.__origin__).removeprefix("<class '"))
        assert kind_of_value is not None
        value = False if name == "refit" else others[kind_of_value[0]]
        assert command_of(dataclasses.replace(plain, **{name: value})) != command_of(plain), name
