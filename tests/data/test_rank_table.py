"""Tables as ranks and codes, one number a column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mercer._errors import MercerWarning
from mercer.data.rank_columns import CodeColumn, RankColumn, RankedDates
from mercer.data.rank_table import RankTable


def test_ranks_do_not_depend_on_the_unit() -> None:
    numbers = np.random.default_rng(0).lognormal(size=500)
    ranks = RankColumn.fit(numbers).encode(numbers)
    np.testing.assert_allclose(RankColumn.fit(np.log(numbers)).encode(np.log(numbers)), ranks, atol=1e-12)
    assert ranks.min() == 0.0 and ranks.max() == 1.0
    np.testing.assert_array_equal(np.argsort(ranks[:, 0]), np.argsort(numbers))


def test_numbers_of_many_values_are_interpolated() -> None:
    numbers = np.random.default_rng(1).normal(size=5000)
    column = RankColumn.fit(numbers)
    exact = np.argsort(np.argsort(numbers)) / 4999
    assert len(column.values) == 1000
    np.testing.assert_allclose(column.encode(numbers)[:, 0], exact, atol=1e-3)
    assert column.encode(np.array([-1e300, 1e300, np.inf])).ravel().tolist() == [0.0, 1.0, 1.0]


def test_missing_numbers_are_far_from_all_others() -> None:
    column = RankColumn.fit(np.array([1.0, np.nan, 3.0, 4.0]))
    encoded = column.encode(np.array([np.nan, 1.0, 4.0]))[:, 0]
    assert abs(encoded[0] - encoded[1]) > 1 and abs(encoded[0] - encoded[2]) > 1
    constant = RankColumn.fit(np.array([2.0, 2.0]))
    assert constant.encode(np.array([2.0, 7.0])).ravel().tolist() == [0.0, 0.0]
    empty = RankColumn.fit(np.array([np.nan]))
    assert empty.encode(np.array([np.nan, 1.0])).ravel().tolist() == [-2.0, 0.0]


def test_parts_of_dates() -> None:
    hours = pd.date_range("2024-01-01", "2026-01-01", freq="7h").to_numpy()
    column = RankedDates.fit(hours)
    assert column.parts == ("season", "weekday", "time") and column.ordered == (True, True, False, True)
    encoded = column.encode(np.array(["2024-07-01T06:00", "NaT"], dtype="datetime64[ns]"))
    # A Monday, at a quarter of the day.
    assert encoded[0, 2:].tolist() == [0.0, 0.25] and 0.49 < encoded[0, 1] < 0.51
    assert encoded[1].tolist() == [-2.0] * 4
    assert RankedDates.fit(hours[:5]).parts == ("time",)


def test_codes_of_text_that_repeats() -> None:
    assert CodeColumn.fit(np.array(["b", "a", "b"], dtype=object), least=2).values == ("b",)
    frame = pd.DataFrame({"town": ["Ulm", "Zug", None] * 20, "size": np.arange(60.0)})
    table = RankTable().fit(frame)
    assert table.columns_[0] == CodeColumn(("Ulm", "Zug", "(missing)"))
    assert table.feature_names_ == ["town", "size"] and table.ordered_.tolist() == [False, True]
    with pytest.warns(MercerWarning, match=r"'town' holds 'Rom' in 1 row"):
        assert table.transform(pd.DataFrame({"town": ["Rom", None], "size": [0.0, 59.0]})).tolist() == [
            [-1.0, 0.0],
            [2.0, 1.0],
        ]
