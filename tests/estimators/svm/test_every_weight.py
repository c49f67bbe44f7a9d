"""Rows whose weight is zero or below are left out of the support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import BaseEstimator, clone

import mercer
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer._errors import DataError, MercerWarning

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
LABELS = (X[:, 0] + 0.6 * RNG.normal(size=60) > 0).astype(int)
TARGETS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
WEIGHT = RNG.uniform(0.5, 2.0, size=60)
WEIGHT[:6], WEIGHT[6:9] = -0.5, 0.0
MACHINES: list[tuple[BaseEstimator, Any]] = [
    (SVC(), LABELS),
    (NuSVC(nu=0.3), LABELS),
    (SVR(), TARGETS),
    (NuSVR(), TARGETS),
    (OneClassSVM(), None),
]


@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_negative_weights_leave_rows_out_with_a_warning(machine: BaseEstimator, y: Any) -> None:
    with pytest.warns(MercerWarning, match=r"6 negative values \(the least is -0.5\).*left out"):
        model = clone(machine).fit(X, y, sample_weight=WEIGHT)
    without = clone(machine).fit(X[9:], None if y is None else y[9:], sample_weight=WEIGHT[9:])
    values = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(model, values)(X), getattr(without, values)(X), atol=1e-7)
    np.testing.assert_array_equal(model.support_, without.support_ + 9)
    assert model.shape_fit_ == X.shape


@pytest.mark.parametrize(("machine", "y"), MACHINES)
def test_attributes_and_values_are_those_of_sklearn(machine: BaseEstimator, y: Any) -> None:
    # The default gamma of scikit-learn counts the rows that are left out, too.
    shared = {"gamma": 1.0, "tol": 1e-6, **({"nu": machine.nu} if hasattr(machine, "nu") else {})}
    theirs = getattr(svm, type(machine).__name__)(**shared).fit(X, y, sample_weight=WEIGHT)
    with pytest.warns(MercerWarning, match="negative"):
        ours = type(machine)(**shared).fit(X, y, sample_weight=WEIGHT)
    for name in ("dual_coef_", "support_vectors_"):
        assert getattr(ours, name).ndim == getattr(theirs, name).ndim == 2
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.n_support_.shape == theirs.n_support_.shape
    # Positions in X; those of scikit-learn count the rows that were left.
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert not np.isin(np.arange(9), ours.support_).any()
    values = "predict" if isinstance(machine, SVR | NuSVR) else "decision_function"
    # In units of the decision function the tolerance of scikit-learn is relative to its weights.
    np.testing.assert_allclose(getattr(ours, values)(X), getattr(theirs, values)(X), atol=1e-4)


@pytest.mark.parametrize("machine", [SVC(), NuSVC()])
def test_a_class_without_weight_is_an_error_before_any_work(machine: BaseEstimator) -> None:
    with pytest.warns(MercerWarning, match="negative"), pytest.raises(DataError, match="at least two classes"):
        clone(machine).fit(X, LABELS, sample_weight=np.where(LABELS == 0, -1.0, 1.0))


def test_a_path_leaves_the_same_rows_out() -> None:
    with pytest.warns(MercerWarning, match="6 negative values"):
        path = mercer.svm_path(X, LABELS, [0.5, 2.0], sample_weight=WEIGHT)
    without = SVC(C=2.0).fit(X[9:], LABELS[9:], sample_weight=WEIGHT[9:])
    np.testing.assert_allclose(path[1].decision_function(X), without.decision_function(X), atol=1e-7)
