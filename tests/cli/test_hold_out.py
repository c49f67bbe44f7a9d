"""The rows that are held out for the score."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.cli.hold_out import hold_out
from mercer.data.target import read_target


def test_the_same_share_of_every_class() -> None:
    target = read_target(["a", "b"] * 50 + ["c"], "y")
    with pytest.warns(match="classes of 'y' with one row only stay in the training part: 'c'"):
        train, test = hold_out(target, 0.2, 0)
    labels, counts = np.unique(target.values[test], return_counts=True)
    assert labels.tolist() == ["a", "b"] and counts.tolist() == [10, 10] and len(train) == 81
