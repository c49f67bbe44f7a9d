"""The command line: ``mercer fit``, ``predict``, ``evaluate``, ``inspect``, ``report``, ``samples``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from mercer._errors import MissingDependencyError
from mercer._optional import optional


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 for success, 2 for a user error, 1 for a bug, 130 for Ctrl-C.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after ``mercer``; by default those of the process.
    """
    try:
        for package in ("typer", "rich"):
            optional(package, "the command line")
        # Imported here and by name: the module needs typer, whose absence has just been handled.
        return int(importlib.import_module("mercer.cli.app").run(arguments))
    except MissingDependencyError as error:
        sys.stderr.write(f"mercer: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
