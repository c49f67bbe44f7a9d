"""The command line: ``mercer fit``, ``predict``, ``evaluate``, ``inspect``, ``report``, ``warm-up``, ``samples``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from mercer._errors import MercerError, ParameterError
from mercer._optional import optional


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 for success, 2 for a user error, 1 for a bug, 130 for Ctrl-C.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after ``mercer``; by default those of the process.
    """
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        if "" in given:
            raise ParameterError("an argument is empty, as from a variable that is not set; give it a value.")
        if given == ["warm-up"]:
            # Containers need not have the packages of the command line.
            importlib.import_module("mercer.cli.warm_up").warm_up()
            return 0
        for package in ("typer", "rich"):
            optional(package, "the command line")
        # Imported here and by name: the module needs typer, whose absence has just been handled.
        return int(importlib.import_module("mercer.cli.app").run(arguments))
    except MercerError as error:
        sys.stderr.write(f"mercer: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
