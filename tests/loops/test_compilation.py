"""The clock that stands still while loops are compiled, and what would take long to compile."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import mercer.loops
from mercer.loops.compilation import _Compilations


def _event(module: str) -> SimpleNamespace:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def test_nested_and_foreign_compilations_count_once_and_never() -> None:
    compilations = _Compilations()
    compilations._said = True
    start = time.perf_counter()
    compilations.on_start(_event("mercer.loops.pairs"))
    compilations.on_start(_event("mercer.loops.sums"))
    time.sleep(0.02)
    compilations.on_end(_event("mercer.loops.sums"))
    assert compilations.seconds >= 0.02
    compilations.on_end(_event("mercer.loops.pairs"))
    total, elapsed = compilations.seconds, time.perf_counter() - start
    assert 0.02 <= total <= elapsed
    compilations.on_start(_event("others.loops"))
    time.sleep(0.01)
    compilations.on_end(_event("others.loops"))
    assert compilations.seconds == total


LOOPS = sorted(Path(mercer.loops.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_no_loop_assigns_an_array_to_a_slice(path: Path) -> None:
    # With the formatting of texts for its error, that takes as long to compile as all steps of an SVM.
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign):
            continue
        to_slice = [
            part
            for target in node.targets
            for part in ast.walk(target)
            if isinstance(part, ast.Subscript) and any(isinstance(index, ast.Slice) for index in ast.walk(part.slice))
        ]
        arrays = [part for part in ast.walk(node.value) if isinstance(part, ast.Subscript)]
        assert not (to_slice and arrays), f"{path.name}:{node.lineno}: {ast.unparse(node)}"
