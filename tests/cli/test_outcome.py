"""What the command line says otherwise than Python: each phrase that it replaces is one that a message has."""

from __future__ import annotations

import ast
from pathlib import Path

import mercer
from mercer.cli.outcome import _OPTIONS


def test_every_phrase_that_is_replaced_occurs_in_a_message() -> None:
    texts = []
    for path in Path(mercer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.stem != "outcome" else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                texts.append("".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values))
    assert [phrase for phrase in _OPTIONS if not any(phrase in text for text in texts)] == []
