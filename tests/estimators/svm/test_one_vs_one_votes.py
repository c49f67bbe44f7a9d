"""One-vs-rest decision values of the default tolerance against those of the exact solution."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC as Reference

from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.svc import SVC
from mercer.solvers.svm.smo import EXACT

# How far the value of a pair may be from the exact one, in units of tol. The optimality conditions bound their own
# violation by tol, not this error, which was 0.6 to 2.8 times tol on rows drawn like these with four seeds.
ERROR_IN_TOL = 10.0


def values_of(model, X):
    """The ovr values and those of the pairs."""
    of_classes = model.set_params(decision_function_shape="ovr").decision_function(X)
    return of_classes, model.set_params(decision_function_shape="ovo").decision_function(X)


def test_small_pairs_vote_as_the_exact_solution():
    X, y = load_digits(return_X_y=True)
    sizes = np.sort(np.bincount(y))
    assert sizes[-2:].sum() <= EXACT
    exact, of_pairs = values_of(SVC(tol=1e-10).fit(X, y), X)
    ours = SVC().fit(X, y).decision_function(X)
    certain = (np.abs(of_pairs) > 1e-8).all(axis=1)
    assert certain.mean() > 0.99
    np.testing.assert_allclose(ours[certain], exact[certain], rtol=0.0, atol=1e-7)
    theirs = Reference().fit(X, y).decision_function(X)
    assert np.sum(np.abs(ours - exact) > 0.1) <= np.sum(np.abs(theirs - exact) > 0.1)


@pytest.mark.parametrize("kind, parameters", [(SVC, {}), (SVC, {"C": 10.0, "gamma": 0.02}), (NuSVC, {"nu": 0.2})])
def test_large_pairs_vote_as_the_exact_solution_where_values_exceed_the_tolerance(kind, parameters):
    k = 4
    rng = np.random.default_rng(0)
    y = np.arange(1200) % k
    assert np.sort(np.bincount(y))[:2].sum() > EXACT
    X = rng.standard_normal((k, 8))[y] + rng.standard_normal((len(y), 8))
    exact, exact_pairs = values_of(kind(**parameters, tol=1e-10).fit(X, y), X)
    model = kind(**parameters).fit(X, y)
    ours, pairs = values_of(model, X)
    error = ERROR_IN_TOL * model.tol
    assert np.abs(pairs - exact_pairs).max() <= error
    certain = (np.abs(exact_pairs) > error).all(axis=1)
    assert certain.mean() > 0.9
    # The sum of the k - 1 values of a class moves its ovr value with a slope of at most 1/3.
    np.testing.assert_allclose(ours[certain], exact[certain], rtol=0.0, atol=(k - 1) * error / 3.0)
