"""The command that makes a model again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from mercer.cli.options import FitOptions

# Without --out, --n-jobs and --memory: the same model may have any name, and comes from any number of threads.
_VALUES = ("target", "task", "model", "kernel", "impute", "axes", "rows", "approximation", "landmarks")
_FURTHER = ("encoding", "sheet", "certify", "normalize", "test_size", "test", "seed")
FLAGS = {"calibrate": "--calibrate", "parse_numbers": "--parse-numbers"}
"""Options that are given or not."""
_LISTS = {"settings": "--set", "drop": "--drop"}


def command_of(options: FitOptions) -> str:
    """Return a command line with the same options, as it is typed in the folder of the data.

    >>> command_of(FitOptions("my houses.csv", "price", settings=["C=10"], refit=False))
    "mercer fit 'my houses.csv' --target price --set C=10 --no-refit"
    """
    by_search = options.time_option == "--budget"
    words = ["mercer", "tune" if by_search else "fit", name_of(options.data), *_options(options)]
    if by_search:
        words += [word for kernel in options.kernels[1:] for word in ("--kernel", kernel)]
        words += [] if options.folds == 5 else ["--folds", str(options.folds)]
    if options.tune is not None:
        words += [options.time_option, f"{options.tune:g}s"]
    return shlex.join(words)


def name_of(data: str) -> str:
    """Return the name of a file without its folder, which is private; that of a sample is unchanged."""
    return data if data.startswith("sample:") else Path(data).name


def _options(options: FitOptions) -> Iterator[str]:
    """Those that differ from what is there by default."""
    defaults = FitOptions("")
    for name in _VALUES + _FURTHER:
        value = getattr(options, name)
        if value != getattr(defaults, name):
            yield from (f"--{name.replace('_', '-')}", name_of(value) if name == "test" else str(value))
    for name, option in _LISTS.items():
        for value in getattr(options, name):
            yield from (option, value)
    if options.split is not None:
        yield from ("--split", *options.split)
    for column, role in options.roles.items():
        yield from (f"--{role}", column)
    yield from (option for name, option in FLAGS.items() if getattr(options, name))
    if not options.refit and options.test is None:
        yield "--no-refit"
