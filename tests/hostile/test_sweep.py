"""Hostile input gives a finite answer or a documented error, for every estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import mercer
from estimator_table import X, every_estimator
from hostile.sweep import case, run
from mercer import SVC, SVR, BayesianLinearRegression, KernelKMeans, KernelMachine, KernelNeighborsRegressor, KernelPCA
from mercer._errors import DataError, MercerError, NumericalError

EVERYDAY, WHOLE, PARTS = 200, 4_200, 12
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(30, 3))
Y = ROWS[:, 0]


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in (2, 3))])
def test_a_sample_of_the_sweep(part):
    """Some of each estimator, other ones than the first."""
    for number in range(100_000 + part, 100_000 + EVERYDAY, 4):
        run(case(number))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_whole_sweep(part):
    for number in range(part, WHOLE, PARTS):
        run(case(number))


@every_estimator
def test_weights_of_any_size(model, y):
    """As far as the estimator takes weights: those that leave the range of numbers are an error, others an answer."""
    if not has_fit_parameter(model, "sample_weight"):
        pytest.skip("takes no weights")
    with pytest.raises(DataError, match=r"the largest sample_weight is 1e\+300"):
        clone(model).fit(X, y, sample_weight=np.full(len(X), 1e300))
    # Weights that change no sum are those of rows left out.
    weight = np.ones(len(X))
    weight[::3] = 1e-200
    small, without = clone(model).fit(X, y, sample_weight=weight), clone(model).fit(X, y, sample_weight=weight > 0.5)
    np.testing.assert_array_equal(small.predict(X), without.predict(X))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (mercer.KernelRidge(), "KernelRidge learns numbers, but y holds 'a' "),
        (SVR(), "SVR learns numbers"),
        (BayesianLinearRegression(), "BayesianLinearRegression learns numbers"),
        (KernelNeighborsRegressor(2), "KernelNeighborsRegressor learns numbers"),
        (mercer.OnlineKernelRegressor(), "OnlineKernelRegressor learns numbers"),
        (mercer.GaussianProcessRegressor(), "GaussianProcessRegressor learns numbers"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_letters_are_no_numbers(model, words):
    with pytest.raises(DataError, match=words):
        model.fit(ROWS[:5], list("abcde"))


@pytest.mark.parametrize("number", [3689, 9660])
def test_cases_of_the_whole_sweep_that_failed(number):
    run(case(number))


def test_what_was_found():
    """Each of these was an exception of Python or NumPy, or an answer that is not a number."""
    with pytest.raises(NumericalError, match=r"squared length of .* is too small for float64; scale y"):
        BayesianLinearRegression().fit(ROWS, 1e-160 * Y)
    with pytest.raises(MercerError):
        mercer.KernelRidge("loo", kernel="rbf").fit(ROWS, 1e307 * Y)
    for model in (KernelNeighborsRegressor(), mercer.KernelQuantileRegression()):
        with pytest.raises(DataError, match=r"y reaches 1.7e\+308, where sums of predictions overflow float64"):
            model.fit(ROWS, np.full(30, 1.7e308))
    with pytest.raises(DataError, match=r"y reaches .* overflow float32, the precision of X"):
        mercer.KernelRidge().fit(ROWS.astype(np.float32), 1e40 * Y)
    with pytest.raises(NumericalError, match="penalties of this size leave the range"):
        mercer.KernelRidge("evidence").fit(1e-160 * ROWS, Y)
    assert np.isfinite(SVC(C=1e300).fit(ROWS, Y > 0).decision_function(ROWS)).all()
    # Rounding leaves it no further step, however many are allowed.
    steep = KernelMachine("huber", mercer.losses.NormPower(3.0), max_iter=300).fit(ROWS, 1e150 * Y)
    assert np.isfinite(steep.predict(ROWS)).all()
    result = KernelPCA(2, kernel="rbf").fit_transform(ROWS * [1e6, 1.0, 1.0])
    assert result.shape == (30, 2) and np.isfinite(result).all()
    spread = KernelKMeans(2, random_state=0).fit(ROWS, sample_weight=np.full(30, 1e-20)).transform(ROWS)
    assert np.isfinite(spread).all()
