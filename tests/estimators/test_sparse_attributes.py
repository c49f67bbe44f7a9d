"""Fitted to sparse X, the support vector machines have sparse attributes, as scikit-learn's have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, load, save, svm_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * (RNG.random((40, 3)) < 0.7)
LABELS = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.3, 0.3])
TARGETS = X[:, 0] - X[:, 1]
NEW = RNG.normal(size=(9, 3))
MACHINES: list[tuple[BaseEstimator, Any]] = [
    (SVC(kernel="linear"), LABELS),
    (SVC(kernel="linear"), LABELS > 0),
    (NuSVC(nu=0.2, kernel="linear"), LABELS),
    (SVR(kernel="linear"), TARGETS),
    (NuSVR(kernel="linear"), TARGETS),
    (OneClassSVM(kernel="linear"), None),
]
LAYOUTS = (sp.csr_matrix, sp.csr_array)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_attributes_are_csr_with_the_values_of_a_dense_fit(machine: BaseEstimator, y: Any, layout: type) -> None:
    dense, sparse = clone(machine).fit(X, y), clone(machine).fit(layout(X), y)
    for name in ("support_vectors_", "dual_coef_", "coef_"):
        value = getattr(sparse, name)
        assert isinstance(value, layout)
        assert isinstance(getattr(dense, name), np.ndarray)
        np.testing.assert_allclose(value.toarray(), getattr(dense, name), atol=1e-9)
    method = "decision_function" if hasattr(machine, "decision_function") else "predict"
    expected = getattr(dense, method)(NEW)
    np.testing.assert_allclose(getattr(sparse, method)(layout(NEW)), expected, atol=1e-9)
    np.testing.assert_allclose(getattr(sparse, method)(NEW), expected, atol=1e-9)


@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_sparse_attributes_are_saved_and_warm_start(machine: BaseEstimator, y: Any, tmp_path: Path) -> None:
    model = clone(machine).set_params(warm_start=True).fit(sp.csr_array(X), y)
    expected = model.predict(NEW)
    save(model, tmp_path / "model.mercer")
    loaded = load(tmp_path / "model.mercer")
    assert sp.issparse(loaded.dual_coef_)
    np.testing.assert_array_equal(loaded.predict(NEW), expected)
    again = loaded.fit(sp.csr_array(X), y).predict(NEW)
    # Targets without noise leave the weights of rows inside the tube open, not the function.
    np.testing.assert_allclose(again, expected, atol=2 * model.tol)


def test_no_support_vector_is_an_empty_sparse_matrix() -> None:
    model = SVR(kernel="linear", epsilon=1.0).fit(sp.csr_matrix(X), np.zeros(40))
    assert model.support_vectors_.data.size == model.dual_coef_.data.size == 0
    assert model.dual_coef_.shape == (1, 0)
    assert model.coef_.nnz == 0


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)])
@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_coef_cannot_be_written_to(machine: BaseEstimator, y: Any, rows: Any) -> None:
    model = clone(machine).fit(rows, y)
    with pytest.raises(AttributeError):
        model.coef_ = np.ones(3)
    entries = model.coef_.data if sp.issparse(rows) else model.coef_
    with pytest.raises(ValueError, match="read-only"):
        entries[:] = 0.0


def test_path_of_coefficients_of_sparse_rows() -> None:
    path = svm_path(sp.csr_matrix(X), LABELS, [0.1, 1.0], kernel="linear")
    np.testing.assert_allclose(path.coef_path, svm_path(X, LABELS, [0.1, 1.0], kernel="linear").coef_path, atol=1e-9)
