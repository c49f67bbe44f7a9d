"""The rows that are held out for the score."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.cli.hold_out import Draw, hold_out
from mercer.data.target import read_target


def masks(draw: Draw, y: np.ndarray, cuts: list[int]) -> np.ndarray:
    turns = draw.masks()
    return np.concatenate([turns.next(part) for part in np.split(y, cuts)])


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.15, 1 / 3, 0.004, 0.999])
def test_a_share_of_the_rows_of_every_class(share: float) -> None:
    random = np.random.default_rng(0)
    y = random.choice(np.array(["a", "b", "c"], dtype=object), 3000, p=[0.7, 0.2, 0.1])
    mask = Draw(share, True, 1).masks().next(y)
    for label in "abc":
        of_class = mask[y == label]
        assert not of_class[0] and abs(of_class.sum() - share * len(of_class)) <= max(2.0, 0.01 * len(of_class))
    numbers = Draw(share, False, 1).masks().next(random.normal(size=3000))
    assert abs(numbers.sum() - share * 3000) <= 30


def test_the_rows_do_not_depend_on_the_blocks() -> None:
    y = np.random.default_rng(0).integers(0, 5, 500)
    draw = Draw(0.1, True, 3)
    whole = draw.masks().next(y)
    for cuts in ([1], [7, 8, 300], list(range(1, 500))):
        np.testing.assert_array_equal(masks(draw, y, cuts), whole)
    assert (whole != Draw(0.1, True, 4).masks().next(y)).any()


def test_rows_in_turns_are_drawn_from_all_places() -> None:
    mask = Draw(0.1, False, 0).masks().next(np.zeros(20_000))
    counts = mask.reshape(2000, 10).sum(axis=0)
    # Binomial with mean 200 and standard deviation 13.4.
    assert mask.sum() == 2000 and np.abs(counts - 200).max() < 60 and (mask.reshape(2000, 10).sum(axis=1) == 1).all()


def test_a_class_of_few_rows_is_learned() -> None:
    y = np.array(["often"] * 200 + ["twice", "once", "twice"], dtype=object)
    for seed in range(50):
        mask = Draw(0.5, True, seed).masks().next(y)
        assert set(y[~mask]) == {"often", "twice", "once"}


def test_a_table_in_memory_has_the_same_share_of_every_class() -> None:
    target = read_target(["a", "b"] * 50 + ["c"], "y")
    with pytest.warns(match="classes of 'y' with one row only stay in the training part: 'c'"):
        train, test = hold_out(target, 0.2, 0)
    labels, counts = np.unique(target.values[test], return_counts=True)
    assert labels.tolist() == ["a", "b"] and counts.tolist() == [10, 10] and len(train) == 81


@pytest.mark.parametrize("share", [0.002, 0.005, 0.006])
def test_a_small_share_of_many_rows(share: float) -> None:
    assert Draw(share, False, 0).masks().next(np.arange(100_000.0)).sum() == round(100_000 * share)
