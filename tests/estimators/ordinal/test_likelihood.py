"""The log likelihood of ordered classes, and its derivatives by latent values and cut-points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer
from mercer import GaussianProcessOrdinalRegression, KernelOrdinalRegression
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.kernels import RBF, Linear
from mercer.solvers.risk.cumulative_links import LINKS

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 2))
Y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * RNG.normal(size=40), [-0.4, 0.4, 1.2])
NAMES = np.array(["poor", "fair", "good", "best"])
CODES = RNG.integers(0, 4, 12)
NEW, LABELS = RNG.normal(size=(12, 2)), NAMES[CODES]
WEIGHT = RNG.uniform(0.2, 3.0, 12)
F, CUTS = RNG.normal(size=12), np.array([-0.9, 0.1, 1.3])
SLOPE = 1.7
EPS = np.finfo(np.float64).eps

every_link = pytest.mark.parametrize("link", LINKS)


def fitted(link: str = "logit", **other) -> KernelOrdinalRegression:
    parameters = {"kernel": RBF(1.5), "C": 3.0, "link": link, "slope": SLOPE, "classes": NAMES.tolist()}
    return KernelOrdinalRegression(**(parameters | other)).fit(X, NAMES[Y])


def central_differences(function, z: np.ndarray) -> np.ndarray:
    """Derivatives of a function of a vector, of the fourth order: the error is about (h^4 + eps / h) * scale."""
    h = 1e-3
    steps = h * np.eye(len(z))
    far = [function(z + 2 * s) - function(z - 2 * s) for s in steps]
    return np.array([8 * (function(z + s) - function(z - s)) - f for s, f in zip(steps, far, strict=True)]) / (12 * h)


@every_link
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_the_value_is_the_sum_of_the_logarithms_of_the_probabilities(link, weight):
    model = fitted(link)
    p = model.predict_proba(NEW)
    s = np.ones(12) if weight is None else weight
    naive = math.fsum(s[i] * math.log(p[i, model.classes_.tolist().index(LABELS[i])]) for i in range(12))
    value = model.log_likelihood(NEW, LABELS, sample_weight=weight)
    assert isinstance(value, float) and value == pytest.approx(naive, rel=1e-11)


@every_link
def test_the_value_at_given_latent_values_and_cut_points(link):
    """By the distribution function itself; the classes are wide enough for the difference to keep its digits."""
    cumulative = LINKS[link].cumulative
    ends = np.concatenate([[-np.inf], CUTS, [np.inf]])
    mass = cumulative(SLOPE * (ends[CODES + 1] - F)) - cumulative(SLOPE * (ends[CODES] - F))
    rounding = 8 * EPS * (WEIGHT / mass).sum()
    value = fitted(link).log_likelihood(NEW, LABELS, F, CUTS, WEIGHT)
    assert abs(value - WEIGHT @ np.log(mass)) <= rounding + 1e-13 * abs(value)


@every_link
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_gradient_and_hessian_are_those_of_finite_differences(link, weight):
    model = fitted(link)
    z = np.concatenate([F, CUTS])

    def value(z: np.ndarray) -> float:
        return model.log_likelihood(NEW, LABELS, z[:12], z[12:], weight)

    def gradient(z: np.ndarray) -> np.ndarray:
        return model.gradient(NEW, LABELS, z[:12], z[12:], weight).vector()

    # Differences of values lose eps |value| / h; terms left out are of the order of h^4 = 1e-12 times derivatives.
    result, hessian = gradient(z), model.hessian(NEW, LABELS, F, CUTS, weight)
    np.testing.assert_allclose(result, central_differences(value, z), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(hessian.matrix(), central_differences(gradient, z), rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(hessian.matrix(), hessian.matrix().T)
    assert np.linalg.eigvalsh(hessian.matrix()).max() <= 1e-12 * np.abs(hessian.matrix()).max()
    assert (hessian.latent < 0).all() and hessian.cross.shape == (12, 3) and hessian.thresholds.shape == (3, 3)


def test_the_defaults_are_those_of_the_fit():
    model = fitted()
    arguments = (NEW, LABELS, model.latent(NEW), model.thresholds_)
    assert model.log_likelihood(NEW, LABELS) == model.log_likelihood(*arguments)
    np.testing.assert_array_equal(model.gradient(NEW, LABELS).vector(), model.gradient(*arguments).vector())
    np.testing.assert_array_equal(model.hessian(NEW, LABELS).matrix(), model.hessian(*arguments).matrix())


def test_the_formulas_of_the_logistic_link():
    model = fitted()
    ends = np.concatenate([[-np.inf], CUTS, [np.inf]])
    upper, lower = (1 / (1 + np.exp(-SLOPE * (ends[CODES + side] - F))) for side in (1, 0))
    d = SLOPE * (upper + lower - 1)
    r = SLOPE**2 * (upper * (1 - upper) + lower * (1 - lower))
    np.testing.assert_allclose(model.gradient(NEW, LABELS, F, CUTS).latent, d, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(-model.hessian(NEW, LABELS, F, CUTS).latent, r, rtol=1e-12)


@every_link
@pytest.mark.parametrize("weight", [None, RNG.integers(0, 4, 40)], ids=["unweighted", "weighted"])
def test_the_penalised_gradient_is_zero_at_the_fit(link, weight):
    """The gradient of -C l + |f|^2 / 2 by the latent values is c - C dl/df, with f = K c."""
    y, C = NAMES[Y], 3.0
    factors = {"poor": 2.0, "best": 0.5}
    model = KernelOrdinalRegression(
        kernel=RBF(1.5), C=C, link=link, slope=SLOPE, classes=NAMES.tolist(), class_weight=factors
    ).fit(X, y, weight)
    total = np.array([factors.get(label, 1.0) for label in y]) * (1 if weight is None else weight)
    slope = model.gradient(X, y, sample_weight=total)
    scale = np.abs(model.dual_coef_).max()
    np.testing.assert_allclose(C * slope.latent, model.dual_coef_, atol=1e-6 * scale)
    np.testing.assert_allclose(slope.thresholds, 0.0, atol=1e-6 * scale)
    objective = 0.5 * model.dual_coef_ @ model.latent(X) - C * model.log_likelihood(X, y, sample_weight=total)
    assert objective == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_derivatives_by_the_weights_of_features():
    model = fitted(kernel=Linear())

    def value(w: np.ndarray) -> float:
        return model.log_likelihood(NEW, LABELS, NEW @ w)

    by_weights = NEW.T @ model.gradient(NEW, LABELS).latent
    np.testing.assert_allclose(by_weights, central_differences(value, model.coef_), rtol=1e-7, atol=1e-8)


def test_a_gaussian_process_has_them_at_its_mode():
    model = GaussianProcessOrdinalRegression(RBF(1.0), optimizer=None, slope=SLOPE, classes=NAMES.tolist())
    model.fit(X, NAMES[Y])
    slope = model.gradient(X, NAMES[Y])
    np.testing.assert_allclose(slope.latent, model.dual_coef_, atol=1e-6 * np.abs(model.dual_coef_).max())


def test_a_precomputed_kernel():
    K = RBF(1.5)(X)
    given = KernelOrdinalRegression(kernel="precomputed").fit(K, Y)
    plain = KernelOrdinalRegression(kernel=RBF(1.5)).fit(X, Y)
    block = RBF(1.5)(NEW, X)
    assert given.log_likelihood(block, CODES) == pytest.approx(plain.log_likelihood(NEW, CODES), rel=1e-6)


def test_rows_of_weight_zero_count_for_nothing():
    model, keep = fitted(), np.arange(12) % 3 > 0
    y = np.where(keep, LABELS, "?")
    part = (NEW[keep], LABELS[keep], F[keep], CUTS, WEIGHT[keep])
    whole = (NEW, y, F, CUTS, WEIGHT * keep)
    assert model.log_likelihood(*whole) == model.log_likelihood(*part)
    for name in ("latent", "cross"):
        block = getattr(model.hessian(*whole), name)
        np.testing.assert_array_equal(block[keep], getattr(model.hessian(*part), name))
        assert not block[~keep].any()
    np.testing.assert_array_equal(model.gradient(*whole).latent[keep], model.gradient(*part).latent)
    assert not model.gradient(*whole).latent[~keep].any()


@every_link
def test_rows_of_one_class_alone(link):
    """The classes are those of the fit, not those of the rows."""
    model = fitted(link)
    for name in NAMES:
        y = np.full(12, name)
        whole = model.gradient(NEW, y, F, CUTS)
        by_cuts = central_differences(lambda cuts, y=y: model.log_likelihood(NEW, y, F, cuts), CUTS)
        np.testing.assert_allclose(whole.thresholds, by_cuts, rtol=1e-7, atol=1e-8)
        # A shift of all latent values and cut-points together changes no probability.
        assert abs(whole.vector().sum()) <= 100 * EPS * np.abs(whole.vector()).sum()


@every_link
@pytest.mark.parametrize("position", [0, 2, 4], ids=["lowest", "middle", "highest"])
def test_a_class_that_no_row_has(link, position):
    """Its rows are impossible; for all others the values are those of a model without it."""
    classes = [*NAMES[:position], "none", *NAMES[position:]]
    model, plain = fitted(link, classes=classes), fitted(link)
    assert model.log_likelihood(NEW, LABELS) == plain.log_likelihood(NEW, LABELS)
    ours, theirs = model.gradient(NEW, LABELS), plain.gradient(NEW, LABELS)
    np.testing.assert_array_equal(ours.latent, theirs.latent)
    H = model.hessian(NEW, LABELS)
    np.testing.assert_array_equal(H.latent, plain.hessian(NEW, LABELS).latent)
    assert np.isfinite(H.matrix()).all() and ours.thresholds.shape == (4,)
    assert ours.thresholds.sum() == pytest.approx(theirs.thresholds.sum(), abs=1e-12)
    infinite = np.isinf(model.thresholds_)
    assert infinite.sum() == (position != 2)
    assert not ours.thresholds[infinite].any() and not H.cross[:, infinite].any() and not H.thresholds[infinite].any()
    y = np.where(np.arange(12) == 5, "none", LABELS)
    assert model.log_likelihood(NEW, y) == -np.inf
    for method in (model.gradient, model.hessian):
        with pytest.raises(DataError, match="row 5 has a class between two equal cut-points"):
            method(NEW, y)
    assert np.isfinite(model.log_likelihood(NEW, y, sample_weight=np.arange(12) != 5))


@every_link
def test_far_rows_and_narrow_classes(link):
    """Values are right where probabilities underflow, or are minus infinity; derivatives are finite, or an error."""
    model = fitted(link)
    far = np.full(12, 30.0)
    assert -np.inf < model.log_likelihood(NEW, LABELS, -far, CUTS) < -300.0 * (link == "probit") - 30.0
    narrow = np.array([-0.9, -0.9 + 1e-9, 1.3])
    gradient = model.gradient(NEW, LABELS, F, narrow)
    # The loss of a narrow class is -log of its length.
    assert gradient.thresholds[1] == pytest.approx((CODES == 1).sum() / (narrow[1] - narrow[0]), rel=1e-6)
    # The second derivative of that loss is the inverse square of the length.
    one = np.where(np.arange(12) == 7, "fair", "best")
    with pytest.raises(DataError, match="overflow float64; row 7 is the least probable one"):
        model.hessian(NEW, one, F, [0.0, 1e-200, 1.3])


@pytest.mark.parametrize("method", ["log_likelihood", "gradient", "hessian"])
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"X": NEW[:5]}, DataError, "X has 5 rows and y has 12 labels"),
        ({"X": NEW[:, :1]}, ValueError, "1 features"),
        ({"y": LABELS[:5]}, DataError, "X has 12 rows and y has 5 labels"),
        (
            {"y": np.where(CODES == 3, "bad", LABELS)},
            DataError,
            "label 'bad' in row .*, which is not one of the classes",
        ),
        ({"y": [None, *LABELS[1:]]}, DataError, "1 labels are missing"),
        ({"y": None}, DataError, "requires y to be passed"),
        ({"latent": F[:5]}, ParameterError, r"latent has the shape \(5,\), and must be of shape \(12,\)"),
        ({"latent": F[:, None]}, ParameterError, r"latent has the shape \(12, 1\)"),
        ({"latent": np.where(CODES == 3, np.nan, F)}, ParameterError, "latent must be finite, but is nan in row"),
        ({"latent": np.full(12, np.inf)}, ParameterError, "latent must be finite, but is inf in row 0"),
        ({"latent": ["a"] * 12}, ParameterError, "latent must be 12 numbers"),
        ({"latent": F + 1j}, DataError, "latent holds complex numbers"),
        ({"thresholds": CUTS[:2]}, ParameterError, r"thresholds has the shape \(2,\), and must be of shape \(3,\)"),
        ({"thresholds": CUTS[::-1]}, ParameterError, "thresholds must be numbers in ascending order"),
        ({"thresholds": [0.0, np.nan, 1.0]}, ParameterError, "thresholds must be numbers in ascending order"),
        ({"thresholds": [np.inf, 0.0, 1.0]}, ParameterError, "thresholds must be numbers in ascending order"),
        ({"sample_weight": WEIGHT[:5]}, DataError, "sample_weight has 5 values, and X has 12 rows"),
        ({"sample_weight": -WEIGHT}, DataError, "12 negative values"),
        ({"sample_weight": WEIGHT * np.nan}, ValueError, "NaN"),
    ],
)
def test_arguments_that_cannot_be_used(method, change, error, words):
    with pytest.raises(error, match=words):
        getattr(fitted(), method)(**({"X": NEW, "y": LABELS} | change))


def test_a_model_without_a_fit():
    with pytest.raises(NotFittedError):
        KernelOrdinalRegression().log_likelihood(NEW, LABELS)


def test_a_matrix_beyond_the_memory_budget():
    n = 2000
    hessian = fitted().hessian(np.repeat(NEW, n // 10, axis=0), np.repeat(LABELS, n // 10))
    with mercer.config(memory=2**20), pytest.raises(MemoryBudgetError, match="latent, cross and thresholds"):
        hessian.matrix()
