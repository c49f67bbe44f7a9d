"""Gaussian process regression against scikit-learn, explicit formulas, explicit refits."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor as Sklearn
from sklearn.gaussian_process import kernels as their

import mercer
from mercer import GaussianProcessRegressor, KernelRidge
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError, MercerWarning, ParameterError
from mercer.kernels import RBF, Constant, Linear, Matern, NegativeDistance, Polynomial, Sigmoid, White
from mercer.priors import LogNormal, Normal
from regression_cases import ALPHA, NEW, OURS, THEIRS, TWO, X, Y, assert_same_predictions


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("y", [Y, TWO, Y[:, None]], ids=["one target", "two targets", "one column"])
    @pytest.mark.parametrize(
        "options", [{}, {"normalize_y": True}, {"alpha": ALPHA}, {"alpha": np.array([0.3])}, {"copy_X_train": False}]
    )
    def test_without_a_search(self, y: np.ndarray, options: dict) -> None:
        ours = GaussianProcessRegressor(THEIRS, optimizer=None, **options).fit(X, y)
        theirs = Sklearn(THEIRS, optimizer=None, **options).fit(X, y)
        assert_same_predictions(ours, theirs)
        for name in ("L_", "alpha_", "X_train_", "y_train_"):
            assert getattr(ours, name).shape == getattr(theirs, name).shape
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)
        value = theirs.log_marginal_likelihood_value_
        assert ours.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-11)
        assert ours.log_marginal_likelihood() == ours.log_marginal_likelihood_value_
        theta = np.array([0.3, 0.1, -0.2, 0.5, -1.0])
        evidence, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
        expected, slopes = theirs.log_marginal_likelihood(theta, eval_gradient=True)
        assert evidence == pytest.approx(expected, rel=1e-10)
        assert ours.log_marginal_likelihood(theta) == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-8)

    @pytest.mark.parametrize("kernel", [None, THEIRS, 2.0 * their.Matern(1.0, nu=1.5) + their.WhiteKernel()])
    def test_with_a_search(self, kernel: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = GaussianProcessRegressor(kernel, alpha=0.01).fit(X, Y)
            # Whether the parameters of its default are free depends on its version.
            theirs = Sklearn(their.ConstantKernel() * their.RBF() if kernel is None else kernel, alpha=0.01).fit(X, Y)
        assert ours.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-4
        assert ours.search_.best.ended == "converged" and ours.certificate_.iterations == ours.search_.evaluations
        assert_same_predictions(ours, theirs, tolerance=1e-2)
        assert len(ours.theta_) == len(theirs.kernel_.theta)

    def test_restarts_begin_where_theirs_do(self) -> None:
        starts: list[np.ndarray] = []

        def stay(objective: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
            starts.append(start)
            return start, objective(start, eval_gradient=False)

        kernel = their.ConstantKernel(1.0) * their.RBF(1.0)
        options = {"optimizer": stay, "n_restarts_optimizer": 3, "random_state": 7, "alpha": 0.1}
        Sklearn(kernel, **options).fit(X, Y)
        expected, starts = starts, []
        ours = GaussianProcessRegressor(kernel, **options).fit(X, Y)
        np.testing.assert_allclose([t.start for t in ours.search_.trials], expected, rtol=1e-12)
        best = max(ours.search_.trials, key=lambda t: t.value)
        assert tuple(ours.theta_) == best.theta and ours.log_marginal_likelihood_value_ == pytest.approx(best.value)

    def test_the_prior(self) -> None:
        for targets in (None, 2):
            ours, theirs = (kind(THEIRS, n_targets=targets) for kind in (GaussianProcessRegressor, Sklearn))
            for kind in ("return_std", "return_cov"):
                pairs = zip(ours.predict(NEW, **{kind: True}), theirs.predict(NEW, **{kind: True}), strict=True)
                for a, b in pairs:
                    assert a.shape == b.shape
                    np.testing.assert_allclose(a, b, atol=1e-12)
            assert ours.predict(NEW).shape == theirs.predict(NEW).shape
        assert GaussianProcessRegressor().predict(NEW, return_std=True)[1].tolist() == [1.0] * 25

    def test_parameters_have_their_names_and_defaults(self) -> None:
        ours, theirs = GaussianProcessRegressor().get_params(), Sklearn().get_params()
        # By default, there are starts from the data.
        assert theirs | {"n_restarts_optimizer": "auto"} == {name: ours[name] for name in theirs}


class TestMeanFunctions:
    @pytest.mark.parametrize("mean", ["constant", "linear"])
    def test_is_the_limit_of_a_wide_prior(self, mean: str) -> None:
        wide = 1e6
        kernel = 1.5 * RBF(1.0)
        prior = Constant(wide) if mean == "constant" else wide * Linear() + wide
        exact = GaussianProcessRegressor(kernel, alpha=0.01, mean=mean, optimizer=None).fit(X, TWO)
        limit = GaussianProcessRegressor(kernel + prior, alpha=0.01, optimizer=None).fit(X, TWO)
        assert_same_predictions(exact, limit, tolerance=1e-5)
        # The width counts once for each coefficient of each target.
        count = 2 * (1 if mean == "constant" else 4)
        shift = 0.5 * count * math.log(2 * math.pi * wide)
        expected = limit.log_marginal_likelihood_value_ + shift
        assert exact.log_marginal_likelihood_value_ == pytest.approx(expected, abs=1e-3)
        left_out = limit.leave_one_out()
        for a, b in zip(exact.leave_one_out(), left_out, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)

    def test_coefficients_are_in_the_units_of_the_data(self) -> None:
        rows = X + np.array([100.0, 0.0, -3.0])
        y = np.c_[3.0 + rows @ [1.0, -2.0, 0.5], 5.0 - rows @ [0.0, 4.0, 1.0]]
        model = GaussianProcessRegressor(RBF(0.5), alpha=1e-4, mean="linear", normalize_y=True, optimizer=None).fit(
            rows, y
        )
        np.testing.assert_allclose(model.mean_coef_, [[3, 5], [1, 0], [-2, -4], [0.5, -1]], atol=1e-7)
        far = rows + 50.0
        expected = np.c_[3.0 + far @ [1, -2, 0.5], 5.0 - far @ [0, 4, 1]]
        np.testing.assert_allclose(model.predict(far), expected, atol=1e-6)
        assert model.predict(far, return_std=True)[1].min() > model.predict(rows, return_std=True)[1].max()
        constant = GaussianProcessRegressor(RBF(1.0), mean="constant", alpha=0.1, optimizer=None).fit(X, Y + 1e3)
        assert constant.mean_coef_.shape == (1,) and abs(constant.mean_coef_[0] - 1e3) < 3
        assert GaussianProcessRegressor(RBF(1.0), optimizer=None, alpha=0.1).fit(X, Y).mean_coef_ is None

    def test_a_shift_of_the_targets_shifts_the_predictions_alone(self) -> None:
        model = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1, mean="constant")
        plain, moved = clone(model).fit(X, Y), clone(model).fit(X, Y + 1e4)
        np.testing.assert_allclose(moved.theta_, plain.theta_, atol=1e-3)
        np.testing.assert_allclose(moved.predict(NEW) - 1e4, plain.predict(NEW), atol=1e-3)


class TestNoise:
    def test_is_a_white_term_that_predictions_leave_out(self) -> None:
        ours = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1).fit(X, Y)
        white = GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1).bounded(variance=(1e-8, 1e5))).fit(X, Y)
        assert ours.log_marginal_likelihood_value_ == pytest.approx(white.log_marginal_likelihood_value_, abs=1e-5)
        assert ours.noise_ == pytest.approx(white.kernel_.terms[1].variance, rel=1e-2)
        assert ours.theta_[-1] == math.log(ours.noise_)
        (mean, std), (their_mean, their_std) = (m.predict(NEW, return_std=True) for m in (ours, white))
        np.testing.assert_allclose(mean, their_mean, atol=1e-3)
        np.testing.assert_allclose(std**2 + ours.noise_, their_std**2, rtol=1e-2)
        value, gradient = ours.log_marginal_likelihood(ours.theta_, eval_gradient=True)
        assert value == pytest.approx(ours.log_marginal_likelihood_value_, abs=1e-8)
        assert np.abs(gradient).max() < 0.05

    def test_stays_between_its_bounds(self) -> None:
        with pytest.warns(MercerWarning, match="left noise at its lower bound"):
            model = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.5, noise_bounds=(0.3, 2.0)).fit(X, Y)
        assert model.noise_ == pytest.approx(0.3)
        assert GaussianProcessRegressor(RBF(1.0), noise=0.5, optimizer=None).fit(X, Y).noise_ == 0.5
        assert GaussianProcessRegressor(RBF(1.0), alpha=0.1).fit(X, Y).noise_ is None


class TestSearch:
    def test_priors_pull(self) -> None:
        free = GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1).fit(X, Y)
        tight = GaussianProcessRegressor(
            1.0 * RBF(1.0), noise=0.1, priors={"kernel.length_scale": Normal(0.5, 1e-3), "noise": LogNormal(-1.0, 2.0)}
        ).fit(X, Y)
        assert abs(tight.kernel_.kernel.length_scale - 0.5) < 0.02 < abs(free.kernel_.kernel.length_scale - 0.5)
        assert tight.search_.value != tight.log_marginal_likelihood_value_
        assert tight.log_marginal_likelihood_value_ < free.log_marginal_likelihood_value_

    def test_leave_one_out_as_the_objective(self) -> None:
        ours, evidence = (
            GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1, objective=o).fit(X, Y) for o in ("loo", "evidence")
        )
        assert ours.search_.value == pytest.approx(ours.leave_one_out().log_density.sum(), rel=1e-10)
        assert ours.search_.value > evidence.leave_one_out().log_density.sum()
        assert ours.log_marginal_likelihood_value_ < evidence.log_marginal_likelihood_value_

    def test_the_seed_and_not_the_threads_decide(self) -> None:
        model = GaussianProcessRegressor(1.0 * RBF([1.0] * 3), noise=0.1, n_restarts_optimizer=4, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, two = (clone(model).set_params(n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
            alone = clone(model).set_params(n_restarts_optimizer=0).fit(X, Y)
        assert one.search_ == two.search_ and len(one.search_.trials) == 5
        np.testing.assert_array_equal(one.predict(NEW), two.predict(NEW))
        # On one thread and on several BLAS rounds in other places.
        assert one.log_marginal_likelihood_value_ >= alone.log_marginal_likelihood_value_ - 1e-8

    def test_nothing_to_search_for(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0).fixed(), alpha=0.1).fit(X, Y)
        assert model.search_ is None and model.theta_.shape == (0,) and model.kernel_ == RBF(1.0).fixed()
        value, gradient = model.log_marginal_likelihood([], eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_) and gradient.shape == (0,)


def test_two_targets_are_two_processes() -> None:
    model = GaussianProcessRegressor(OURS, alpha=0.01, mean="linear", optimizer=None)
    both = clone(model).fit(X, TWO)
    alone = [clone(model).fit(X, y) for y in TWO.T]
    total = sum(m.log_marginal_likelihood_value_ for m in alone)
    assert both.log_marginal_likelihood_value_ == pytest.approx(total, rel=1e-12)
    mean, std = both.predict(NEW, return_std=True)
    for t, one in enumerate(alone):
        expected, deviation = one.predict(NEW, return_std=True)
        np.testing.assert_allclose(mean[:, t], expected, atol=1e-11)
        np.testing.assert_allclose(std[:, t], deviation, atol=1e-12)


def test_the_mean_is_that_of_kernel_ridge_regression() -> None:
    ridge = KernelRidge(0.3, kernel=RBF(1.0)).fit(X, Y)
    process = GaussianProcessRegressor(RBF(1.0), alpha=0.3, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(process.predict(NEW), ridge.predict(NEW), atol=1e-12)
    np.testing.assert_allclose(process.leave_one_out().mean, ridge.loo_predictions_, atol=1e-10)


def test_precomputed_matrices() -> None:
    kernel = 1.5 * RBF(1.0)
    on_matrix = GaussianProcessRegressor("precomputed", noise=0.1, mean="constant").fit(kernel(X), Y)
    on_rows = GaussianProcessRegressor(kernel.fixed(), noise=0.1, mean="constant").fit(X, Y)
    np.testing.assert_allclose(on_matrix.predict(kernel(NEW, X)), on_rows.predict(NEW), atol=1e-9)
    assert on_matrix.noise_ == pytest.approx(on_rows.noise_, rel=1e-9) and on_matrix.kernel_ is None
    np.testing.assert_allclose(on_matrix.leave_one_out(), on_rows.leave_one_out(), rtol=1e-8)
    for call in (lambda: on_matrix.predict(kernel(NEW, X), return_std=True), lambda: on_matrix.condition_on(X, Y)):
        with pytest.raises(ParameterError, match="precomputed matrix does not contain k"):
            call()


def test_scikit_learns_periodic_kernel_on_one_column() -> None:
    kernel = 2.0 * their.RBF(3.0) * their.ExpSineSquared(1.0, 2.0) + their.WhiteKernel(0.1)
    ours = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:, :1], Y)
    assert "Periodic" in repr(ours.kernel_)
    assert_same_predictions(ours, Sklearn(kernel, optimizer=None).fit(X[:, :1], Y), NEW[:, :1])
    with pytest.raises(IndefiniteKernelError, match="indefinite"):
        GaussianProcessRegressor(kernel, optimizer=None, allow_indefinite=False).fit(X, Y)


class TestJitter:
    def test_is_said_and_kept(self) -> None:
        rows = np.repeat(X, 2, axis=0)
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.0, optimizer=None)
        with pytest.warns(MercerWarning, match=r"not positive definite to working precision, so 1e-\d+ was added"):
            model.fit(rows, np.repeat(Y, 2))
        assert model.jitter_ == model.certificate_.violations["jitter"] > 0
        assert model.certificate_.status.name == "jittered" and "raise alpha" in model.certificate_.explain()
        np.testing.assert_allclose(model.predict(X), Y, atol=1e-3)

    def test_a_search_goes_through_where_the_matrix_is_singular(self) -> None:
        x = np.linspace(0, 1, 40)[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GaussianProcessRegressor(1.0 * RBF(10.0), alpha=0.0).fit(x, np.sin(9 * x).ravel())
        assert math.isfinite(model.log_marginal_likelihood_value_)
        np.testing.assert_allclose(model.predict(x), np.sin(9 * x).ravel(), atol=1e-3)

    def test_indefinite_kernels_are_shifted_as_far_as_asked(self) -> None:
        kernel = Sigmoid(1.0, offset=-1.0)
        lowest = np.linalg.eigvalsh(kernel(X))[0]
        with pytest.raises(IndefiniteKernelError, match="allow_indefinite=True"):
            GaussianProcessRegressor(kernel, optimizer=None, allow_indefinite=False).fit(X, Y)
        with pytest.warns(MercerWarning, match="was added"):
            model = GaussianProcessRegressor(kernel, optimizer=None, allow_indefinite=True).fit(X, Y)
        assert model.jitter_ > -lowest > 0 and not model.certificate_.convex
        with pytest.raises(IndefiniteKernelError, match="only conditionally positive"):
            GaussianProcessRegressor(NegativeDistance(), optimizer=None, allow_indefinite=False).fit(X, Y)


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"alpha": -1.0}, "alpha must be finite and at least 0, but is -1"),
            ({"alpha": [0.1, 0.2]}, "there are 60 rows, and its shape is"),
            ({"alpha": "much"}, "alpha must be a number or one for each row"),
            ({"alpha": np.full(60, np.nan)}, "alpha must be finite"),
            ({"noise": 0.0}, "noise must be 'auto', None or the positive variance at which the search starts"),
            ({"noise": "little"}, "noise must be 'auto', None or the positive variance"),
            ({"noise": 0.1, "noise_bounds": (0.0, 1.0)}, "noise_bounds must be above 0"),
            ({"noise": 0.1, "noise_bounds": 3}, "bounds of noise_bounds must be a pair"),
            ({"mean": "quadratic"}, "mean must be 'zero', 'constant' or 'linear', but is 'quadratic'"),
            ({"objective": "luck"}, "objective must be 'evidence' or 'loo'"),
            ({"optimizer": "adam"}, "optimizer must be 'fmin_l_bfgs_b', a function"),
            ({"n_restarts_optimizer": -1}, "n_restarts_optimizer must be a whole number of at least 0"),
            ({"n_restarts_optimizer": 1.5}, "n_restarts_optimizer must be a whole number"),
            ({"random_state": "seed"}, "random_state must be"),
            ({"normalize_y": 1.5}, "normalize_y must be True or False"),
            ({"n_targets": 2}, "n_targets is 2, and y has 1 columns"),
            ({"priors": {"scale": Normal()}}, "priors name 'scale', which is not a free parameter"),
            ({"priors": {"noise": Normal()}}, "priors name 'noise', which is not a free parameter"),
            ({"priors": {"length_scale": 1.0}}, r"must be one of mercer\.priors"),
            ({"kernel": "precomputed", "mean": "linear"}, "the kernel is precomputed"),
        ],
    )
    def test_parameters_that_are_refused(self, options: dict, words: str) -> None:
        with pytest.raises(ParameterError, match=words):
            GaussianProcessRegressor(**{"kernel": RBF(1.0), **options}).fit(X, Y)

    def test_thetas_that_are_refused(self) -> None:
        model = GaussianProcessRegressor(RBF(1.0), noise=0.1, optimizer=None).fit(X, Y)
        with pytest.raises(ParameterError, match=r"2 entries of theta_, but has 1.*log of the noise"):
            model.log_marginal_likelihood([0.0])
        with pytest.raises(ParameterError, match="a gradient needs theta"):
            model.log_marginal_likelihood(eval_gradient=True)
        with pytest.raises(NotFittedError):
            GaussianProcessRegressor().log_marginal_likelihood()

    def test_rows_that_are_too_few_for_the_mean(self) -> None:
        with pytest.raises(DataError, match="4 coefficients goes through all 4 rows"):
            GaussianProcessRegressor(RBF(1.0), mean="linear").fit(X[:4], Y[:4])
        one = GaussianProcessRegressor(RBF(1.0), alpha=0.5, optimizer=None).fit(X[:1], Y[:1])
        assert one.predict(X[:1])[0] == pytest.approx(Y[0] / 1.5)

    def test_constant_targets(self) -> None:
        for normalize in (False, True):
            with pytest.warns(MercerWarning, match="nothing to learn"):
                model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, normalize_y=normalize).fit(X, np.full(60, 0.1))
            assert np.isfinite(model.predict(NEW, return_std=True)).all()

    @pytest.mark.parametrize("normalize", [False, True])
    def test_targets_of_any_size(self, normalize: bool) -> None:
        with pytest.raises(DataError, match=r"y reaches up to 1e\+200, whose squares and theirs overflow"):
            GaussianProcessRegressor(RBF(1.0), normalize_y=normalize).fit(X, np.r_[1e200, Y[1:]])
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, normalize_y=normalize).fit(X, Y * 1e65)
        assert np.isfinite(model.predict(NEW, return_std=True)).all()

    def test_memory(self) -> None:
        with mercer.config(memory="20KiB"), pytest.raises(MemoryBudgetError, match=r"covariance matrix.*28\.1 KiB"):
            GaussianProcessRegressor(RBF(1.0), alpha=0.1).fit(X, Y)
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1).fit(X, Y)
        assert 8 * 60**2 <= model.certificate_.peak_bytes <= 4 * 8 * 60**2


def test_kernels_of_every_shape_find_their_parameters() -> None:
    kernel = 0.5 * RBF([1.0, 2.0]).on([0, 2]) + Matern(1.0, nu=2.5) * Polynomial(2).fixed() + White(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel).fit(X, Y)
    start = GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 1
    assert len(model.theta_) == len(kernel.theta)
    K = model.kernel_(X)
    K[np.diag_indices(60)] += 1e-10
    expected = multivariate_normal(np.zeros(60), K).logpdf(Y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_carbon_dioxide_at_mauna_loa() -> None:
    """The kernel of Rasmussen and Williams (2006), section 5.4.3, as in scikit-learn's example (version 0.22).

    On these monthly means, with their mean taken off, that example reports a log marginal likelihood of -115.050.
    """
    table = np.loadtxt(Path(__file__).parents[1] / "reference" / "mauna_loa_monthly.csv", delimiter=",", skiprows=4)
    x, y = (table[:, 0] + (table[:, 1] - 1) / 12)[:, None], table[:, 3] - table[:, 3].mean()
    kernel = (
        50.0**2 * their.RBF(50.0)
        + 2.0**2 * their.RBF(100.0) * their.ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
        + 0.5**2 * their.RationalQuadratic(1.0, 1.0)
        + 0.1**2 * their.RBF(0.1)
        + their.WhiteKernel(0.1**2, noise_level_bounds=(1e-3, 1e5))
    )
    model = GaussianProcessRegressor(kernel, alpha=0.0).fit(x, y)
    assert model.log_marginal_likelihood_value_ > -115.0505
    assert model.jitter_ == 0 and model.certificate_.kkt_violation < 1e-9
    # The trend goes on, with the season on top of it.
    year = np.linspace(2002, 2003, 13)[:, None]
    mean, std = model.predict(year, return_std=True)
    assert 4 < np.ptp(mean) < 9 and 0.1 < std.max() < 1.5


def test_log_marginal_likelihood_is_a_numpy_number_as_in_scikit_learn() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1))
    model = GaussianProcessRegressor(optimizer=None).fit(X, np.sin(X[:, 0]))
    answers = [model.log_marginal_likelihood(), model.log_marginal_likelihood(model.theta_)]
    answers.append(model.log_marginal_likelihood(model.theta_, eval_gradient=True)[0])
    # With a float32, as in a comparison to its eps, a Python number would be rounded to float32.
    assert [(answer - np.float32(0.5)).dtype for answer in answers] == [np.float64] * 3


def test_ending_at_a_bound_is_a_convergence_warning_too() -> None:
    X = np.linspace(0, 10, 12)[:, None]
    with pytest.warns(ConvergenceWarning, match="left length_scale at its upper bound"):
        GaussianProcessRegressor(RBF(0.3).bounded(length_scale=(0.1, 0.5))).fit(X, np.sin(X[:, 0]))


def test_the_evidence_learns_the_weights_of_a_sum() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    y = np.sin(2 * rows[:, 1]) + 0.1 * rng.normal(size=60)
    kernel = 1.0 * RBF(1.0).on([0]).fixed() + 1.0 * RBF(1.0).on([1]).fixed()
    model = GaussianProcessRegressor(kernel, noise=0.1).fit(rows, y)
    factors = np.exp(model.kernel_.theta)
    assert factors[1] > 100 * factors[0]
    # No weights of a grid, with the fitted noise, have a higher evidence.
    for a in np.geomspace(1e-4, 10, 12):
        for b in np.geomspace(1e-2, 100, 12):
            assert model.log_marginal_likelihood(np.log([a, b, model.noise_])) <= model.log_marginal_likelihood() + 1e-6


@pytest.mark.parametrize(("unit", "size"), [(1.0, 1.0), (1e-3, 1e6), (1e3, 1e-3)])
def test_without_a_kernel_scale_length_and_noise_are_learnt_in_any_unit(unit: float, size: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, (80, 1))
    model = GaussianProcessRegressor().fit(unit * x, size * (np.sin(x[:, 0]) + 0.3 * rng.normal(size=80)))
    assert model.noise_ == pytest.approx(0.09 * size**2, rel=0.5)
    new = np.linspace(1.0, 9.0, 30)[:, None]
    np.testing.assert_allclose(model.predict(unit * new) / size, np.sin(new[:, 0]), atol=0.35)


def test_what_is_stated_beside_no_kernel_stays() -> None:
    x = np.linspace(0.0, 5.0, 30)[:, None]
    y = np.sin(x[:, 0])
    assert GaussianProcessRegressor(alpha=0.1).fit(x, y).noise_ is None
    assert GaussianProcessRegressor(noise=None, alpha=1e-6).fit(x, y).noise_ is None
    fixed = GaussianProcessRegressor(optimizer=None).fit(x, y)
    assert fixed.noise_ is None and fixed.kernel_ == 1.0 * RBF(1.0)
