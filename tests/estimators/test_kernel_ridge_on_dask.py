"""KernelRidge on collections of Dask: with threads of this process, and with a cluster whose worker is killed."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from mercer import Blocks, KernelRidge
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=2000)
WEIGHTS = RNG.uniform(0.0, 2.0, 2000)


def ridge(**options):
    defaults = {"kernel": RBF(1.0), "approximation": "nystroem", "n_landmarks": 60, "random_state": 0}
    return KernelRidge(0.1, **{**defaults, **options})


def collections(rows=300):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(Y, chunks=700), da.from_array(WEIGHTS, chunks=rows)


def test_partitions_have_the_answer_of_arrays():
    given = X[:60]
    whole = ridge(landmarks=given, tol=1e-12).fit(X, Y, WEIGHTS)
    parts = ridge(landmarks=given, tol=1e-12).fit(*collections())
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-10)


def test_coefficients_agree_to_the_tolerance():
    given, tol = X[:60], 1e-18
    whole = ridge(landmarks=given, tol=tol).fit(X, Y, WEIGHTS).dual_coef_
    parts = ridge(landmarks=given, tol=tol).fit(*collections()).dual_coef_
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-10 * np.abs(whole).max())


def test_predictions_are_made_when_they_are_asked_for():
    model = ridge().fit(*collections())
    lazy = model.predict(da.from_array(X, chunks=(500, 3)))
    assert isinstance(lazy, da.Array) and lazy.chunks == ((500,) * 4,)
    np.testing.assert_allclose(lazy.compute(), model.predict(X), atol=1e-12)
    two = ridge().fit(collections()[0], da.from_array(np.column_stack([Y, Y]), chunks=(300, 2)))
    assert two.predict(da.from_array(X, chunks=(500, 3))).compute().shape == (2000, 2)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y), npartitions=4)
    model = ridge().fit(frame[["a", "b", "c"]], frame["y"])
    rows = frame[["a", "b", "c"]]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"] and model.score(rows.compute(), Y) > 0.95
    np.testing.assert_allclose(model.predict(rows).compute(), model.predict(rows.compute()), atol=1e-12)


def test_what_cannot_be_done_is_said(tmp_path):
    rows, targets, _ = collections()
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        KernelRidge().fit(rows, targets)
    with pytest.raises(DataError, match="must be a collection of Dask"):
        ridge().fit(rows, Y)
    with pytest.raises(DataError, match="needs targets"):
        ridge().fit(rows)
    with pytest.raises(ParameterError, match="rows on this machine"):
        ridge(checkpoint=tmp_path / "run.checkpoint").fit(rows, targets)
    with pytest.raises(DataError, match="NaN"):
        ridge().fit(da.where(rows > 2.0, np.nan, rows), targets)
    with pytest.raises(DataError):
        ridge().fit(rows, targets[:-1])


def test_empty_partitions_do_no_harm():
    rows = da.concatenate([da.from_array(X[:900], chunks=(300, 3)), da.zeros((0, 3)), da.from_array(X[900:])])
    targets = da.concatenate([da.from_array(Y[:900], chunks=300), da.zeros(0), da.from_array(Y[900:])])
    given = X[:60]
    model, whole = ridge(landmarks=given).fit(rows, targets), ridge(landmarks=given).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-3)
    with pytest.raises(DataError, match="no rows"):
        ridge().fit(rows[:0], targets[:0])


def test_blocks_of_a_collection():
    rows, targets, weights = collections()
    blocks = Blocks.from_dask(rows, targets, sample_weight=weights, rows_per_block=256)
    assert blocks.n == 2000
    arrays = Blocks(X, Y, sample_weight=WEIGHTS, rows_per_block=256)
    np.testing.assert_array_equal(ridge().fit(blocks).dual_coef_, ridge().fit(arrays).dual_coef_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_costs_its_work_alone():
    distributed = pytest.importorskip("distributed")
    given = X[:60]
    expected = ridge(landmarks=given, tol=1e-12).fit(*collections())
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        timer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
        model = ridge(landmarks=given, tol=1e-12)
        timer.start()
        for _ in range(2):
            model.fit(*collections())
        timer.join()
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-10, atol=1e-10)
