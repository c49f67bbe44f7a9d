"""The clock that stands still while loops are compiled."""

from __future__ import annotations

import time
from types import SimpleNamespace

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
