"""GaussianProcessClassifier over landmarks on blocks and collections of Dask: the posterior of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import Blocks, GaussianProcessClassifier, estimate, load, save
from mercer._errors import DataError, ParameterError
from mercer.estimators.gaussian import classes_over_landmarks
from mercer.estimators.shared import on_blocks
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(420, 2))
VALUES = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=420)
TWO = np.where(VALUES > 0.7, "warm", "cold")
THREE = np.digitize(VALUES, [0.3, 1.2])
NEW = RNG.normal(size=(30, 2))


def process(**options: Any) -> GaussianProcessClassifier:
    defaults = {"approximation": "nystroem", "landmarks": X[:40], "random_state": 0, "optimizer": None}
    return GaussianProcessClassifier(2.0 * RBF(1.0), **{**defaults, **options})


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_blocks_have_the_posterior_of_arrays(y: Any, tmp_path: Any) -> None:
    whole, parts = process().fit(X, y), process().fit(Blocks(X, y, rows_per_block=130))
    np.testing.assert_allclose(parts.predict_proba(NEW), whole.predict_proba(NEW), rtol=1e-7)
    assert parts.log_marginal_likelihood_value_ == pytest.approx(whole.log_marginal_likelihood_value_, rel=1e-9)
    assert parts.classes_.tolist() == whole.classes_.tolist() and parts.landmark_indices_ is None
    assert parts.certificate_.relative_gap < 1e-9 and not hasattr(parts, "search_rows_")
    blocks = Blocks(NEW, rows_per_block=7)
    np.testing.assert_allclose(parts.predict_proba(blocks), parts.predict_proba(NEW), atol=1e-12)
    assert parts.predict(blocks).tolist() == parts.predict(NEW).tolist()
    np.testing.assert_allclose(parts.decision_function(blocks), parts.decision_function(NEW), atol=1e-9)
    assert parts.score(Blocks(X, y, rows_per_block=99)) == pytest.approx(parts.score(X, y))
    save(parts, tmp_path / "m.mercer")
    np.testing.assert_array_equal(load(tmp_path / "m.mercer").predict_proba(NEW), parts.predict_proba(NEW))


def test_hyper_parameters_are_learnt_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_blocks, "_ROWS_FOR_LANDMARKS", 100)
    monkeypatch.setattr(classes_over_landmarks, "SAMPLE", 100)
    options: dict[str, Any] = {"optimizer": "fmin_l_bfgs_b", "landmarks": "rpcholesky", "n_landmarks": 30}
    parts = process(**options).fit(Blocks(X, TWO, rows_per_block=130))
    assert 100 < parts.search_rows_ <= 420 and parts.search_.evaluations > 1 and parts.score(X, TWO) > 0.85
    # The mode is that of all rows.
    fixed = {**options, "optimizer": None, "landmarks": parts.X_train_}
    found = GaussianProcessClassifier(parts.kernel_, approximation="nystroem", **{**fixed, "n_landmarks": 30})
    np.testing.assert_allclose(found.fit(X, TWO).predict_proba(NEW), parts.predict_proba(NEW), rtol=1e-6)
    assert not hasattr(parts.set_params(optimizer=None).fit(X, TWO), "search_rows_")


def test_collections_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    rows, labels = da.from_array(X, chunks=(130, 2)), da.from_array(THREE, chunks=130)
    parts = process().fit(rows, labels)
    np.testing.assert_allclose(parts.predict_proba(NEW), process().fit(X, THREE).predict_proba(NEW), rtol=1e-7)
    np.testing.assert_array_equal(parts.predict(rows).compute(), parts.predict(X))


def test_what_rows_in_parts_cannot_do() -> None:
    blocks = Blocks(X, THREE, rows_per_block=130)
    with pytest.raises(ParameterError, match="approximation='nystroem' for rows that come in parts"):
        process(approximation="laplace").fit(blocks)
    with pytest.raises(ParameterError, match="multi_class='one_vs_rest' fits classifiers of two to rows in memory"):
        process(multi_class="one_vs_rest").fit(blocks)
    with pytest.raises(DataError, match="leave out y"):
        process().fit(blocks, THREE)
    assert process(multi_class="one_vs_rest").fit(Blocks(X, TWO)).classes_.tolist() == ["cold", "warm"]


def test_the_estimate_of_blocks_is_that_of_a_search_on_a_sample() -> None:
    options: dict[str, Any] = {"optimizer": "fmin_l_bfgs_b", "landmarks": "rpcholesky", "n_landmarks": 30}
    rows = np.tile(X, (40, 1))
    found = estimate(process(**options), Blocks(rows, np.tile(TWO, 40)))
    assert found.values_of_pass == 30 * len(rows) and found.passes < estimate(process(**options), rows).passes
