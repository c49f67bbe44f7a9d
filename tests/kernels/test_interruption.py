"""Ctrl-C ends the comparison of two objects that are so long that it takes minutes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mercer import kernels
from mercer.engine import threads
from mercer.gram import Gram
from mercer.kernels import Kernel, kinds

_CHAIN = f"{'(a ' * 100_000}a{')' * 100_000}"
_ZEROS = np.zeros(400_000)
# Steps of 30 are cut into 15 parts each, on either side.
_JUMPS = np.array([0.0, 30.0] * 1200)
_WALK = 1e-7 * np.arange(8e6).reshape(-1, 2)
_LINE = [(i, i + 1) for i in range(1999)]

# Each takes at least half a minute: a long object, a short one that compiles the loop, and the kernel.
LONG = {
    "chains": (kernels.SubsetTree(0.4), _CHAIN, "(a a)"),
    "partial chains": (kernels.PartialTree(0.4), _CHAIN, "(a a)"),
    "alignments": (kernels.GlobalAlignment(1.0), _ZEROS, [0.0]),
    "normalized alignments": (kernels.GlobalAlignment(1.0).normalized(), _ZEROS, [0.0]),
    "warping": (kernels.DynamicTimeWarping(), _ZEROS, [0.0]),
    "signatures": (kernels.SignaturePDE(), _JUMPS, [0.0]),
    "words of signatures": (kernels.Signature(10, time=0.0), _WALK, np.zeros((2, 2))),
    "subsequences": (kernels.Subsequence(4), "ab" * 150_000, "ab"),
    "edits": (kernels.EditDistance(0.1), "ab" * 1_500_000, "ab"),
    "shifted windows": (kernels.WeightedDegree(5, shift=200_000), "ab" * 200_000, "ab"),
    "substrings": (kernels.Spectrum(20_000), "abcdefgh" * 125_000, "ab" * 10_000),
    "windows": (kernels.GappyKmers(8, 4), "ab" * 400_000, "ab"),
    "walks": (kernels.RandomWalk(0.2499999), (_LINE,), ([(0, 1)],)),
}


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Ctrl-C comes a moment after a long loop began; the list says how many steps it was to take."""
    starts: list[float] = []
    real = threads.interruptible

    def watched(loop: Callable[..., Any], arguments: tuple[Any, ...], steps: float) -> Any:
        if steps > 1e6:
            starts.append(steps)
            timer = threading.Timer(0.03, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
            timer.daemon = True
            timer.start()
        return real(loop, arguments, steps)

    monkeypatch.setattr(threads, "interruptible", watched)
    return starts


def _ends_soon(work: Callable[[], Any], starts: list[float]) -> None:
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(starts) >= 1 and time.monotonic() - start < 20


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG)
def test_one_pair(case: str, interrupted: list[float]) -> None:
    kernel, long, short = LONG[case]
    kernel([short])
    X = kinds.rows_of(kernel, [long])
    _ends_soon(lambda: kernel(X), interrupted)
    assert kernel([short]).shape == (1, 1)


@pytest.mark.parametrize("kernel", [kernels.SubsetTree(0.4), kernels.PartialTree(0.4), kernels.Subsequence(4)])
def test_slopes_of_one_pair(kernel: Kernel, interrupted: list[float]) -> None:
    long = _CHAIN if hasattr(kernel, "decay") and "Tree" in repr(kernel) else "ab" * 150_000
    kernel.pullback(["(a a)"], None, np.ones((1, 1)))
    X = kinds.rows_of(kernel, [long])
    _ends_soon(lambda: kernel.pullback(X, None, np.ones((1, 1))), interrupted)


def test_pairs_on_several_threads(interrupted: list[float]) -> None:
    kernel = kernels.DynamicTimeWarping()
    kernel([[0.0]])
    # More rows than a tile has, so that there are several tasks.
    X = kinds.rows_of(kernel, [_ZEROS] * (kernel.tile + 1))
    _ends_soon(lambda: Gram(kernel, X, n_jobs=2).dense(), interrupted)
