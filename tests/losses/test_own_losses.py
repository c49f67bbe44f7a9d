"""Losses of a user's own: what is taken, and what is refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loss_table import Absolute, Asymmetric, LogCosh
from mercer import testing
from mercer._errors import DataError, MercerError, ParameterError
from mercer.losses import Huber, OwnLoss, Poisson, Quantile, Squared, as_loss, check_loss
from mercer.losses.numeric import conjugate_by_tangents, prox_by_bracketing

Y = np.random.default_rng(0).normal(size=40)


def made(value: Any, gradient: Any = None, **others: Any) -> OwnLoss:
    """A loss from functions."""
    methods = {"value": value, "gradient": gradient or (lambda y, f: f - y), **others}
    return OwnLoss(type("Own", (), {name: staticmethod(method) for name, method in methods.items()})())


def half_square(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return 0.5 * (f - y) ** 2


def residual(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return f - y


def test_names_objects_and_mistakes() -> None:
    assert as_loss("squared") == Squared() and as_loss(Huber(2.0)) == Huber(2.0)
    assert isinstance(as_loss(Absolute()), OwnLoss)
    for loss, words in (
        ("hubber", "there is no loss 'hubber'; the losses are squared, hinge"),
        (Huber, r"loss is the class Huber; pass an object of it, such as Huber\(\)"),
        (None, "needs the methods value.y, f. and gradient.y, f., but None has no value and no gradient"),
        (lambda y, f: (y - f) ** 2, "has no value and no gradient"),
    ):
        with pytest.raises(ParameterError, match=words):
            as_loss(loss)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Huber(0.0), "Huber: delta must be a finite number above 0, but is 0.0"),
        (lambda: Huber("1"), "delta must be a finite number above 0, but is '1'"),
        (lambda: Quantile(1.0), "level must be a number between 0 and 1, but is 1.0"),
        (lambda: Quantile(True), "level must be a number between 0 and 1, but is True"),
    ],
)
def test_parameters_that_make_no_sense(make: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()


def test_targets_that_make_no_sense() -> None:
    with pytest.raises(DataError, match=r"poisson loss needs targets of 0 or more, and y has -2 in row 1"):
        Poisson().check_targets(np.array([1.0, -2.0]))
    with pytest.raises(DataError, match="hinge loss needs targets -1 and"):
        as_loss("hinge").check_targets(np.array([0.0, 1.0]))
    with pytest.raises(ParameterError, match="targets must be one of signs, numbers, counts, but is 'labels'"):
        OwnLoss(type("Own", (Absolute,), {"targets": "labels"})())


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (made(lambda y, f: np.sin(f - y)), "Own is not convex: between the predictions .* above the mean"),
        (made(lambda y, f: np.minimum((f - y) ** 2, 1.0)), "Own is not convex"),
        (made(lambda y, f: -((f - y) ** 2)), "Own is not convex"),
        (made(lambda y, f: np.mean((f - y) ** 2)), r"Own.value must return one number for each .* the shape \(\)"),
        (made(lambda y, f: ((f - y) ** 2)[:, None]), r"returned the shape \(40, 1\)"),
        (made(lambda y, f: "low"), "must return an array of numbers, but returned 'low'"),
        (made(lambda y, f: (f - y) ** 2), r"gradient is not the derivative of its value.*its sign and its factors"),
        (made(lambda y, f: 0.5 * (f - y) ** 2, lambda y, f: y - f), "gradient is not the derivative"),
        (made(lambda y, f: np.full_like(f, np.nan)), "Own.value must be finite where solvers begin, but is nan"),
        (made(lambda y, f: np.where(f > 0.1, np.nan, 0.5 * (f - y) ** 2)), "Own.value must be a number, but is nan"),
        (made(lambda y, f: 0.5 * (f - y) ** 2 + f.sum()), "must treat each row independently|not convex|gradient"),
        (made(lambda y, f: 0.5 * (f - y) ** 2 * np.arange(len(f))), "must treat each row independently"),
        (
            made(lambda y, f: 0.5 * (f - y) ** 2, curvature=lambda y, f: np.full_like(f, 2.0)),
            "curvature is not the derivative of its gradient",
        ),
        (made(lambda y, f: 0.5 * (f - y) ** 2, curvature=lambda y, f: f), "curvature must be .*0 or more"),
        (made(half_square, residual, conjugate=lambda y, u: 0.5 * u**2), r"conjugate\(y, u\) must be the largest u f"),
        (made(half_square, residual, conjugate=lambda y, u: u * y), r"conjugate\(y, u\) must be the largest"),
        (made(half_square, residual, prox=lambda y, v, step: v), r"prox\(y, v, step\) must be .* is better"),
        (made(half_square, residual, prox=lambda y, v, step: (v + y) / (1 + step)), r"prox\(y, v, step\) must be"),
        (made(half_square, residual, slopes=lambda y: (0 * y, 1 + 0 * y)), "slopes must bound the gradients"),
    ],
)
def test_what_is_refused(loss: OwnLoss, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        check_loss(loss, Y)


def test_a_loss_that_overflows_far_away_is_taken() -> None:
    def value(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.exp(f) - y * f

    check_loss(made(value, lambda y, f: np.exp(f) - y), np.array([0.0, 1.0, 5000.0]))


def test_what_a_loss_tells_of_itself_is_taken_where_it_is_right() -> None:
    own = made(
        half_square,
        residual,
        curvature=lambda y, f: np.ones_like(f),
        conjugate=lambda y, u: 0.5 * u**2 + u * y,
        prox=lambda y, v, step: (v + step * y) / (1.0 + step),
        slopes=lambda y: (-np.inf + 0 * y, np.inf + 0 * y),
    )
    check_loss(own, Y)
    for scale in (1e-8, 1e8):
        check_loss(own, scale * Y)


def test_the_checker_for_ones_own() -> None:
    testing.check_loss(LogCosh(), Y)
    testing.check_loss("poisson")
    testing.check_loss(Huber(2.0))
    with pytest.raises(AssertionError, match="Own is not convex"):
        testing.check_loss(made(lambda y, f: np.sin(f - y)))
    with pytest.raises(AssertionError, match="has no value and no gradient"):
        testing.check_loss(3)

    class Forgetful(LogCosh):
        calls = 0

        def value(self, y, f):
            Forgetful.calls += 1
            return super().value(y, f) * (1 + Forgetful.calls % 2)

    with pytest.raises(AssertionError):
        testing.check_loss(Forgetful())


def test_errors_are_parameter_errors_and_errors_of_mercer() -> None:
    with pytest.raises(MercerError):
        as_loss("none")


def test_what_an_object_tells_is_used() -> None:
    class Told(LogCosh):
        name = "told"

        def conjugate(self, y, u):
            return np.full_like(u, 7.0)

        def prox(self, y, v, step):
            return np.full_like(v, 8.0)

        def slopes(self, y):
            return -np.ones_like(y), np.ones_like(y)

        def response(self, f):
            return 2.0 * f

    loss, one = OwnLoss(Told()), np.ones(2)
    assert loss.smooth and loss.name == "told"
    assert loss.conjugate(one, one).tolist() == [7.0, 7.0] and loss.prox(one, one, 1.0).tolist() == [8.0, 8.0]
    assert loss.slopes(one)[0].tolist() == [-1.0, -1.0] and loss.response(one).tolist() == [2.0, 2.0]


def test_numeric_conjugate_and_prox_against_formulas() -> None:
    rng = np.random.default_rng(2)
    y, v = 3.0 * rng.normal(size=50), 5.0 * rng.normal(size=50)
    for loss in (Squared(), Huber(0.7), Quantile(0.2)):
        step = rng.uniform(0.1, 9.0, 50)
        np.testing.assert_allclose(prox_by_bracketing(loss.gradient, y, v, step), loss.prox(y, v, step), atol=1e-12)
        u = rng.uniform(-0.99, 0.99, 50) * (0.2 if isinstance(loss, Quantile) else 0.7)
        result = conjugate_by_tangents(loss.value, loss.gradient, y, u)
        np.testing.assert_allclose(result, loss.conjugate(y, u), rtol=1e-12, atol=1e-12)
        assert (result >= loss.conjugate(y, u) - 1e-13 * (1 + np.abs(result))).all()
    beyond = conjugate_by_tangents(Huber(0.7).value, Huber(0.7).gradient, y, np.full(50, 0.8))
    assert np.isinf(beyond).all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("loss", [OwnLoss(Absolute()), OwnLoss(LogCosh()), OwnLoss(Asymmetric())], ids=repr)
def test_prox_solves_its_equation_at_every_scale(loss: OwnLoss, scale: float) -> None:
    rng = np.random.default_rng(4)
    y, v = scale * rng.normal(size=200), 3.0 * scale * rng.normal(size=200)
    for step in (1e-6, 1.0, 1e6):
        p = loss.prox(y, v, np.full(200, step))
        # The left side changes its sign within rounding of the answer.
        tolerance = 8.0 * np.finfo(float).eps * np.maximum(np.maximum(np.abs(p), np.abs(v)), step)
        low, high = (p + s * tolerance + step * loss.gradient(y, p + s * tolerance) - v for s in (-1.0, 1.0))
        assert (low <= 0).all() and (high >= 0).all()


def test_prox_takes_few_gradients() -> None:
    calls: list[int] = []

    def gradient(y: np.ndarray, f: np.ndarray) -> np.ndarray:
        calls.append(len(f))
        return np.tanh(f - y)

    rng = np.random.default_rng(5)
    prox_by_bracketing(gradient, rng.normal(size=1000), 5.0 * rng.normal(size=1000), np.full(1000, 2.0))
    # Bisection takes some 50 of each row.
    assert sum(calls) < 25 * 1000


def test_prox_where_the_gradient_is_finite_but_huge() -> None:
    p = prox_by_bracketing(lambda y, f: np.exp(f) - y, np.zeros(1), np.array([104.0]), np.array([1250.0]))
    np.testing.assert_allclose(p + 1250.0 * np.exp(p), 104.0, rtol=1e-12)


def test_prox_where_the_gradient_overflows() -> None:
    y, v = np.array([2.0, 0.0]), np.array([900.0, 1e4])
    p = Poisson().prox(y, v, np.array([1.0, 2.0]))
    np.testing.assert_allclose(p + np.array([1.0, 2.0]) * (np.exp(p) - y), v, rtol=1e-12)
