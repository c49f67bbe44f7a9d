"""KernelRidge on rows that are read block by block, and fits that go on after they were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from mercer import Blocks, KernelRidge, load, save
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=2000)
WEIGHTS = RNG.uniform(0.0, 2.0, 2000)


def ridge(**options):
    defaults = {"kernel": RBF(1.0), "approximation": "nystroem", "n_landmarks": 60, "random_state": 0}
    return KernelRidge(0.1, **{**defaults, **options})


def test_blocks_have_the_answer_of_arrays():
    given = X[:60]
    whole = ridge(landmarks=given, tol=1e-10).fit(X, Y, WEIGHTS)
    parts = ridge(landmarks=given, tol=1e-10).fit(Blocks(X, Y, sample_weight=WEIGHTS, rows_per_block=300))
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-4)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-9)
    blocks = Blocks(X, rows_per_block=170)
    np.testing.assert_allclose(parts.predict(blocks), parts.predict(X), atol=1e-12)


def test_files_and_several_targets(tmp_path):
    targets = np.column_stack([Y, X[:, 0]])
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", targets)
    blocks = Blocks.from_npy(tmp_path / "X.npy", tmp_path / "Y.npy", rows_per_block=512)
    model = ridge().fit(blocks)
    assert model.predict(X).shape == (2000, 2) and model.score(X, targets) > 0.95
    np.testing.assert_array_equal(model.dual_coef_, ridge().fit(blocks).dual_coef_)


def test_names_of_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)
    model = ridge().fit(Blocks(frame, target="y"))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.score(frame[["a", "b", "c"]], Y) > 0.95
    blocks = Blocks(frame[["a", "b", "c"]], rows_per_block=300)
    np.testing.assert_allclose(model.predict(blocks), model.predict(frame[["a", "b", "c"]]), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(Blocks(frame[["c", "b", "a"]]))


def test_what_cannot_be_done_on_blocks_is_said():
    blocks = Blocks(X, Y)
    with pytest.raises(ParameterError, match="approximation='nystroem'"):
        KernelRidge().fit(blocks)
    with pytest.raises(DataError, match="leave out y"):
        ridge().fit(blocks, Y)
    with pytest.raises(DataError, match="needs targets"):
        ridge().fit(Blocks(X))
    with pytest.raises(ParameterError, match="path of a file"):
        ridge(checkpoint="no/such/folder/run").fit(X, Y)
    with pytest.raises(ParameterError, match="fits over landmarks"):
        KernelRidge(checkpoint="run.checkpoint").fit(X, Y)
    with pytest.raises((DataError, ParameterError)):
        ridge(kernel=Spectrum(2)).fit(Blocks(X, Y))


def test_a_checkpoint_is_gone_when_the_fit_is_done_and_changes_nothing(tmp_path):
    path = tmp_path / "run.checkpoint"
    kept = ridge(checkpoint=path).fit(X, Y, WEIGHTS)
    assert not path.exists()
    np.testing.assert_array_equal(
        kept.dual_coef_, ridge().fit(Blocks.from_arrays(X, Y, sample_weight=WEIGHTS)).dual_coef_
    )


def test_a_model_with_a_checkpoint_is_saved(tmp_path):
    model = ridge(checkpoint=tmp_path / "run.checkpoint").fit(X, Y)
    save(model, tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    assert again.checkpoint == str(tmp_path / "run.checkpoint")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


PROGRAM = """
    import sys
    import numpy as np
    from mercer import Blocks, KernelRidge, load, save
    from mercer.kernels import RBF
    import mercer.solvers.restricted.journal as journal
    journal._EVERY = 0.0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    y = np.sin(2 * X).sum(axis=1)
    print("started", flush=True)
    blocks = Blocks(X, y, rows_per_block=500)
    model = KernelRidge(
        1e-6, kernel=RBF(1.0), approximation="nystroem", n_landmarks=150, tol=1e-12, checkpoint=sys.argv[1]
    ).fit(blocks)
    np.save(sys.argv[2], model.dual_coef_)
"""


@pytest.mark.slow
def test_after_kills_the_bits_are_the_same(tmp_path):
    program = textwrap.dedent(PROGRAM)

    def run(name, seconds=None):
        command = [sys.executable, "-c", program, str(tmp_path / f"{name}.checkpoint"), str(tmp_path / f"{name}.npy")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ)
        assert process.stdout is not None and process.stdout.readline()
        if seconds is not None:
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        return process.returncode

    assert run("whole") == 0
    killed = 0
    for seconds in (0.05, 0.4):
        killed += run("killed", seconds) != 0
    assert run("killed") == 0 and killed > 0
    np.testing.assert_array_equal(np.load(tmp_path / "killed.npy"), np.load(tmp_path / "whole.npy"))
