"""``mercer inspect``: the contents of a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mercer._errors import ModelFileError
from mercer.cli.show import Printer
from mercer.cli.stored import stored_report
from mercer.data.words import printable


def inspect(path: Path, json: bool) -> None:
    """Show the kernel, parameters, columns, scores and certificate of a model without loading it."""
    report, schema = stored_report(path)
    report = {**report, "file": str(path), "file_bytes": path.stat().st_size}
    Printer(json=json).inspected(report, _columns(schema))


def command(path: Path, json: bool) -> None:
    """Print the command line that makes a model again.

    Raises
    ------
    ModelFileError
        If the file was written by a version that did not keep it.
    """
    report, _ = stored_report(path)
    if not report.get("command"):
        raise ModelFileError(
            f"{path} does not say which command made it: it was written by an older version of Mercer. Show what it "
            "has with mercer inspect."
        )
    printer = Printer(json=json)
    printer.object({"file": str(path), "command": report["command"], "data_sha256": report.get("data_sha256")})
    if not json:
        line = report["command"]
        # Another program, such as a shell, gets it unchanged.
        print(printable(line) if sys.stdout.isatty() else line)


def _columns(schema: dict[str, Any]) -> dict[str, str]:
    if schema["width"] is not None:
        return {f"0 to {schema['width'] - 1}": "numbered columns of a libsvm file"}
    described = {}
    for name, kind in schema["kinds"].items():
        values = schema["categories"].get(name, [])
        more = ", ..." if len(values) > 8 else ""
        described[name] = kind if kind != "category" else f"category: {', '.join(values[:8])}{more}"
    return described
