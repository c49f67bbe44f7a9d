"""User-defined subclasses of scikit-learn's kernels: values, hyper-parameters, gradients, and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor as Sklearn
from sklearn.gaussian_process import kernels as gp

from mercer import SVC, GaussianProcessRegressor, Gram, KernelRidge, kernels
from mercer._errors import DataError, IndefiniteKernelWarning, KernelValueError, ParameterError
from mercer.kernels import from_sklearn

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(40, 2)), RNG.normal(size=(7, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)


class Tent(gp.StationaryKernelMixin, gp.NormalizedKernelMixin, gp.Kernel):
    """``s exp(-sum_c |x_c - z_c| / l_c)`` with a vector of length scales."""

    def __init__(
        self, scales: Any = (1.0, 2.0), size: float = 1.0, scales_bounds: Any = (1e-2, 1e2), size_bounds: Any = (0.1, 9)
    ) -> None:
        self.scales = scales
        self.size = size
        self.scales_bounds = scales_bounds
        self.size_bounds = size_bounds

    @property
    def hyperparameter_scales(self) -> gp.Hyperparameter:
        return gp.Hyperparameter("scales", "numeric", self.scales_bounds, len(self.scales))

    @property
    def hyperparameter_size(self) -> gp.Hyperparameter:
        return gp.Hyperparameter("size", "numeric", self.size_bounds)

    def diag(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.size)

    def __call__(self, X: np.ndarray, Y: Any = None, eval_gradient: bool = False) -> Any:
        distances = np.abs(X[:, None] - (X if Y is None else Y)[None]) / np.asarray(self.scales)
        K = self.size * np.exp(-distances.sum(axis=-1))
        if not eval_gradient:
            return K
        assert Y is None, "as scikit-learn has it"
        parts = [K[:, :, None] * distances] if not self.hyperparameter_scales.fixed else []
        parts += [K[:, :, None]] if not self.hyperparameter_size.fixed else []
        return K, np.concatenate([np.empty((*K.shape, 0)), *parts], axis=2)


class Noisy(gp.RBF):
    """A subclass of one of scikit-learn's own: with noise between a row and itself."""

    def __call__(self, X: np.ndarray, Y: Any = None, eval_gradient: bool = False) -> Any:
        if eval_gradient:
            K, slopes = super().__call__(X, Y, eval_gradient=True)
            return K + 0.3 * np.eye(len(X)), slopes
        return super().__call__(X, Y) + (0.3 * np.eye(len(X)) if Y is None else 0.0)

    def diag(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), 1.3)


class Letters(gp.GenericKernelMixin, gp.StationaryKernelMixin, gp.Kernel):
    """Of words: pairs of equal letters count 1, others ``other``."""

    def __init__(self, other: float = 0.2, other_bounds: Any = (1e-3, 0.9)) -> None:
        self.other = other
        self.other_bounds = other_bounds

    @property
    def hyperparameter_other(self) -> gp.Hyperparameter:
        return gp.Hyperparameter("other", "numeric", self.other_bounds)

    def diag(self, X: Any) -> np.ndarray:
        return np.array([self([x])[0, 0] for x in X])

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        Y = X if Y is None else Y
        same = np.array([[sum(a == b for a in x for b in y) for y in Y] for x in X], dtype=float)
        other = np.array([[len(x) * len(y) for y in Y] for x in X]) - same
        K = same + self.other * other
        return (K, (self.other * other)[:, :, None]) if eval_gradient else K


CASES = [
    Tent(),
    Tent(size_bounds="fixed"),
    Tent(scales_bounds="fixed"),
    Noisy(1.5),
    2.0 * Tent() + gp.WhiteKernel(0.2),
    (gp.RBF(2.0) + Tent((0.5, 0.7))) * gp.ConstantKernel(0.5),
    Tent() ** 2.0,
    Noisy([1.0, 2.0]) * gp.Matern(nu=1.5),
]


@pytest.mark.parametrize("theirs", CASES, ids=lambda v: f"{v!r:.50}")
def test_values_parameters_and_gradients(theirs: gp.Kernel) -> None:
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12)
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)
    np.testing.assert_allclose(ours.diagonal(X), theirs.diag(X), rtol=1e-12)
    np.testing.assert_allclose(np.sort(ours.theta), np.sort(theirs.theta), atol=1e-12)
    np.testing.assert_allclose(np.sort(ours.bounds.ravel()), np.sort(theirs.bounds.ravel()), atol=1e-12)
    weights = RNG.normal(size=(40, 40))
    _, slopes = theirs(X, eval_gradient=True)
    expected = np.einsum("ij,ijp->p", weights, slopes)
    np.testing.assert_allclose(np.sort(ours.pullback(X, None, weights)), np.sort(expected), rtol=1e-9, atol=1e-9)
    assert ours == from_sklearn(clone(theirs)) and hash(ours) == hash(from_sklearn(clone(theirs)))


@pytest.mark.parametrize("theirs", CASES, ids=lambda v: f"{v!r:.50}")
def test_gradients_by_differences_through_every_form(theirs: gp.Kernel) -> None:
    ours = from_sklearn(theirs).normalized() + 0.5
    weights = RNG.normal(size=(40, 7))
    slopes, theta = ours.pullback(X, Z, weights), ours.theta
    for i, step in enumerate(1e-6 * np.eye(len(theta))):
        up, down = (float(np.vdot(weights, ours.with_theta(theta + s)(X, Z))) for s in (step, -step))
        assert slopes[i] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-5)


