"""Passes over blocks, and work that goes on after an interruption with the same bits."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from mercer._errors import DataError
from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.losses import Hinge, Logistic
from mercer.solvers.restricted import journal
from mercer.solvers.restricted.blocked import BlockedRows
from mercer.solvers.restricted.criteria import Envelope, Smooth
from mercer.solvers.restricted.journal import Journal
from mercer.solvers.restricted.least_squares import RestrictedCG
from mercer.solvers.restricted.least_squares_problem import RestrictedLeastSquares
from mercer.solvers.restricted.newton import RestrictedNewton, RestrictedRisk
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.restricted.whitening import Whitening

KERNEL = RBF(1.5)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))
Y = np.where(X[:, :1] * X[:, 1:2] > 0, 1.0, -1.0)
WEIGHTS = RNG.uniform(0.5, 2.0, len(X))
Z = X[:20]
WHITE = Whitening.of(KERNEL(Z))
WHOLE = StoredRows(Gram(KERNEL, X, Z), Y, WEIGHTS)


class Stopped(Exception):
    pass


def blocked(memory=None, size=200, after=None):
    """The rows in blocks; reading raises after some of them."""
    count = [0]

    def read(first):
        for start in range(first * size, len(X), size):
            part = slice(start, min(start + size, len(X)))
            count[0] += 1
            if after is not None and count[0] > after:
                raise Stopped
            yield StoredRows(Gram(KERNEL, X[part], Z), Y[part], WEIGHTS[part])

    rows = BlockedRows((len(X), len(Z), 1), read, WHOLE.sample, memory)
    return rows, count


def solutions(rows):
    yield RestrictedCG(1e-9).solve(RestrictedLeastSquares(rows, WHITE, np.array([0.1])))


def smooth(rows):
    yield RestrictedNewton(1e-6).solve(RestrictedRisk(rows, WHITE, Smooth(Logistic()), 0.1))


def hinge(rows):
    yield RestrictedNewton(1e-2).solve(RestrictedRisk(rows, WHITE, Envelope(Hinge(), 4.0), 0.1))


WORK = [solutions, smooth, hinge]


@pytest.mark.parametrize("work", WORK)
def test_blocks_have_the_answer_of_all_rows_at_once(work):
    (whole,), (parts,) = work(WHOLE), work(blocked()[0])
    assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-2)


@pytest.mark.parametrize("work, after", [(solutions, 1), (smooth, 13), (hinge, 100)])
def test_after_an_interruption_the_bits_are_the_same(tmp_path, monkeypatch, work, after):
    monkeypatch.setattr("mercer.solvers.restricted.journal._EVERY", 0.0)
    (expected,) = work(blocked()[0])
    path = tmp_path / "run.checkpoint"
    rounds, read = 0, 0
    for _ in range(200):
        rows, count = blocked(Journal(path, "work"), after=after)
        try:
            (found,) = work(rows)
        except Stopped:
            rounds, read = rounds + 1, read + count[0] - 1
            continue
        break
    np.testing.assert_array_equal(found.value, expected.value)
    # Nothing was read twice.
    whole, counted = blocked()
    list(work(whole))
    assert read + count[0] == counted[0] and rounds == (counted[0] - 1) // after


@pytest.mark.parametrize("after", [1, 3, 7])
def test_passes_that_ended_in_an_error_end_in_it_again(tmp_path, monkeypatch, after):
    """Where a value leaves the range of float32, a pass fails after some blocks, and the next one is in float64."""
    monkeypatch.setattr("mercer.solvers.restricted.journal._EVERY", 0.0)
    rows = X * np.where(np.arange(len(X)) < 450, 1.0, 1e25)[:, None]
    kernel = Linear()
    white = Whitening.of(kernel(rows[:10]))
    whole = StoredRows(Gram(kernel, rows, rows[:10]), rows[:, :1], np.ones(len(rows)))

    def work(memory, most):
        count = [0]

        def read(first):
            for start in range(first * 100, len(rows), 100):
                count[0] += 1
                if count[0] > most:
                    raise Stopped
                part = slice(start, start + 100)
                yield StoredRows(Gram(kernel, rows[part], rows[:10]), rows[part, :1], np.ones(100))

        passes = BlockedRows((len(rows), 10, 1), read, whole.sample, memory)
        return RestrictedCG(1e-9).solve(RestrictedLeastSquares(passes, white, np.array([1e20])))

    expected = work(None, np.inf)
    for _ in range(200):
        try:
            found = work(Journal(tmp_path / "run.checkpoint", "work"), after)
        except Stopped:
            continue
        break
    np.testing.assert_array_equal(found.value, expected.value)
    assert found.certificate.iterations == expected.certificate.iterations


def test_files_of_other_work_and_damaged_ones_are_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    Journal(path, "one").keep("pass", np.ones((2, 1)), np.zeros(1))
    with pytest.raises(DataError, match="checkpoint of another fit"):
        Journal(path, "two")
    data = path.read_bytes()
    flipped = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(40, len(data), 97)]
    flipped.append(data[:100] + b"\0" * 50 + data[150:])
    numbers = data.replace(np.ones((2, 1)).tobytes(), 2 * np.ones((2, 1)).tobytes())
    for damaged in (data[: len(data) // 2], b"", b"text", numbers):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be read as a checkpoint"):
            Journal(path, "one")
    for damaged in flipped:
        path.write_bytes(damaged)
        # What is no part of the arrays, as the dates of an archive, may change; what is read may not.
        with suppress(DataError):
            assert Journal(path, "one").recall("pass")[0].tolist() == [[1.0], [1.0]]
    np.savez(tmp_path / "other.npz", header=np.frombuffer(b'{"kind": "x", "version": 1}', np.uint8))
    with pytest.raises(DataError, match="is no checkpoint"):
        Journal(tmp_path / "other.npz", "one")


def test_files_of_the_first_version_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    with monkeypatch.context() as before:
        before.setattr(journal, "_VERSION", 1)
        Journal(path, "one").keep("pass", np.ones((2, 1)), np.zeros(1))
    with pytest.raises(DataError, match="is no checkpoint of this version"):
        Journal(path, "one")


def test_pickled_arrays_are_not_loaded(tmp_path):
    path = tmp_path / "forged.npz"
    np.savez(path, header=np.array([{"kind": "mercer checkpoint"}], dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        Journal(path, "one")


def test_the_file_is_removed_when_all_is_done(tmp_path):
    journal = Journal(tmp_path / "run.checkpoint", "one")
    journal.keep("pass", np.ones((2, 1)), np.zeros(1))
    assert journal.path.exists() and journal.passes == 1
    journal.remove()
    assert not journal.path.exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_called_so(tmp_path, share):
    path = tmp_path / "run.checkpoint"
    Journal(path, "a fit").keep("first", np.ones((2, 1)), np.zeros(1))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"cannot be read as a checkpoint \(it is truncated.*; choose another file"):
        Journal(path, "a fit")


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of the size of files are set otherwise on this system")
    path = tmp_path / "run.checkpoint"
    written = Journal(path, "a fit")
    written.keep("first", np.ones((2, 1)), np.zeros(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(DataError, match=r"run\.checkpoint cannot be written .*Make room and fit again"):
            written.keep("second", np.ones((2, 1)), np.zeros(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # What the message promises.
    again = Journal(path, "a fit")
    assert again.passes == 1 and again.recall("first") is not None
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
