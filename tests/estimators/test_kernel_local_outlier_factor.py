"""Local outlier factors against scikit-learn, explicit features and their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_outlier_detector
from sklearn.neighbors import LocalOutlierFactor

from mercer import KernelLocalOutlierFactor, kernels
from mercer._errors import DataError, MercerWarning, ParameterError
from mercer.kernels import RBF, NegativeDistance, Polynomial, Spectrum

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(90, 3)), 2.0 * RNG.normal(size=(40, 3))


def _squares(A: np.ndarray) -> np.ndarray:
    """The features of <x, z>^2."""
    return np.einsum("ni,nj->nij", A, A).reshape(len(A), -1)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize(
    ("kernel", "features"),
    [("linear", lambda A: A), (Polynomial(2, scale=1.0, offset=0.0), _squares)],
    ids=["linear", "squares"],
)
def test_as_scikit_learn_on_explicit_features(kernel: Any, features: Any, count: int) -> None:
    ours = KernelLocalOutlierFactor(count, kernel=kernel).fit(X)
    theirs = LocalOutlierFactor(n_neighbors=count, novelty=True).fit(features(X))
    for method in ("score_samples", "decision_function", "predict"):
        np.testing.assert_allclose(getattr(ours, method)(NEW), getattr(theirs, method)(features(NEW)), rtol=1e-7)
    np.testing.assert_allclose(ours.negative_outlier_factor_, theirs.negative_outlier_factor_, rtol=1e-7)
    np.testing.assert_array_equal(ours.score_samples(None), ours.negative_outlier_factor_)
    assert ours.offset_ == theirs.offset_ and ours.n_neighbors_ == count and is_outlier_detector(ours)


def test_factors_by_their_definition() -> None:
    kernel, k = RBF(1.5), 5
    K = kernel(X, X)
    D = np.sqrt(2 - 2 * K)
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[:, :k]
    radius = np.sort(D, axis=1)[:, k - 1]
    density = [1 / np.mean([max(D[i, j], radius[j]) for j in near[i]]) for i in range(len(X))]
    expected = [-np.mean([density[j] / density[i] for j in near[i]]) for i in range(len(X))]
    model = KernelLocalOutlierFactor(k, kernel=kernel).fit(X)
    np.testing.assert_allclose(model.negative_outlier_factor_, expected, rtol=1e-9)
    of_matrix = KernelLocalOutlierFactor(k, kernel="precomputed").fit(K)
    np.testing.assert_allclose(of_matrix.score_samples(kernel(NEW, X)), model.score_samples(NEW), rtol=1e-7)
    given = of_matrix.decision_function(kernel(NEW, X), diagonal=np.ones(len(NEW)))
    np.testing.assert_allclose(given, model.decision_function(NEW), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_does_not_matter(unit: float) -> None:
    doubled = np.repeat(X[:40], 1 + 3 * (np.arange(40) % 2), axis=0)
    for rows, kernel in ((X, "linear"), (X, NegativeDistance()), (doubled, "linear")):
        plain, scaled = (KernelLocalOutlierFactor(3, kernel=kernel).fit(u * rows) for u in (1.0, unit))
        np.testing.assert_allclose(scaled.score_samples(unit * NEW), plain.score_samples(NEW), rtol=1e-6)


def test_rows_that_are_equal_are_inside() -> None:
    with pytest.warns(MercerWarning, match="rows of X are equal"):
        model = KernelLocalOutlierFactor(2).fit(np.ones((6, 2)))
    assert model.predict([[1.0, 1.0], [5.0, 5.0]]).tolist() == [1, -1]


def test_strings_and_few_rows() -> None:
    words = [f"user {n} logged {way}" for n in range(8) for way in ("in", "out")]
    model = KernelLocalOutlierFactor(5, kernel=Spectrum(3).normalized()).fit(words)
    assert model.score_samples(["DROP TABLE users;"])[0] < model.negative_outlier_factor_.min()
    with pytest.warns(MercerWarning, match="n_neighbors = 20, but each of the 7 rows has only 6 others"):
        few = KernelLocalOutlierFactor(kernel=kernels.Linear()).fit(X[:7])
    assert few.n_neighbors_ == 6 and few.kneighbors(NEW)[1].shape == (40, 6)
    with pytest.raises(DataError, match="at least two rows, but X has n_samples = 1"):
        KernelLocalOutlierFactor().fit(X[:1])
    with pytest.raises(ParameterError, match="n_neighbors must be a whole number"):
        KernelLocalOutlierFactor(0).fit(X)
