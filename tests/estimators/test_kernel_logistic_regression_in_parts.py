"""KernelLogisticRegression on blocks and on collections of Dask: labels of any kind, weights, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import Blocks, KernelLogisticRegression
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF
from mercer.solvers.restricted.journal import Journal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
CODES = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=700), [0.0, 1.5])
TWO = np.where(CODES > 0, "yes", "no")
THREE = np.array(["low", "middle", "top"])[CODES]
WEIGHTS = RNG.uniform(0.0, 2.0, 700)
LANDMARKS = X[:50]


def model(**options):
    defaults = {"kernel": RBF(1.0), "approximation": "nystroem", "landmarks": LANDMARKS, "tol": 1e-8, "random_state": 0}
    return KernelLogisticRegression(**{**defaults, **options})


@pytest.mark.parametrize("y", [TWO, THREE, CODES], ids=["two", "three", "numbers"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_blocks_have_the_answer_of_arrays(y, class_weight):
    whole = model(class_weight=class_weight).fit(X, y, WEIGHTS)
    parts = model(class_weight=class_weight).fit(Blocks(X, y, sample_weight=WEIGHTS, rows_per_block=170))
    assert parts.classes_.tolist() == whole.classes_.tolist()
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-3)
    blocks = Blocks(X, rows_per_block=170)
    np.testing.assert_array_equal(parts.predict(blocks), parts.predict(X))
    np.testing.assert_allclose(parts.predict_proba(blocks), parts.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_partitions_have_the_answer_of_arrays(y):
    da = pytest.importorskip("dask.array")
    codes = np.unique(y, return_inverse=True)[1]
    whole = model().fit(X, codes)
    parts = model().fit(da.from_array(X, chunks=(170, 3)), da.from_array(codes, chunks=170))
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-3)
    lazy = parts.predict_proba(da.from_array(X, chunks=(300, 3)))
    np.testing.assert_allclose(lazy.compute(), parts.predict_proba(X), atol=1e-12)
    assert parts.predict(da.from_array(X, chunks=(300, 3))).compute().tolist() == parts.predict(X).tolist()


def test_a_checkpoint_changes_nothing_but_the_way_of_the_rows(tmp_path):
    path = tmp_path / "run.checkpoint"
    kept = model(checkpoint=path).fit(X, TWO)
    assert not path.exists()
    np.testing.assert_array_equal(kept.dual_coef_, model().fit(Blocks.from_arrays(X, TWO)).dual_coef_)


def test_an_interrupted_fit_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    blocks = Blocks(X, TWO, rows_per_block=170)
    expected = model().fit(blocks)
    keep, count = Journal.keep, [0]

    def interrupted(self, *answer):
        keep(self, *answer)
        count[0] += 1
        if count[0] == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model(checkpoint=path).fit(blocks)
    assert path.exists()
    with pytest.raises(DataError, match="checkpoint of another fit"):
        model(checkpoint=path, C=2.0).fit(blocks)
    again = model(checkpoint=path).fit(blocks)
    np.testing.assert_array_equal(again.dual_coef_, expected.dual_coef_)
    assert count[0] > 5 and not path.exists()


def test_the_limit_of_steps_counts_for_blocks_as_well():
    with pytest.warns(ConvergenceWarning):
        stopped = model(max_iter=1, tol=1e-12).fit(Blocks(X, THREE))
    assert stopped.certificate_.iterations <= 12 and stopped.fit_status_ == 1


def test_what_cannot_be_done_is_said():
    with pytest.raises(DataError, match="class"):
        model().fit(Blocks(X, np.full(700, "yes")))
    with pytest.raises(DataError, match="no labels of classes"):
        model().fit(Blocks(X, X[:, 0]))
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        KernelLogisticRegression().fit(Blocks(X, TWO))
    with pytest.raises(DataError, match="needs targets"):
        model().fit(Blocks(X))
