"""Commands in words: the one that makes a model again, and those that are proposed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from mercer.cli.options import FitOptions, TuneOptions

# What changes neither the model nor what is written of it; names of files, threads and memory are the user's.
_PRINTING = {"quiet", "json", "details", "report", "dry_run", "log", "checkpoint"}
_OWN = {"out", "n_jobs", "memory"}


def command_of(options: FitOptions) -> str:
    """Return a command line that makes the same model, as it is typed in the folder of the data.

    >>> command_of(FitOptions("my houses.csv", "price", settings=["C=10"], refit=False))
    "mercer fit 'my houses.csv' --target price --set C=10 --no-refit"
    """
    return _line(options, name_of(options.data), _PRINTING | _OWN)


def command_line(options: FitOptions) -> str:
    """Return the command line of a fit, or of a search, that is proposed to the user.

    >>> command_line(FitOptions("my data.csv", target="y", kernel="linear", drop=["id"]))
    "mercer fit 'my data.csv' --target y --kernel linear --drop id"
    """
    return _line(options, options.data, _PRINTING)


def name_of(data: str) -> str:
    """Return the name of a file without its folder, which is private; that of a sample is unchanged."""
    return data if data.startswith("sample:") else Path(data).name


def _line(options: FitOptions, data: str, aside: set[str]) -> str:
    verb = "tune" if isinstance(options, TuneOptions) else "fit"
    return shlex.join(["mercer", verb, data, *_words(options, aside)])


def _words(options: FitOptions, aside: set[str]) -> Iterator[str]:
    """The options that differ from what is there by default, and always the time of a search."""
    hints, defaults = get_type_hints(type(options), include_extras=True), type(options)("")
    for name in (one.name for one in fields(options) if one.name not in aside | {"data"}):
        value, marks = getattr(options, name), getattr(hints[name], "__metadata__", ())
        if not marks or (value == getattr(defaults, name) and name != "tune") or value is None:
            continue
        names = [part for part in (marks[-1].default, *marks[-1].param_decls) if isinstance(part, str)]
        option = next((part for part in names if part.startswith("--")), f"--{name.replace('_', '-')}")
        if name == "refit":
            # The rows of another table are never learnt from.
            yield from () if options.test else ("--no-refit",)
        elif name == "test":
            yield from (option, name_of(value) if "out" in aside else value)
        elif isinstance(value, bool):
            yield option
        elif isinstance(value, list):
            yield from (word for each in value for word in (option, each))
        elif isinstance(value, tuple):
            yield from (option, *value)
        else:
            yield from (option, f"{value:g}s" if name == "tune" else str(value))
