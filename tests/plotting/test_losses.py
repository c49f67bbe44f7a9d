"""Losses: curves are values and finite conjugates."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import DataError, ParameterError
from mercer.losses import LOSSES, Hinge, Huber
from mercer.plotting import LossDisplay


def test_every_loss_is_drawn() -> None:
    display = LossDisplay.from_losses(list(LOSSES)).plot()
    assert display.labels == tuple(LOSSES)
    for line, name, target in zip(display.lines_, LOSSES, display.targets):
        np.testing.assert_array_equal(
            line.get_ydata(), LOSSES[name]().value(np.full_like(display.grid, target), display.grid)
        )
    assert not np.isnan(display.values).any()


def test_conjugates_are_drawn_where_they_are_finite() -> None:
    display = LossDisplay.from_losses(Hinge()).plot(conjugate=True)
    drawn = display.lines_[0].get_ydata()
    expected = np.where((display.grid >= -1) & (display.grid <= 0), display.grid, np.nan)
    np.testing.assert_allclose(drawn, expected)
    assert display.ax_.get_xlabel() == "dual value u"


def test_two_losses_of_one_class_have_two_names() -> None:
    display = LossDisplay.from_losses([Huber(1.0), Huber(2.0)], target=0.5)
    assert display.labels == ("huber", "Huber(delta=2.0)") and display.targets == (0.5, 0.5)
    assert len(set(LossDisplay.from_losses(["huber", "huber"]).labels)) == 2


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError, match="there is no loss 'hing'"):
        LossDisplay.from_losses("hing")
    with pytest.raises(DataError, match="needs targets -1 and"):
        LossDisplay.from_losses("hinge", target=0.5)
    with pytest.raises(ParameterError, match="limit must be a number above 0"):
        LossDisplay.from_losses("hinge", limit=0)
    with pytest.raises(ParameterError, match="losses is empty"):
        LossDisplay.from_losses([])
