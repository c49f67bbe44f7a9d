"""Draws for entries that are missing in prediction alone: what they are, and how much work they make."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from mercer import TabularClassifier, TabularRegressor
from mercer.data.columns import MixedRows
from mercer.data.strings import Strings
from mercer.estimators.tabular.new_gaps import DRAWS, FEW_DRAWS, NewGaps, representative

RNG = np.random.default_rng(0)
KNOWN = RNG.normal(size=(400, 3))


def gaps_of(missing: np.ndarray, features: np.ndarray) -> NewGaps:
    gaps = NewGaps.of(missing, features, np.arange(3), KNOWN)
    assert gaps is not None
    return gaps


def test_rows_without_gaps_have_no_draws() -> None:
    assert NewGaps.of(np.zeros((4, 3), bool), KNOWN[:4], np.arange(3), KNOWN) is None


def test_entries_of_one_training_row_fill_the_gaps_of_a_row() -> None:
    missing = np.array([[True, True, False], [False, False, False], [False, True, True]])
    gaps = gaps_of(missing, np.full((3, 3), 9.0))
    assert gaps.rows.tolist() == [0, 2]
    draws = gaps.predicted(lambda features: features)
    assert draws.shape == (DRAWS, 2, 3)
    assert (draws[:, 0, 2] == 9.0).all() and (draws[:, 1, 0] == 9.0).all()
    for draw in draws:
        assert (KNOWN[:, :2] == draw[0, :2]).all(axis=1).any()
        assert (KNOWN[:, 1:] == draw[1, 1:]).all(axis=1).any()


def test_the_draws_of_a_row_do_not_depend_on_the_others() -> None:
    missing = RNG.random((50, 3)) < 0.4
    missing[0, 0] = True
    features = RNG.normal(size=(50, 3))
    many, one = gaps_of(missing, features), gaps_of(missing[:1], features[:1])
    values = [gaps.predicted(lambda rows: rows.sum(axis=1))[:, 0] for gaps in (many, one)]
    assert values[0].tolist() == values[1].tolist()


def test_few_predictions_are_asked_for_in_few_calls() -> None:
    missing = np.zeros((5000, 3), bool)
    missing[:, 0] = True
    for rows, calls in ((10, 1), (5000, DRAWS)):
        lengths = gaps_of(missing[:rows], np.zeros((rows, 3))).predicted(lambda part: np.full(len(part), len(part)))
        assert lengths.shape == (DRAWS, rows) and (lengths == DRAWS * rows / calls).all()


def test_text_is_repeated_with_its_rows() -> None:
    known = MixedRows([*KNOWN.T[:2], Strings.of(["a"] * 400)])
    features = MixedRows([np.zeros(2), np.ones(2), Strings.of(["x", "y"])])
    gaps = NewGaps.of(np.array([[True, False, False]] * 2), features, np.arange(3), known)
    assert gaps is not None
    texts = gaps.predicted(lambda rows: np.array([text == "x" for text in rows.columns[2].items]))
    assert texts.tolist() == [[True, False]] * DRAWS


@pytest.mark.parametrize("count", [FEW_DRAWS, DRAWS])
def test_few_draws_have_the_mean_and_the_deviation_of_all(count: int) -> None:
    points = norm.ppf((np.arange(256) + 0.5) / 256)[:, None]
    chosen = points[representative(points, count), 0]
    np.testing.assert_allclose(np.sort(chosen), norm.ppf((np.arange(count) + 0.5) / count), atol=0.05)
    assert chosen.std(ddof=1) == pytest.approx(1.0, abs=0.4 / count)
    # So do those in two dimensions, which go together.
    both = np.column_stack([points[:, 0], points[:, 0] + 0.1 * RNG.normal(size=256)])
    chosen = both[representative(both, count)]
    assert np.corrcoef(chosen.T)[0, 1] > 0.95


def test_points_occur_again_where_there_are_few() -> None:
    assert np.bincount(representative(np.array([[0.0], [1.0]]), 16)).tolist() == [8, 8]
    assert representative(np.zeros((1, 2)), 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("estimator", [TabularRegressor, TabularClassifier])
def test_a_column_without_features_has_no_gaps(estimator: type) -> None:
    table = pd.DataFrame({"note": [f"a note of day {number % 7} and {number}" for number in range(12)]})
    target = np.arange(12) % 7 % 2
    alone = estimator(random_state=0).fit(table, target)
    # Empty or constant in training.
    for entry in (np.nan, 7.0):
        model = estimator(random_state=0).fit(table.assign(column=entry), target)
        new = table.assign(column=[np.nan, 3.0] * 6)
        np.testing.assert_array_equal(model.predict(new), alone.predict(table))
