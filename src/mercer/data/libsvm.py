"""Files in the format of libsvm: how they are recognised, and the places of their faults."""

from __future__ import annotations

import re
from pathlib import Path

from mercer.data.separated import open_text
from mercer.data.table import is_number

_LIBSVM_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")


def looks_like_libsvm(path: Path) -> bool:
    """Whether the first line of a file is an example in this format."""
    try:
        with open_text(path) as lines:
            return _LIBSVM_LINE.fullmatch(lines.readline().strip()) is not None
    except (UnicodeDecodeError, OSError):
        return False


def libsvm_fault(path: Path, message: str) -> str:
    """The message for a file that cannot be read, with the place of its first fault."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            last = -1
            for position, match in enumerate(re.finditer(r"\S+", line.partition("#")[0])):
                place = f"{path}, line {number}, column {match.start() + 1}"
                if position == 0 and not is_number(match[0]):
                    return f"{place}: the label {match[0]!r} is not a number; a line is 'label index:value ...'."
                if position == 0 or match[0].startswith("qid:"):
                    continue
                index, _, value = match[0].partition(":")
                if not index.isdigit() or not is_number(value):
                    return f"{place}: {match[0]!r} is not of the form index:value with two numbers."
                if int(index) <= last:
                    return f"{place}: the index {index} follows {last}; indices within a line must increase."
                last = int(index)
    return f"{path} cannot be read as a libsvm file: {message}."
