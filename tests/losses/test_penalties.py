"""Penalties of the norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from loss_table import PENALTIES, cases, concrete
from mercer._errors import ParameterError
from mercer.losses import Ball, HalfSquare, Norm, NormPower, OwnPenalty, Penalty, as_penalty, check_penalty
from mercer.persistence.registry import registry

every_penalty = pytest.mark.parametrize("penalty", cases(PENALTIES), ids=repr)


def test_the_table_is_complete() -> None:
    assert concrete(Penalty) == set(PENALTIES)


@every_penalty
def test_convex_and_not_decreasing(penalty: Penalty) -> None:
    check_penalty(penalty)


@every_penalty
def test_conjugate_against_the_best_of_many_norms(penalty: Penalty) -> None:
    norms = np.linspace(0.0, 40.0, 40_001)
    values = np.array([penalty.value(float(t)) for t in norms])
    for s in (0.0, 0.3, 0.9, 1.0, 4.0):
        conjugate = penalty.conjugate(s)
        best = float((s * norms - values).max())
        if math.isfinite(conjugate):
            # Off the top by half a step of the grid, whose slope there is next to 0 for smooth ones, and s for others.
            assert conjugate - 1e-3 * (s + 1.0) <= best <= conjugate + 1e-9
        else:
            assert best > 30 * (s - 1.0) - 1e-9


@every_penalty
def test_slope_and_mismatch(penalty: Penalty) -> None:
    for t in (0.5, 1.5, 3.0):
        if not math.isfinite(penalty.value(t + 1e-6)):
            continue
        rise = (penalty.value(t + 1e-6) - penalty.value(t - 1e-6)) / 2e-6
        assert penalty.slope(t) == pytest.approx(rise, rel=1e-4, abs=1e-6)
    if not isinstance(penalty, Ball):
        s = penalty.slope(3.0)
        assert penalty.mismatch(3.0, s) == pytest.approx(0.0, abs=1e-9)
        assert penalty.mismatch(3.0, 0.5 * s) > 0 > penalty.mismatch(3.0, 2.0 * s)
    assert penalty.mismatch(1.0, 1e3) < 0 or isinstance(penalty, Ball)


def test_ball() -> None:
    assert Ball(2.0).mismatch(3.0, 1.0) > 0 > Ball(2.0).mismatch(1.0, 1.0)
    assert Ball(2.0).value(2.0 + 1e-13) == 0.0 and Ball(2.0).value(2.001) == math.inf


def test_names_objects_and_mistakes() -> None:
    assert as_penalty("l2") == HalfSquare() and as_penalty("norm") == Norm()
    assert as_penalty(NormPower(4)) == NormPower(4.0)
    assert isinstance(as_penalty(math.cosh), OwnPenalty)
    for wrong in ("l1", None, 2.0, Ball):
        with pytest.raises(ParameterError, match="regularizer must be 'l2', 'norm', a penalty such as"):
            as_penalty(wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda t: -t, "decreases, from"),
        (lambda t: math.sqrt(t), "is not convex"),
        (lambda t: min(t, 1.0), "is not convex"),
        (lambda t: 3.0, "penalises nothing"),
        (lambda t: math.inf if t == 0 else t, "must be finite at the norm 0"),
        (lambda t: math.nan, "must return a number for each norm"),
        (lambda t: "t", "must return a number for each norm; at 0: 't'"),
    ],
)
def test_what_is_refused(given: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        check_penalty(OwnPenalty(given))


@pytest.mark.parametrize(
    "make", [lambda: Ball(0.0), lambda: Ball(np.inf), lambda: NormPower(1.0), lambda: NormPower("2")]
)
def test_parameters_that_make_no_sense(make: Any) -> None:
    with pytest.raises(ParameterError, match="must be a finite number above"):
        make()


def test_an_object_may_tell_its_slope_and_conjugate() -> None:
    class Told:
        def __call__(self, t: float) -> float:
            return 0.5 * t * t

        def slope(self, t: float) -> float:
            return t

        def conjugate(self, s: float) -> float:
            return 0.5 * s * s

    penalty = OwnPenalty(Told())
    assert (penalty.slope(3.0), penalty.conjugate(4.0)) == (3.0, 8.0)


def test_names_in_model_files_are_those_of_one_class_each() -> None:
    records = registry().records
    assert len(records.classes) == len(records.names)
    assert set(PENALTIES) - {OwnPenalty} <= set(records.names)