def test_tiles_and_parts_are_the_same_matrix() -> None:
    rows = RNG.normal(size=(600, 2))
    theirs = Noisy(0.7)
    gram = Gram(from_sklearn(theirs), rows)
    np.testing.assert_allclose(gram.dense(), theirs(rows), rtol=1e-12)
    index = np.array([5, 3, 590])
    np.testing.assert_allclose(gram.block(index, np.arange(3, 600)), theirs(rows)[index, 3:], rtol=1e-12)
    weights = RNG.normal(size=(600, 600))
    expected = np.einsum("ij,ijp->p", weights, theirs(rows, eval_gradient=True)[1])
    np.testing.assert_allclose(from_sklearn(theirs).pullback(rows, None, weights), expected, rtol=1e-8)


@pytest.mark.parametrize("theirs", [Tent(), 1.5 * Tent() + gp.WhiteKernel(0.1), gp.RBF() * Tent() + gp.WhiteKernel()])
def test_a_search_ends_where_scikit_learns_does(theirs: gp.Kernel) -> None:
    ours = GaussianProcessRegressor(theirs, alpha=1e-3).fit(X, Y)
    sklearn = Sklearn(theirs, alpha=1e-3).fit(X, Y)
    value = sklearn.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ >= value - 1e-4 * abs(value)
    mean, std = ours.predict(Z, return_std=True)
    expected = sklearn.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected[0], atol=2e-2)
    np.testing.assert_allclose(std, expected[1], atol=2e-2)


def test_words_in_every_learner() -> None:
    words = ["abc", "ab", "bca", "xyz", "yz", "zyx", "bab", "xx"]
    labels = [0, 0, 0, 1, 1, 1, 0, 1]
    assert SVC(kernel=Letters()).fit(words, labels).predict(["cab", "zzy"]).tolist() == [0, 1]
    model = GaussianProcessRegressor(Letters(), alpha=1.0).fit(words, np.array(labels, dtype=float))
    expected = Sklearn(Letters(), alpha=1.0).fit(words, np.array(labels, dtype=float))
    assert model.log_marginal_likelihood_value_ >= expected.log_marginal_likelihood_value_ - 1e-4
    np.testing.assert_allclose(model.predict(["cab", "zzy"]), expected.predict(["cab", "zzy"]), atol=1e-3)


def test_parameters_by_name() -> None:
    ours = from_sklearn(Tent())
    assert [p.name for p in ours.parameters] == ["scales[0]", "scales[1]", "size"]
    assert [p.name for p in ours.fixed("scales").parameters if p.free] == ["size"]
    freed = from_sklearn(Tent(size_bounds="fixed")).bounded(size=(0.5, 2.0))
    np.testing.assert_allclose(np.exp(freed.bounds[-1]), [0.5, 2.0])
    moved = ours.with_theta([0.0, 1.0, np.log(3.0)])
    assert moved.theirs.size == pytest.approx(3.0) and ours.theirs.size == 1.0
    assert "from_sklearn(Tent(" in repr(moved)


def test_the_kernel_that_was_given_may_change_afterwards() -> None:
    theirs = Tent()
    ours = from_sklearn(theirs)
    theirs.size = 7.0
    assert ours.theirs.size == 1.0


class Bare(gp.Kernel):
    """The least that scikit-learn's documentation shows: no hyper-parameters, no gradient."""

    def __init__(self, power: float = 2.0) -> None:
        self.power = power

    def __call__(self, X: np.ndarray, Y: Any = None) -> np.ndarray:
        return (np.inner(X, X if Y is None else Y) + 1.0) ** self.power

    def diag(self, X: np.ndarray) -> np.ndarray:
        return ((X**2).sum(axis=1) + 1.0) ** self.power

    def is_stationary(self) -> bool:
        return False


class NoGradient(Bare):
    @property
    def hyperparameter_power(self) -> gp.Hyperparameter:
        return gp.Hyperparameter("power", "numeric", (1.0, 5.0))


class WrongGradient(Tent):
    def __call__(self, X: np.ndarray, Y: Any = None, eval_gradient: bool = False) -> Any:
        return (super().__call__(X), np.zeros((len(X), len(X), 1))) if eval_gradient else super().__call__(X, Y)


class Negative(Bare):
    def __call__(self, X: np.ndarray, Y: Any = None) -> np.ndarray:
        return -super().__call__(X, Y)


def test_classes_without_gradients() -> None:
    assert len(from_sklearn(Bare()).theta) == 0
    expected = KernelRidge(kernel=kernels.Polynomial(2, scale=1.0, offset=1.0)).fit(X, Y).predict(Z)
    np.testing.assert_allclose(KernelRidge(kernel=Bare()).fit(X, Y).predict(Z), expected, rtol=1e-8)
    GaussianProcessRegressor(NoGradient(), alpha=0.1, optimizer=None).fit(X, Y)
    with pytest.raises(ParameterError, match=r"NoGradient.__call__ has no eval_gradient.*optimizer=None"):
        GaussianProcessRegressor(NoGradient(), alpha=0.1).fit(X, Y)
    with pytest.raises(KernelValueError, match=r"of shape \(40, 40, 1\) for 40 rows; it must be \(40, 40, 3\)"):
        GaussianProcessRegressor(WrongGradient(), alpha=0.1).fit(X, Y)
    with pytest.warns(IndefiniteKernelWarning, match=r"from_sklearn\(.*on 40 rows of X is indefinite"):
        KernelRidge(kernel=Negative()).fit(X, Y)
    with pytest.raises(DataError, match=r"string|numbers|float"):
        KernelRidge(kernel=Bare()).fit(["a"] * 40, Y)


def test_of_scikit_learns_own_only_those_with_an_equal() -> None:
    with pytest.raises(ParameterError, match="CompoundKernel has no equivalent here"):
        from_sklearn(gp.CompoundKernel([Tent(), gp.RBF()]))
