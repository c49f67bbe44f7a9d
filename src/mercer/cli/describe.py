"""``mercer inspect``: the contents of a model file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from mercer._errors import ModelFileError
from mercer.cli.show import Printer
from mercer.cli.stored import stored_report
from mercer.data.words import printable, shown


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
        If the file was written by a version that did not keep it, or holds another command.
    """
    report, _ = stored_report(path)
    if not report.get("command"):
        raise ModelFileError(
            f"{path} does not say which command made it: it was written by an older version of Mercer. Show what it "
            "has with mercer inspect."
        )
    try:
        words = shlex.split(report["command"])
    except ValueError:
        words = []
    if words[:1] != ["mercer"] or words[1:2] not in (["fit"], ["tune"]):
        raise ModelFileError(
            f"{path} names a command that mercer fit does not write: {shown(report['command'])}. Do not run it; get "
            "the model again from its author."
        )
    # Each word is quoted anew, so that a shell runs no other command that may stand in the file.
    line = " ".join(map(_quoted, words))
    printer = Printer(json=json)
    printer.object({"file": str(path), "command": line, "data_sha256": report.get("data_sha256")})
    if not json:
        print(line)


def _quoted(word: str) -> str:
    r"""A word as a shell reads it; characters that a terminal obeys are escaped.

    >>> print(_quoted("a.csv"), _quoted("my data"), _quoted("a\x1b[2J'b"))
    a.csv 'my data' $'a\x1b[2J\'b'
    """
    if printable(word) == word and not {"\n", "\t"} & set(word):
        return shlex.quote(word)
    escaped = printable(word.replace("\\", "\\\\").replace("'", "\\'"))
    return "$'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"


def _columns(schema: dict[str, Any]) -> dict[str, str]:
    if schema["width"] is not None:
        return {f"0 to {schema['width'] - 1}": "numbered columns of a libsvm file"}
    described = {}
    for name, kind in schema["kinds"].items():
        values = schema["categories"].get(name, [])
        more = ", ..." if len(values) > 8 else ""
        described[name] = kind if kind != "category" else f"category: {', '.join(values[:8])}{more}"
    return described
