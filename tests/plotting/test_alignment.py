"""Alignments: the path has the distance of the kernel, and each of its steps is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import DataError, ParameterError
from mercer.kernels import DynamicTimeWarping
from mercer.plotting import AlignmentDisplay

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("n", "m", "channels", "window"), [(9, 9, 1, None), (12, 7, 2, None), (8, 11, 1, 1), (5, 1, 1, 0)]
)
def test_the_path_has_the_distance_of_the_kernel(n: int, m: int, channels: int, window: int | None) -> None:
    x, z = RNG.normal(size=(n, channels)), RNG.normal(size=(m, channels))
    display = AlignmentDisplay.from_series(x, z, window=window)
    expected = -DynamicTimeWarping(window)([x], [z])[0, 0]
    assert np.isclose(display.distance, expected)
    assert np.isclose(np.sqrt((display.frame()["distance"] ** 2).sum()), expected)
    steps = np.diff(display.path, axis=0)
    assert display.path[0].tolist() == [0, 0] and display.path[-1].tolist() == [n - 1, m - 1]
    assert {tuple(step) for step in steps.tolist()} <= {(1, 0), (0, 1), (1, 1)}


def test_series_do_not_cross_and_pairs_are_sampled() -> None:
    x, z = np.sin(np.linspace(0, 9, 80)), np.sin(np.linspace(0.5, 9, 90))
    display = AlignmentDisplay.from_series(x, z).plot(max_pairs=20)
    above, below = (line.get_ydata() for line in display.lines_)
    assert above.min() > below.max() and len(display.pairs_) == 20
    assert f"20 of {len(display.path)} pairs" in display.ax_.get_legend().get_texts()[0].get_text()
    path = display.plot(as_path=True).path_
    np.testing.assert_array_equal(np.column_stack(path.get_data()), display.path)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="NaN"):
        AlignmentDisplay.from_series([1.0, np.nan], [1.0])
    with pytest.raises(DataError, match="same number of channels"):
        AlignmentDisplay.from_series([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(DataError, match="table of 6250000 cells"):
        AlignmentDisplay.from_series(np.zeros(2500), np.zeros(2500))
    with pytest.raises(ParameterError, match="window must be a whole number"):
        AlignmentDisplay.from_series([1.0], [1.0], window=-1)
