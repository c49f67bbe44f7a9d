"""What the command line says otherwise than Python: each phrase that it replaces is one that a message has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import mercer
from mercer.cli.outcome import _OPTIONS


def _anywhere(phrase: str) -> re.Pattern[str]:
    """The words of a phrase in a source, where a text may go on in the next line."""
    return re.compile(r"(?:\W|\bf(?=[\"']))+".join(re.findall(r"\w+", phrase)))


def test_every_phrase_that_is_replaced_occurs_in_a_message() -> None:
    texts, phrases = [], [_anywhere(phrase) for phrase in _OPTIONS]
    for path in Path(mercer.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        # To parse all takes a second; a message stands in a file that has the words of the phrase in a row.
        if path.stem == "outcome" or not any(phrase.search(source) for phrase in phrases):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                texts.append("".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values))
    assert [phrase for phrase in _OPTIONS if not any(phrase in text for text in texts)] == []
