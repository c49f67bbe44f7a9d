"""GaussianProcessRegressor over landmarks on blocks and collections of Dask: the posterior of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Blocks, GaussianProcessRegressor, config, load, save
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.engine import threads
from mercer.estimators.gaussian import over_landmarks
from mercer.estimators.shared import on_blocks
from mercer.kernels import RBF, Kernel, White
from mercer.solvers.restricted import evidence_blocks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 2))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=500)
NEW = RNG.normal(size=(40, 2))
KERNEL = 2.0 * RBF(1.0)


def process(kernel: Kernel = KERNEL, **options: Any) -> GaussianProcessRegressor:
    defaults = {"alpha": 0.02, "approximation": "nystroem", "landmarks": X[:40], "random_state": 0, "optimizer": None}
    return GaussianProcessRegressor(kernel, **{**defaults, **options})


def same(parts: GaussianProcessRegressor, whole: GaussianProcessRegressor) -> None:
    for observation in (None, True, False):
        found = parts.predict(NEW, return_std=True, observation=observation)
        for one, other in zip(found, whole.predict(NEW, return_std=True, observation=observation), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(parts.log_marginal_likelihood_bounds_, whole.log_marginal_likelihood_bounds_, rtol=1e-8)
    assert parts.landmark_indices_ is None and parts.kernel_ == whole.kernel_ and parts.noise_ == whole.noise_


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (KERNEL, {}),
        (KERNEL + White(0.05), {"alpha": np.linspace(0.01, 0.2, 500)}),
        (KERNEL, {"noise": 0.05, "normalize_y": True}),
    ],
    ids=["alpha", "white and alpha of each row", "noise"],
)
@pytest.mark.parametrize("several", [False, True])
def test_blocks_have_the_posterior_of_arrays(kernel: Kernel, options: Any, several: bool) -> None:
    y = np.c_[Y, X[:, 0] + 5] if several else Y
    whole, parts = process(kernel, **options).fit(X, y), process(kernel, **options)
    same(parts.fit(Blocks(X, y, rows_per_block=170)), whole)
    assert not hasattr(parts, "search_rows_")
    for one, other in zip(parts.predict(Blocks(NEW, rows_per_block=7), True), parts.predict(NEW, True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.predict(Blocks(NEW, rows_per_block=7)), parts.predict(NEW), atol=1e-12)
    assert parts.score(Blocks(X, y, rows_per_block=99)) == pytest.approx(parts.score(X, y))


def test_landmarks_come_from_the_sample_and_blocks_of_any_kind_are_read(tmp_path: Any) -> None:
    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, 500, 53):
            yield X[start : start + 53], Y[start : start + 53]

    options: dict[str, Any] = {"landmarks": "rpcholesky", "n_landmarks": 50}
    one = process(**options).fit(Blocks(X, Y, rows_per_block=170))
    other = process(**options).fit(Blocks.from_function(pieces, rows_per_block=170))
    np.testing.assert_array_equal(one.alpha_, other.alpha_)
    assert one.score(X, Y) > 0.95
    same(process().fit(Blocks(sp.csr_matrix(X), Y, rows_per_block=170)), process().fit(sp.csr_matrix(X), Y))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    named = process().fit(Blocks(frame, "y", rows_per_block=170))
    assert named.feature_names_in_.tolist() == ["a", "b"]
    save(named, tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer").predict(Blocks(frame[["a", "b"]]), return_std=True)
    np.testing.assert_array_equal(again, named.predict(frame[["a", "b"]], return_std=True))


def test_blocks_of_rows_larger_and_smaller_than_those_of_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_blocks, "_ENTRIES", 64 * 40)
    monkeypatch.setattr(evidence_blocks, "_LEAST_ROWS", 64)
    whole = process().fit(X, Y)
    for rows in (30, 64, 500):
        parts = process().fit(Blocks(X, Y, rows_per_block=rows))
        # Sums have the order of the rows, in blocks of the same height.
        np.testing.assert_array_equal(parts.alpha_, whole.alpha_)


def test_hyper_parameters_are_learnt_on_a_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(on_blocks, "_ROWS_FOR_LANDMARKS", 100)
    monkeypatch.setattr(over_landmarks, "SAMPLE", 100)
    options: dict[str, Any] = {"noise": 1.0, "alpha": 1e-10, "optimizer": "fmin_l_bfgs_b"}
    parts = process(1.0 * RBF(3.0), **options).fit(Blocks(X, Y, rows_per_block=170))
    assert 100 < parts.search_rows_ <= 500
    assert parts.noise_ < 0.05 and parts.search_.evaluations > 1
    # The posterior is that of all rows, and so are the bounds.
    found = process(parts.kernel_, noise=parts.noise_, alpha=1e-10).fit(X, Y)
    np.testing.assert_allclose(parts.predict(NEW, True), found.predict(NEW, True), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(parts.log_marginal_likelihood_bounds_, found.log_marginal_likelihood_bounds_, rtol=1e-8)
    save(parts, tmp_path / "m.mercer")
    assert load(tmp_path / "m.mercer").search_rows_ == parts.search_rows_
    assert not hasattr(parts.set_params(optimizer=None).fit(X, Y), "search_rows_")


def test_collections_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    rows, targets = da.from_array(X, chunks=(170, 2)), da.from_array(Y, chunks=170)
    parts = process().fit(rows, targets)
    same(parts, process().fit(X, Y))
    lazy = parts.predict(da.from_array(NEW, chunks=(11, 2)), return_std=True)
    for one, other in zip(lazy, parts.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(one.compute(), other, atol=1e-9)
    assert parts.score(rows, targets) == pytest.approx(parts.score(X, Y))
    with pytest.raises(DataError, match="needs targets y"):
        process().fit(rows)


def test_rows_that_change_between_passes() -> None:
    calls = [0]

    def changing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        calls[0] += 1
        yield X + (1e-9 if calls[0] > 3 else 0.0), Y

    with pytest.raises(DataError, match="same rows"):
        process().fit(Blocks.from_function(changing))


def test_it_ends_with_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = threads.checkpoint, [0]

    def pressed() -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt
        original()

    monkeypatch.setattr(threads, "checkpoint", pressed)
    with config(on_interrupt="keep"), pytest.raises(KeyboardInterrupt):
        process().fit(Blocks(X, Y, rows_per_block=170))


def test_what_cannot_be_done_is_said() -> None:
    blocks = Blocks(X, Y)
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        GaussianProcessRegressor(KERNEL).fit(blocks)
    with pytest.raises(DataError, match="leave out y"):
        process().fit(blocks, Y)
    with pytest.raises(DataError, match="has no sample weights"):
        process().fit(Blocks(X, Y, sample_weight=np.ones(500)))
    with pytest.raises(DataError, match="name them with target"):
        process().fit(Blocks(X))
    with pytest.raises(DataError, match="learns numbers"):
        process().fit(Blocks(X, np.where(Y > 0, "a", "b")))
    with pytest.raises(ParameterError, match="needs all new rows at once"):
        process().fit(blocks).predict(Blocks(NEW), return_cov=True)
    with config(memory="20KiB"), pytest.raises(MemoryBudgetError):
        process().fit(blocks)
