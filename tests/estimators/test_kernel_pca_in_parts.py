"""KernelPCA over landmarks on blocks and collections of Dask: the components of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Blocks, KernelPCA, load, save
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from mercer.solvers.restricted.passes import StoredRows

X = np.random.default_rng(0).normal(size=(400, 3))


def pca(**options: Any) -> KernelPCA:
    return KernelPCA(
        3, kernel=RBF(1.5), approximation="nystroem", **{"landmarks": X[:30], "random_state": 0, **options}
    )


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), sp.csr_matrix(X)], ids=["float64", "float32", "sparse"])
def test_blocks_have_the_components_of_arrays(rows: Any) -> None:
    whole, parts = pca().fit(rows), pca().fit(Blocks(rows, rows_per_block=170))
    np.testing.assert_allclose(parts.eigenvalues_, whole.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(parts.transform(rows), whole.transform(rows), atol=1e-5)
    blocks = Blocks(rows, rows_per_block=99)
    np.testing.assert_allclose(parts.transform(blocks), parts.transform(rows), atol=1e-5)
    np.testing.assert_allclose(pca().fit_transform(blocks), whole.transform(rows), atol=1e-5)
    assert parts.landmark_indices_ is None and parts.certificate_.primal == pytest.approx(whole.certificate_.primal)


def test_names_targets_and_files(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label="one")
    parts = pca(landmarks="rpcholesky", n_landmarks=40).fit(Blocks(frame, "label", rows_per_block=170))
    assert parts.feature_names_in_.tolist() == ["a", "b", "c"] and parts.X_fit_.shape == (40, 3)
    save(parts, tmp_path / "m.mercer")
    np.testing.assert_array_equal(
        load(tmp_path / "m.mercer").transform(frame[["a", "b", "c"]]), parts.transform(frame[["a", "b", "c"]])
    )


def test_collections_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(170, 3))
    rows = da.concatenate([rows[:170], da.zeros((0, 3)), rows[170:]])
    parts = pca().fit(rows)
    np.testing.assert_allclose(parts.transform(X), pca().fit(X).transform(X), atol=1e-6)
    np.testing.assert_allclose(parts.transform(rows).compute(), parts.transform(X), atol=1e-9)


def test_how_the_rows_are_cut_changes_no_bits() -> None:
    def pieces() -> Iterator[np.ndarray]:
        for start in range(0, 400, 37):
            yield X[start : start + 37]

    one, other = (pca().fit(blocks) for blocks in (Blocks(X, rows_per_block=64), Blocks(pieces, rows_per_block=64)))
    np.testing.assert_array_equal(one.landmark_coef_, other.landmark_coef_)


def test_rows_that_change_and_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def changing() -> Iterator[np.ndarray]:
        calls[0] += 1
        yield X + (1e-9 if calls[0] > 3 else 0.0)

    with pytest.raises(DataError, match="same rows"):
        pca().fit(Blocks.from_function(changing))

    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StoredRows, "_sweep", pressed)
    with pytest.raises(KeyboardInterrupt):
        pca().fit(Blocks(X, rows_per_block=170))


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        KernelPCA(2).fit(Blocks(X))
    with pytest.raises(DataError, match="has no sample weights"):
        pca().fit(Blocks(X, sample_weight=np.ones(400)))
