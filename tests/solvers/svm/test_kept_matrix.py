"""The whole matrix that several problems over the same rows share."""

from contextlib import ExitStack

import numpy as np
import pytest

import mercer
from mercer import SVC, svm_path
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.solvers.svm import active_set, smo
from mercer.solvers.svm.kept_matrix import KeptMatrix


@pytest.mark.parametrize("pad", [False, True])
def test_fits_problems_of_its_precision_and_padding(pad, rng):
    gram = Gram(RBF(1.0), rng.normal(size=(30, 2)))
    with ExitStack() as stack:
        kept = KeptMatrix(stack)
        assert not kept.fits(gram, pad) and kept.make(gram, pad)
        assert kept.fits(gram, pad) and not kept.fits(gram, not pad) and not kept.fits(gram.astype(np.float32), pad)
        np.testing.assert_array_equal(kept.square[:30, :30], gram.dense())
        assert kept.nbytes == kept.square.nbytes and kept.sentence.startswith("held whole in float64")


def test_is_not_made_without_memory_for_as_much_again(rng):
    gram = Gram(RBF(1.0), rng.normal(size=(30, 2)))
    with mercer.config(memory=2 * gram.nbytes - 1), ExitStack() as stack:
        assert not KeptMatrix(stack).make(gram, pad=False)
    with mercer.config(memory=2 * gram.nbytes), ExitStack() as stack:
        assert KeptMatrix(stack).make(gram, pad=False)


def test_a_path_makes_it_once(rng, monkeypatch):
    made = []
    make_matrix = KeptMatrix.make
    monkeypatch.setattr(KeptMatrix, "make", lambda self, gram, pad: made.append(1) or make_matrix(self, gram, pad))
    for module, name, value in (
        (smo, "WHOLE", 1),
        (smo, "EXACT", 1),
        (active_set, "FIRST", 40),
        (active_set, "_WIDE", 0),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("mercer.solvers.svm.pairwise.JOINED", 1)
    monkeypatch.setattr("mercer.solvers.svm.pairwise.EXACT", 1)
    X = rng.normal(size=(600, 3))
    y, Cs = X[:, 0] * X[:, 1] + 2 * rng.standard_normal(600) > 0, [0.1, 1.0, 10.0]
    path = svm_path(X, y, Cs, gamma=1.0)
    assert len(made) == 1
    for C, model in zip(Cs, path, strict=True):
        alone = SVC(C=C, gamma=1.0).fit(X, y)
        assert model.certificate_.storage.startswith("held whole in float32") and model.fit_status_ == 0
        assert model.certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-5)
