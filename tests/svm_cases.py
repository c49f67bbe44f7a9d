"""Data and comparisons for the tests of the support vector classifiers."""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import SVC as Reference

from mercer.estimators.svc import SVC


def iris():
    X, y = load_iris(return_X_y=True)
    # Two rows are equal: how they share a weight is not determined.
    once = np.sort(np.unique(X, axis=0, return_index=True)[1])
    X, y = X[once], y[once]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def two_classes(n=200, seed=0):
    X, y = make_classification(n, 6, n_informative=4, flip_y=0.1, random_state=seed)
    return X, y


def fitted_pair(X, y, weight=None, **parameters):
    ours = SVC(**parameters).fit(X, y, weight)
    theirs = Reference(**parameters, tol=1e-8).fit(X, y, weight)
    return ours, theirs


def assert_same(ours, theirs, X, atol=2e-5):
    for shape in ("ovo", "ovr"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=atol)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)


def full_coef(model, n):
    coef = np.zeros((model.dual_coef_.shape[0], n))
    coef[:, model.support_] = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    return coef
