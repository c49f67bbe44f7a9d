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
    function, stored = SimpleNamespace(__module__=module), SimpleNamespace(cache_path=None)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function, stats=stored)})


def test_nested_and_foreign_compilations_count_once_and_never() -> None:
    compilations = _Compilations()
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
def test_loops_fill_slices_with_single_numbers_alone(path: Path) -> None:
    # With the formatting of texts for its error, an assignment of an array to a slice takes two seconds to compile.
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        to_slice = any(isinstance(part, ast.Slice) for target in targets for part in ast.walk(target))
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        good = isinstance(node, ast.Assign) and all(_is_number(value) for value in values)
        assert good or not to_slice, f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def _is_number(value: ast.expr) -> bool:
    """A constant, a number of NumPy, or one of the names that loops have for a number."""
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.Name):
        return value.id in {"multiplier", "_NO_SYMBOL"}
    return ast.unparse(value) in {"np.inf", "np.uint64(0)"} or isinstance(value, ast.Constant)
