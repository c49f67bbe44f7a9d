"""Which task a target poses, and targets that pose none."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mercer import Blocks
from mercer._errors import DataError, ParameterError
from mercer.data.target import known_target, outlying, read_target

_RINGS = [1, 1, 15, 57, 115, 259, 391, 568, 689, 634, 487, 267, 203, 126, 103, 67, 58, 42, 32, 26, 14, 6, 9, 2, 1, 1, 2]
RINGS = [*np.repeat(np.arange(1, 28), _RINGS), 29]
"""Rings of abalones, which are counted (Nash et al. 1994)."""
HEARTS = np.repeat([*range(1, 11), 14, 15, 16], [245, 44, 15, 15, 13, 25, 3, 2, 9, 50, 4, 5, 22])
"""Kinds of arrhythmia, which are codes (Guvenir et al. 1997)."""


@pytest.mark.parametrize(
    ("values", "task", "why"),
    [
        (["a", "b", "a"], "classification", "holds text, 2 different values"),
        ([True, False, True], "classification", "booleans"),
        ([0, 1, 1], "classification", "whole numbers, 2 different values in 3 rows"),
        ([-1.0, 1.0, 1.0], "classification", "whole numbers"),
        (list(range(10)) * 5, "classification", "10 different values in 50 rows"),
        (list(range(10)) * 4, "regression", "10 different values in 40 rows"),
        (list(range(30)) * 7, "regression", "30 different values in 210 rows"),
        (list(range(11)) * 20, "regression", "11 different values in 220 rows"),
        (list(range(26)) * 100, "classification", "26 different values in 2600 rows"),
        (list(range(31)) * 200, "regression", "31 different values"),
        (RINGS, "regression", "28 different values in 4177 rows; if they are classes, --task classification"),
        (HEARTS, "classification", "13 different values in 452 rows; if they are quantities, --task regression"),
        (list(range(12)) * 20 + [30], "regression", "13 different values"),
        (list(range(12)) * 120 + [20, 25, 30], "regression", "15 different values"),
        (list(range(101)) * 200, "regression", "101 different values in 20200 rows"),
        ([0.5, 1.0, 2.0], "regression", "numbers with fractions"),
    ],
)
def test_task_is_worked_out_and_explained(values, task, why):
    target = read_target(values, "y")
    assert target.task == task
    assert why in target.why


def test_digits_with_leading_zeros_are_codes():
    target = read_target(pd.Series(["007", "012", "120"]), "zip")
    assert target.task == "classification" and target.values.tolist() == ["007", "012", "120"]
    # However many there are, they are not quantities.
    many = [f"{number:05d}" for number in range(200)]
    assert read_target(many, "zip").task == "classification"
    assert read_target(many, "zip", "regression").values.tolist() == list(range(200))
    assert read_target(["0.5", "0", "12"], "y").task == "regression"
    assert known_target(["007", "120"], "zip", "classification", ["007", "012", "120"], str).tolist() == ["007", "120"]
    assert known_target(["007", "120"], "y", "regression", [], str).tolist() == [7.0, 120.0]


def test_values_come_in_the_form_that_estimators_take():
    assert read_target(pd.Series(["b", "a"]), "y").values.dtype.kind == "U"
    assert read_target([1.0, 2.0], "y").values.dtype == np.int64
    assert read_target(np.array([1, 2], dtype=np.uint8), "y").values.dtype == np.int64
    assert read_target([1, 2], "y", "regression").values.dtype == np.float64
    assert read_target(pd.Series([True, False], dtype=object), "y").values.dtype == bool
    assert read_target(pd.Series(["x", "y"], dtype="category"), "y").values.tolist() == ["x", "y"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_short_floats_are_compared_as_long_ones(dtype):
    values = np.linspace(0, 1, 64).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read_target(values, "y").values, values.astype(np.float64))
        assert Blocks(np.ones((64, 1)), values).survey().n == 64
        values[5] = np.inf
        with pytest.raises(DataError, match="the target 'y' is inf in row 6"):
            read_target(values, "y")
        with pytest.raises(DataError, match="row 6: the target y is inf"):
            Blocks(np.ones((64, 1)), values).survey()


def test_decimals_and_bytes_are_numbers_and_text():
    assert read_target([Decimal("1.5"), Decimal(2), Decimal(3)], "y").values.tolist() == [1.5, 2.0, 3.0]
    assert read_target(np.array([b"no", b"yes", b"no"], dtype=object), "y").values.tolist() == ["no", "yes", "no"]


def test_what_the_user_asks_for_is_taken():
    target = read_target(list(range(10)) * 5, "y", "regression")
    assert target.task == "regression" and "that was asked for" in target.why
    assert read_target([1, 2, 3, 4], "y", "classification").task == "classification"
    with pytest.raises(ParameterError, match=r"task='clustering'"):
        read_target([1, 2], "y", "clustering")


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        ([3.0, 3.0], None, "'y' is constant: it holds the same number everywhere .3.0 in all 2 rows"),
        ([3.0, 3.0], "classification", "'y' is constant: it holds one class only .3.0 in all 2 rows"),
        ([3.5, 3.5], None, "'y' is constant: it holds the same number everywhere"),
        (["a", "a", "a"], None, "'y' is constant: it holds one class only .'a' in all 3 rows"),
        (["a"], None, "there is 1 row"),
        ([1.0, np.nan, 2.0], None, "'y' is missing .* in 1 of 3 rows, first in line 2"),
        (pd.Series(["a", None, "b"]), None, "'y' is missing .* in 1 of 3 rows, first in line 2"),
        (np.array(["1", "nan", "3"]), None, "'y' is nan in line 2"),
        ([1.0, 2.0, np.inf], None, "'y' is inf in line 3, and must be a finite number"),
        ([1.0, 2.0, -1e200], None, "'y' is -1e.200 in line 3, and must be a finite number of at most 1e.150"),
        (
            pd.Series([[1], [2, 3]]),
            None,
            "'y' holds list values such as '.1.' in line 1; a target is text, booleans or numbers",
        ),
        (["1", "x", "2"], None, "'y' holds text in 1 of 3 rows and numbers in the others; the first is 'x' in line 2"),
        (["1,100.5", "2,200", "13,000"], None, "numbers in another notation such as '1,100.5' in line 1.*as in 1234.5"),
        (["5%", "10%"] * 9, "regression", "numbers in another notation such as '5%'"),
        (
            [f"2026-01-{day:02d}" for day in range(1, 29)],
            None,
            "holds dates such as '2026-01-01' in line 1.*as numbers",
        ),
        (["x", "y", "2"], "regression", "needs a numeric target.*'x' in line 1.*--task classification"),
        ([0.5, 1.5, 2.0], "classification", "fractions.*--task regression"),
    ],
)
def test_targets_that_cannot_be_learned(values, task, words):
    with pytest.raises(DataError, match=words):
        read_target(values, "y", task, lambda row: f"line {row + 1}")


def test_numbers_that_came_as_text_are_numbers():
    assert read_target(pd.Series(["1.5", "2"], dtype=object), "y").values.tolist() == [1.5, 2.0]


def test_few_shares_that_repeat_are_classes():
    assert read_target(["5%", "10%", "20%"] * 9, "y").task == "classification"


def test_targets_of_new_data_are_matched_with_the_known_classes():
    def place(row):
        return f"line {row + 1}"

    assert known_target([1.0, 2.0], "y", "classification", [1, 2, 3], place).tolist() == [1, 2]
    assert known_target([1, 2], "y", "classification", ["1", "2"], place).tolist() == ["1", "2"]
    assert known_target([1, 2], "y", "regression", [], place).tolist() == [1.0, 2.0]
    with pytest.raises(DataError, match=r"'c' in line 2, which is not one of the model's classes: 'a', 'b'"):
        known_target(["a", "c"], "y", "classification", ["a", "b"], place)
    with pytest.raises(DataError, match=r"predicts numbers, but 'y' holds text"):
        known_target(["a", "c"], "y", "regression", [], place)


def test_differences_whose_squares_are_zero_are_refused():
    with pytest.raises(DataError, match="differs between rows by 2e-165 at most"):
        read_target(np.array([1e-165, 2e-165, 3e-165]), "y", task="regression")
    assert read_target(np.array([1e-140, 2e-140, 3e-140]), "y", task="regression").task == "regression"


def test_whole_numbers_beyond_those_of_64_bits():
    values = np.array([2**64 - 1, 5, 7, 2**63], dtype=np.uint64)
    np.testing.assert_array_equal(read_target(values, "y").values, values.astype(np.float64))
    with pytest.raises(DataError, match=r"holds 1e\+20, and numbers of that size cannot stand for classes"):
        read_target(np.array([1e20, 1.0] * 5), "y")


def test_one_target_that_is_not_like_the_others():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    for draw in (y, rng.exponential(size=100), rng.standard_t(2, size=100), np.repeat([0.0, 1.0], [99, 1])):
        assert outlying(draw) is None
    y[17] = 1e6
    others = np.delete(y, 17)
    row, distance = outlying(y)
    assert row == 17
    np.testing.assert_allclose(distance, (1e6 - others.mean()) / others.std())
    # Repeated rows and weights are the same, and two such rows are not alone.
    counts = rng.integers(1, 4, 100).astype(float)
    counts[17] = 1.0
    repeated = np.repeat(y, counts.astype(int))
    np.testing.assert_allclose(outlying(y, counts)[1], outlying(repeated)[1])
    counts[17] = 2.0
    assert outlying(y, counts) is None and outlying(np.repeat(y, counts.astype(int))) is None
    assert outlying(y, (np.arange(100) != 17).astype(float)) is None
    np.testing.assert_allclose(outlying(1e290 * y)[1], distance)
    assert outlying(y[:9]) is None and outlying(np.zeros(0)) is None
