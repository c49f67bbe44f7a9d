"""Targets that hardly any noise explains: the warning, and that its advice helps."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import GaussianProcessRegressor
from mercer._errors import MercerWarning
from mercer.kernels import RBF, Constant, Linear, Spectrum

# The first two are equal for kernels that compare pairs of symbols.
TEXTS, TARGETS = ["abcabc", "abcabc", "abcacb", "bbbaca"], np.array([0.0, 1.0, 2.0, 4.0])
EQUAL = r"equal rows have different targets: rows 0 and 1 are equal for .*, and have the targets 0\.0 and 1\.0, which"


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1000.0])
def test_equal_rows_with_different_targets_are_named(scale: float) -> None:
    model = GaussianProcessRegressor(scale * Spectrum(2), normalize_y=True)
    with pytest.warns(ConvergenceWarning, match=rf"{EQUAL}.* decided by rounding.* Pass noise=0\.1") as caught:
        model.fit(TEXTS, TARGETS)
    assert len(caught) == 1 and issubclass(caught[0].category, MercerWarning)


def test_what_the_warning_advises_ends_in_one_place() -> None:
    ends = []
    for scale in (1.0, 10.0, 100.0):
        for more in ({"noise": 0.1}, {"alpha": 0.1}):
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                model = GaussianProcessRegressor(scale * Spectrum(2), normalize_y=True, **more).fit(TEXTS, TARGETS)
            ends.append(model.log_marginal_likelihood_value_)
    np.testing.assert_allclose(ends[2:], ends[:2] * 2, rtol=1e-6)


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_a_misfit_is_told_without_equal_rows(mean: str) -> None:
    """Four points whose targets no line goes through."""
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    with pytest.warns(
        ConvergenceWarning, match=r"misses the target of row \d by 0\.\d+, which noise of the variance 1e-08 "
    ):
        # With 1e-10, the default, rounding decides whether there is a factor, which differs between processors.
        GaussianProcessRegressor(1.0 * Linear(), alpha=1e-8, mean=mean).fit(X, y)


def test_matrices_and_several_targets() -> None:
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match=r"equal for the kernel, and have the targets 0\.0 and 1\.0"):
        GaussianProcessRegressor(kernel="precomputed").fit(RBF(1.0)(X), TARGETS)
    both = np.c_[np.ones(4), TARGETS]
    with pytest.warns(ConvergenceWarning, match=r"have the targets \[1\.0, 0\.0\] and \[1\.0, 1\.0\]"):
        GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(X, both)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_targets_that_the_noise_explains_go_without_a_word() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 1))
    smooth = np.sin(6 * X[:, 0])
    options: list[dict[str, Any]] = [{"alpha": 0.01}, {"noise": 0.1}, {"alpha": np.full(40, 0.01)}]
    for more in options:
        GaussianProcessRegressor(1.0 * RBF(1.0), **more).fit(X, smooth + 0.1 * rng.normal(size=40))
    GaussianProcessRegressor(RBF(0.3), optimizer=None).fit(X, smooth)
    # Equal rows with equal targets.
    GaussianProcessRegressor(RBF(0.3), optimizer=None).fit(np.r_[X, X], np.r_[smooth, smooth])


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("objective", ["evidence", "loo"])
def test_deviations_that_are_far_too_small_are_told_and_the_advice_mends_them(mean: str, objective: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 100.0 * np.sin(2.0 * X[:, 0]) + 3.0 * rng.normal(size=200)
    options: dict[str, Any] = {"mean": mean, "objective": objective}
    with pytest.warns(ConvergenceWarning, match=r"times as far from their predictions by other rows as the") as caught:
        narrow = GaussianProcessRegressor(RBF(1.0), **options).fit(X, y)
    left_out = narrow.leave_one_out()
    far = np.sqrt(np.mean((y - left_out.mean) ** 2 / left_out.variance))
    message = str(caught[0].message)
    said, factor = (float(re.search(text, message)[1]) for text in (r"are ([\d.e+]+) times", r"Constant\(([\d.e+]+)\)"))
    assert said == pytest.approx(far, rel=0.5) and factor == pytest.approx(said**2, rel=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        GaussianProcessRegressor(Constant(factor) * RBF(1.0), **options).fit(X, y)
        GaussianProcessRegressor(Constant(factor) * narrow.kernel_, optimizer=None, **options).fit(X, y)
