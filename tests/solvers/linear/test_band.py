"""Band forms and their shifts against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.engine import progress, threads, tiles
from mercer.solvers.linear import band, shifted_band
from mercer.solvers.linear.band import BandForm, reduce_to_band
from mercer.solvers.linear.shifted_band import ShiftedBand


def positive(n: int, rank: int | None = None, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(n, rank or n))
    return A @ A.T / n


def dense(form: BandForm) -> np.ndarray:
    n = len(form.band[0])
    lower = sum(np.diag(row[: n - k], -k) for k, row in enumerate(form.band[:n]))
    return np.tril(lower) + np.tril(lower, -1).T


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 70), width=st.integers(1, 40), rank=st.integers(1, 70), seed=st.integers(0, 9))
def test_the_band_form_is_the_matrix(n: int, width: int, rank: int, seed: int) -> None:
    A = positive(n, min(rank, n), seed)
    form = reduce_to_band(A.copy(), width)
    assert form.band.shape[0] <= width + 1 and form.shape == (n, n)
    Q = form.orthogonal(np.empty((n, n)))
    # Each of the two-sided reflections rounds by a few units of the largest entries.
    bound = 100 * n * np.finfo(float).eps
    assert np.abs(Q @ dense(form) @ Q.T - A).max() <= bound * np.abs(A).max()
    assert np.abs(Q.T @ Q - np.eye(n)).max() <= bound
    V = np.random.default_rng(seed).normal(size=(n, 3))
    np.testing.assert_allclose(form.into(V), Q.T @ V, atol=bound * 10)
    np.testing.assert_allclose(form.back(V), Q @ V, atol=bound * 10)


@pytest.mark.parametrize(("n", "width"), [(70, 5), (64, 8), (37, 12), (16, 3)])
def test_strips_and_threads(monkeypatch: pytest.MonkeyPatch, n: int, width: int) -> None:
    for name, value in (("_STRIP", 8), ("_ALONE", 0), ("_COLUMNS", 9)):
        monkeypatch.setattr(band, name, value)
    monkeypatch.setattr(shifted_band, "_COLUMNS", 9)
    monkeypatch.setattr(shifted_band, "_ALONE", 0)
    A = positive(n)
    calls = []
    for n_jobs in (1, 2, 3):
        form = reduce_to_band(A.copy(), width, n_jobs)
        Q = form.orthogonal(np.empty((n, n)), n_jobs)
        diagonal = ShiftedBand(form, 0.3).inverse_diagonal(Q, n_jobs)
        calls.append([array.tobytes() for array in (form.band, Q, diagonal)])
    assert calls[0] == calls[1] == calls[2]
    assert np.abs(Q @ dense(form) @ Q.T - A).max() <= 100 * n * np.finfo(float).eps * np.abs(A).max()
    np.testing.assert_allclose(diagonal, np.linalg.inv(A + 0.3 * np.eye(n)).diagonal(), rtol=1e-10)
    np.testing.assert_array_equal(ShiftedBand(form, 0.3).inverse_diagonal(np.ascontiguousarray(Q), 1), diagonal)


def decaying(n: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))


def test_the_rest_in_float32_rounds_the_rest_alone() -> None:
    n = 700
    A = decaying(n)
    size = np.linalg.norm(A, 2)
    early, late = (reduce_to_band(A.copy(), single_below=below) for below in (2.0 * size, 1e-3))
    for form, scale in ((early, size), (late, 1e-3)):
        kinds = [each.V.dtype for each in form.reflectors]
        assert kinds[-1] == np.float32 and form.band.dtype == np.float64
        assert (kinds[0] == np.float32) == (form is early)
        rebuilt = form.back(form.back(dense(form)).T)
        # A few roundings in float32 of what was left, for each of 22 panels.
        assert np.linalg.norm(rebuilt - A, 2) <= 22 * 8 * np.finfo(np.float32).eps * scale
        Q = form.orthogonal(np.empty((n, n), np.float32))
        assert np.abs(Q.T @ Q - np.eye(n)).max() <= 100 * n**0.5 * np.finfo(np.float32).eps
    # An eighth of the columns at the latest.
    reflectors = reduce_to_band(A.copy(), single_below=1e-300).reflectors
    assert sum(each.V.shape[1] for each in reflectors if each.V.dtype == np.float64) == 3 * band.WIDTH


def test_the_rest_in_float32_has_the_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(band, "_STRIP", 16)
    monkeypatch.setattr(band, "_ALONE", 0)
    A = decaying(200)
    results = []
    for n_jobs in (1, 2, 3):
        form = reduce_to_band(A.copy(), 8, n_jobs, single_below=1.0)
        results.append([form.band.tobytes(), form.orthogonal(np.empty((200, 200), np.float32), n_jobs).tobytes()])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("single_below", [0.0, 1.0])
def test_vectors_have_the_same_bits_for_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, single_below: float
) -> None:
    monkeypatch.setattr(band, "_ALONE", 0)
    monkeypatch.setattr(band, "_COLUMNS", 9)
    monkeypatch.setattr(shifted_band, "_ALONE", 0)
    monkeypatch.setattr(shifted_band, "_COLUMNS", 9)
    form = reduce_to_band(decaying(200), 8, single_below=single_below)
    V = np.random.default_rng(1).normal(size=(200, 40))
    results = []
    for n_jobs in (1, 2, 3):
        with threads.workers(n_jobs):
            calls = form.into(V), form.back(V), ShiftedBand(form, 0.3).solve(V)
        results.append([array.tobytes() for array in calls])
    assert results[0] == results[1] == results[2]


def test_vectors_of_any_size_pass_through_float32() -> None:
    form = reduce_to_band(decaying(200), 8, single_below=1.0)
    V = np.random.default_rng(1).normal(size=(200, 3)) * [1e200, 1.0, 0.0]
    back = form.back(form.into(V))
    assert (np.abs(back - V).max(axis=0) <= np.array([1e195, 1e-5, 0.0])).all()


@pytest.mark.parametrize("n", [1, 31, 32, 33, 150])
def test_many_right_hand_sides_by_blocks(n: int) -> None:
    A = positive(n)
    shifted = ShiftedBand(reduce_to_band(A.copy()), 0.3)
    V = np.random.default_rng(1).normal(size=(n, 400))
    few = np.hstack([shifted.solve(V[:, part]) for part in tiles.spans(400, 5)])
    np.testing.assert_allclose(shifted.solve(V), few, rtol=1e-9, atol=1e-12)


def test_a_matrix_of_several_strips() -> None:
    A = positive(700)
    form = reduce_to_band(A.copy())
    Q = form.orthogonal(np.empty((700, 700)))
    assert np.abs(Q @ dense(form) @ Q.T - A).max() <= 100 * 700 * np.finfo(float).eps * np.abs(A).max()


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 65, 150])
def test_what_a_shift_is_asked_for(n: int) -> None:
    A = positive(n)
    form = reduce_to_band(A.copy())
    shifted = ShiftedBand(form, 0.3)
    inverse = np.linalg.inv(A + 0.3 * np.eye(n))
    assert shifted.regular
    assert shifted.log_determinant == pytest.approx(np.linalg.slogdet(A + 0.3 * np.eye(n))[1], rel=1e-10, abs=1e-12)
    assert shifted.inverse_trace == pytest.approx(np.trace(inverse), rel=1e-11)
    Q = form.orthogonal(np.empty((n, n)))
    np.testing.assert_allclose(shifted.inverse_diagonal(Q), inverse.diagonal(), rtol=1e-10)
    V = np.random.default_rng(1).normal(size=(n, 2))
    np.testing.assert_allclose(form.back(shifted.solve(form.into(V))), inverse @ V, rtol=1e-9, atol=1e-11)


def test_what_is_not_positive_definite_is_not_regular() -> None:
    A = positive(50) - 2.0 * np.eye(50)
    form = reduce_to_band(A.copy())
    smallest = np.linalg.eigvalsh(A)[0]
    assert not ShiftedBand(form, -smallest * 0.99).regular
    assert ShiftedBand(form, -smallest * 1.01).regular
    singular = reduce_to_band(positive(50, 5))
    assert not ShiftedBand(singular, 0.0, 1e-14).regular and ShiftedBand(singular, 1e-6, 1e-14).regular


def test_progress_and_an_interruption_in_the_middle() -> None:
    heard: list[tuple[str, int, int | None]] = []

    def hook(what: str, done: int, total: int | None) -> None:
        heard.append((what, done, total))
        if len(heard) == 3:
            raise KeyboardInterrupt

    with progress.on_progress(hook), pytest.raises(KeyboardInterrupt):
        reduce_to_band(positive(200))
    assert heard == [("band reduction", i, 7) for i in (1, 2, 3)]
