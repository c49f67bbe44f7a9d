"""The kernel of a table: equal parameters, the search, and the relevance of columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

from mercer.data.columns import MixedRows
from mercer.data.strings import Strings
from mercer.estimators.gaussian.covariance import KernelCovariance, NoisyCovariance, TiedCovariance
from mercer.estimators.tabular.mixture import Mixture, Repeats, RowNoise, learn, relevance, strata
from mercer.solvers.gaussian.regression import GaussianRegression, Objective

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60))[:, None]
Y = (Y - Y.mean()) / Y.std()


def problem(mixture: Mixture, rows: object, targets: np.ndarray) -> GaussianRegression:
    covariance = TiedCovariance(KernelCovariance(mixture.kernel, rows), mixture.places)
    return GaussianRegression(covariance, targets, np.full(len(targets), 1e-8), free_noise=True)


@pytest.mark.parametrize("targets", [1, 3])
def test_the_gradient_of_the_evidence_by_equal_parameters(targets: int) -> None:
    mixture = Mixture.of(np.array([0, 1, 1]))
    objective = Objective(problem(mixture, X, RNG.normal(size=(60, targets))))
    theta = mixture.start + 0.1 * RNG.normal(size=len(mixture.start))
    value, gradient = objective(theta)
    assert len(theta) == 7
    np.testing.assert_allclose(gradient, approx_fprime(theta, objective.value, 1e-6), rtol=1e-4, atol=1e-4)
    assert value == pytest.approx(objective.value(theta))


def test_the_prior_is_normal_about_the_mean_of_each_term() -> None:
    mixture = Mixture.of(np.array([0, 1, 1, 2]), deviation=0.7)
    theta = RNG.normal(size=9)
    value, gradient = mixture.log_prior(theta)
    terms = theta[1:4], theta[5:8]
    expected = sum(
        norm.logpdf(scales - scales.mean(), scale=0.7).sum() - 3 * norm.logpdf(0, scale=0.7) for scales in terms
    )
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda t: mixture.log_prior(t)[0], 1e-6), atol=1e-5)


def test_a_group_is_a_column_of_categories() -> None:
    """With one length scale for the indicators, all pairs of different values are equally far apart."""
    mixture = Mixture.of(np.array([0, 1, 1, 1]))
    theta = np.log([0.4, 1.0, 3.0, 0.6, 2.0, 5.0])
    kernel = mixture.kernel.with_theta(theta[mixture.places])
    rows = np.c_[np.zeros(3), np.eye(3)]
    off = kernel(rows)[np.triu_indices(3, 1)]
    u = np.sqrt(5 * 2 / 3.0**2)
    expected = 0.4 * (1 + u + u**2 / 3) * np.exp(-u) + 0.6 * np.exp(-2 / 5.0)
    np.testing.assert_allclose(off, expected)


def test_texts_have_terms_of_their_own() -> None:
    rows = MixedRows([X[:, 0], X[:, 1], Strings.of([f"row {i % 5} of them" for i in range(60)])])
    mixture = Mixture.of(np.array([0, 1]), 1)
    assert mixture.kernel(rows[:4]).shape == (4, 4)
    assert len(mixture.start) == len(mixture.bounds) == 3 + 3 + 1 + 1
    learned = learn(mixture, mixture.start, rows, Y, RowNoise())
    assert learned.search.value > Objective(problem(mixture, rows, Y)).value(mixture.start)


def test_groups_may_share_a_length_scale() -> None:
    mixture = Mixture.of(np.repeat(np.arange(100), 2), shared=np.zeros(100, np.intp))
    assert len(mixture.start) == 5


def test_strata_are_by_the_association_with_all_targets() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 30))
    targets = np.c_[3 * rows[:, 7] + np.square(rows[:, 11]), 2 * rows[:, 20]]
    found = strata(rows, np.arange(30), targets - targets.mean(axis=0))
    assert np.flatnonzero(found == 0).tolist() == [7, 11, 20]
    assert np.bincount(found).tolist() == [3, 12, 15]


def test_strata_of_equal_groups_of_constants_and_of_weighted_rows() -> None:
    random = np.random.default_rng(1)
    binary = random.integers(0, 2, (60, 3)).astype(float)
    rows = np.c_[binary, 1 - binary, np.full((60, 6), 0.1)]
    targets, weights = (binary[:, :1] - binary[:, :1].mean()), random.integers(1, 4, 60)
    found = strata(rows, np.repeat(np.arange(6), 2), targets, weights.astype(float))
    repeated = np.repeat(np.arange(60), weights)
    for order in (repeated, random.permutation(repeated)):
        assert strata(rows[order], np.repeat(np.arange(6), 2), targets[order]).tolist() == found.tolist()
    assert found[3:].tolist() == [1, 1, 1]
    # A column and its complement have the same rank, also where that splits no stratum evenly.
    single = strata(rows, np.arange(12), targets, weights.astype(float))
    assert single[:3].tolist() == single[3:6].tolist()


def test_the_search_ends_next_to_the_maximum() -> None:
    mixture = Mixture.of(np.arange(3))
    learned = learn(mixture, mixture.start, X, Y, RowNoise())
    assert learned.noise < 0.1
    objective = Objective(problem(mixture, X, Y))
    random = [mixture.start + RNG.normal(size=len(mixture.start)) for _ in range(30)]
    assert objective.value(learned.search.theta) > max(objective.value(theta) for theta in random)
    # The columns that say nothing have long scales.
    scales = learned.kernel.terms[0].kernel.length_scale  # type: ignore[attr-defined]
    assert scales[0] < min(scales[1:])


def test_relevance_is_the_total_index_of_sobol() -> None:
    """Of f = x_0 + 2 x_1 x_2 with independent normal columns: 1/5, 4/5 and 4/5."""
    rows = np.random.default_rng(1).normal(size=(4000, 4))
    found = np.mean(
        [
            relevance(
                lambda x: x[:, 0] + 2 * x[:, 1] * x[:, 2],
                rows,
                [np.array([j]) for j in range(4)],
                np.random.RandomState(s),
            )
            for s in range(20)
        ],
        axis=0,
    )
    np.testing.assert_allclose(found, [0.2, 0.8, 0.8, 0.0], atol=0.1)


def test_relevance_of_a_constant_function_is_none() -> None:
    found = relevance(lambda x: np.zeros(len(x)), X, [np.array([0]), np.zeros(0, np.intp)], np.random.RandomState(0))
    assert found.tolist() == [0.0, 0.0]


def test_the_evidence_with_weights_is_that_of_repeated_rows() -> None:
    mixture, counts = Mixture.of(np.arange(3)), np.random.default_rng(1).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    search = learn(mixture, mixture.start, X, Y, RowNoise(counts.astype(float), least=0.01)).search
    evidence = Objective(problem(mixture, X[rows], Y[rows])).value(search.theta) + mixture.log_prior(search.theta)[0]
    assert search.value - 0.5 * (counts.sum() - 60) * np.log(2 * np.pi) == pytest.approx(evidence, abs=1e-3)


@pytest.mark.parametrize("weights", [None, RNG.integers(1, 4, 60).astype(float)])
def test_the_gradient_with_noise_of_gaps(weights: np.ndarray | None) -> None:
    mixture, missing = Mixture.of(np.arange(3), gaps=2), (RNG.uniform(size=(60, 2)) < 0.3).astype(float)
    covariance = NoisyCovariance(TiedCovariance(KernelCovariance(mixture.kernel, X), mixture.places), missing)
    objective = Objective(GaussianRegression(covariance, Y, np.full(60, 1e-8), free_noise=True))
    prior = mixture.log_prior if weights is None else Repeats(mixture, weights, missing, 1)
    theta = mixture.start + 0.1 * RNG.normal(size=11)
    for function in (objective, prior):
        expected = approx_fprime(theta, lambda t, function=function: function(t)[0], 1e-6)
        np.testing.assert_allclose(function(theta)[1], expected, rtol=1e-4, atol=1e-4)


def test_rows_with_gaps_have_a_noise_of_their_own() -> None:
    missing = np.zeros((60, 1))
    missing[::3] = 1.0
    targets = np.sin(X[:, :1]) + np.where(missing, 1.5, 0.05) * np.random.default_rng(5).normal(size=(60, 1))
    scale = targets.std()
    mixture = Mixture.of(np.arange(3), gaps=1)
    learned = learn(mixture, mixture.start, X, (targets - targets.mean()) / scale, RowNoise(missing=missing))
    assert learned.noise * scale**2 < 0.2**2 and 0.8 < np.sqrt(learned.gap_noise[0]) * scale < 2.5


def test_many_columns_with_gaps_share_their_noise() -> None:
    mixture, missing = Mixture.of(np.arange(3), gaps=12), (RNG.uniform(size=(60, 12)) < 0.1).astype(float)
    learned = learn(mixture, mixture.start, X, Y, RowNoise(missing=missing))
    assert mixture.noises == 1 and len(set(learned.gap_noise)) == 1 and len(learned.gap_noise) == 12


def test_the_noise_is_at_least_what_is_given() -> None:
    mixture = Mixture.of(np.arange(3))
    assert learn(mixture, mixture.start, X, Y, RowNoise()).noise < 0.1
    assert learn(mixture, mixture.start, X, Y, RowNoise(least=0.2)).noise == pytest.approx(0.2)
