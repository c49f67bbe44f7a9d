"""Rows, targets and weights that NumPy would turn into other numbers in silence; sparse entries given twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import mercer
from estimator_table import CLASSES, X, bits, every_estimator, every_learner
from mercer._errors import DataError

MASK = np.zeros(X.shape, dtype=bool)
MASK[3, 1] = True
DATES = (X * 1000).astype("datetime64[s]")
UNREAL = [
    pytest.param(np.ma.masked_array(X, MASK), "X has 1 masked entries; fill them in", id="masked"),
    pytest.param(X + 0j, r"Complex data not supported: X holds complex numbers \(complex128\)", id="complex"),
    pytest.param(DATES, "X holds dates or times", id="dates"),
    pytest.param(DATES - DATES[0], "X holds dates or times", id="times"),
    pytest.param(pd.DataFrame(X).assign(when=DATES[:, 0]), "X holds dates or times", id="a column of dates"),
]


@pytest.mark.parametrize(("rows", "words"), UNREAL)
@every_learner
def test_rows_that_are_not_real_numbers(model, y, rows, words):
    with pytest.raises(DataError, match=words) as caught:
        clone(model).fit(rows, y)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("rows", "words"), UNREAL)
@pytest.mark.parametrize(
    "model", [mercer.BayesianLinearRegression(), mercer.maps.PolynomialMap()], ids=["linear", "map"]
)
def test_rows_of_learners_without_a_kernel(model, rows, words):
    with pytest.raises(DataError, match=words):
        clone(model).fit(rows, X[:, 0])
    fitted = clone(model).fit(X, X[:, 0] + np.cos(9 * X[:, 1]))
    with pytest.raises(DataError, match=words):
        getattr(fitted, "predict", getattr(fitted, "transform", None))(rows)


def test_new_rows():
    with pytest.raises(DataError, match="X has 1 masked entries"):
        mercer.SVC().fit(X, CLASSES).predict(UNREAL[0].values[0])


@every_estimator
def test_masked_targets_and_weights(model, y):
    if not isinstance(model, mercer.KernelKMeans | mercer.OneClassSVM | mercer.KernelLocalOutlierFactor):
        with pytest.raises(DataError, match="y has 1 masked entries"):
            clone(model).fit(X, np.ma.masked_array(y, MASK[:, 1]))
    if has_fit_parameter(model, "sample_weight"):
        with pytest.raises(DataError, match="sample_weight has 1 masked entries"):
            clone(model).fit(X, y, sample_weight=np.ma.masked_array(np.ones(len(X)), MASK[:, 1]))


@every_learner
def test_sparse_entries_given_twice_are_summed(model, y):
    """The same bits as where each is given once; the matrix that was passed stays as it is."""
    once = sp.csr_matrix(X)
    columns = np.tile(np.repeat(np.arange(X.shape[1]), 2), len(X))
    twice = sp.csr_matrix((np.repeat(X.ravel() / 2, 2), columns, 2 * once.indptr), shape=X.shape)
    for a, b in zip(bits(clone(model).fit(once, y)), bits(clone(model).fit(twice, y)), strict=True):
        np.testing.assert_array_equal(a.toarray() if sp.issparse(a) else a, b.toarray() if sp.issparse(b) else b)
    assert twice.nnz == 2 * once.nnz
