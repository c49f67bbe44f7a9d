"""Progress: what the hook is called with, and what is printed."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import kernels
from mercer.engine import progress
from mercer.gram import Gram


def test_the_hook_hears_of_every_strip() -> None:
    heard: list[tuple[str, int, int]] = []
    gram = Gram(kernels.RBF(), np.random.default_rng(0).normal(size=(2100, 2)), n_jobs=2)
    with mercer.on_progress(lambda *what: heard.append(what)):
        gram.dense()
        gram @ np.ones(2100)
    # Of a short program the end, and of a kernel that Python evaluates every strip.
    assert [what for what, done, total in heard if done == total] == ["Gram matrix", "kernel product"]
    heard.clear()
    gram.dense()
    assert not heard
    with mercer.on_progress(lambda *what: heard.append(what)):
        Gram(kernels.RBF().normalized(), np.random.default_rng(0).normal(size=(1100, 2)), n_jobs=2).dense()
    assert heard == [("Gram matrix", i, 3) for i in (1, 2, 3)]


def test_a_hook_may_cancel() -> None:
    def hook(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    gram = Gram(kernels.RBF(), np.ones((1100, 2)), n_jobs=2)
    with mercer.on_progress(hook), pytest.raises(KeyboardInterrupt):
        gram.dense()
    assert gram.dense().all()


def test_short_work_is_silent_and_long_work_says_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    quiet, loud = progress.Progress(4, "fit"), progress.Progress(4, "fit", verbose=True)
    for elapsed in (1.0, 3.0, 3.1, 9.0):
        now[0] = elapsed
        quiet.advance()
        loud.advance()
    messages = capsys.readouterr().err.splitlines()
    assert messages == ["mercer: fit: 2/4, about 3 s left", "mercer: fit: 4/4, about 0 s left"]


def test_a_note_stands_after_the_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now, notes = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    work = progress.Progress(None, "evidence", verbose=True)
    now[0] = 3.0
    with progress.watched(lambda it: notes.append((it.what, it.count))):
        work.advance(note="evaluations, highest -3.5")
        work.advance(2)
    assert notes == [("evidence", "1 evaluations, highest -3.5"), ("evidence", "3")]
    assert capsys.readouterr().err == "mercer: evidence: 1 evaluations, highest -3.5 in 3 s\n"
    work.advance()
    assert len(notes) == 2


def test_work_of_any_length_may_end_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (True, False):
        work = progress.Progress(3, "passes", verbose)
        work.advance()
        work.finish()
    assert capsys.readouterr().err == "mercer: passes: 1/3 in 0.0 s\n"
