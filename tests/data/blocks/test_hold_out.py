"""Rows that are held out of blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Blocks
from mercer._errors import DataError
from mercer.data.blocks.hold_out import HeldOutRows

X = np.arange(400.0).reshape(200, 2)
Y = np.arange(200) % 5
WEIGHTS = (np.arange(200) % 4 > 0).astype(float)


def held(blocks: Blocks, most: int = 1000, labels: bool = True) -> HeldOutRows:
    return HeldOutRows.of(blocks, 0.2, most, np.random.RandomState(0), labels=labels)


@pytest.mark.parametrize("rows", [7, 64, 500])
def test_all_rows_are_on_one_side(rows: int) -> None:
    found = held(Blocks(X, Y, sample_weight=WEIGHTS, rows_per_block=rows))
    np.testing.assert_array_equal(found.sample.X, X[found.positions])
    np.testing.assert_array_equal(found.sample.y, Y[found.positions])
    assert found.used == 150 and len(found.positions) == 30 and WEIGHTS[found.positions].all()
    others = np.delete(np.arange(200), found.positions)
    for _ in range(2):
        parts = list(found.others())
        np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), X[others])
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), Y[others])
        np.testing.assert_array_equal(np.concatenate([part.sample_weight for part in parts]), WEIGHTS[others])


def test_they_do_not_depend_on_the_blocks() -> None:
    drawn = [held(Blocks(X, Y, rows_per_block=rows)).positions.tolist() for rows in (3, 50, 200)]
    assert drawn[0] == drawn[1] == drawn[2]
    assert held(Blocks(sp.csr_matrix(X), Y)).positions.tolist() == drawn[0]
    assert len(held(Blocks(X, Y), most=9).positions) == 9


def test_a_class_keeps_most_of_its_rows() -> None:
    labels = Y.astype(str)
    positions = held(Blocks(X, labels), labels=False).positions
    labels[positions[0]] = "rare"
    found = held(Blocks(X, labels))
    assert "rare" not in found.sample.y and found.positions.tolist() == positions[1:].tolist()
    assert "rare" in np.concatenate([part.y for part in found.others()])


def test_rows_without_weight_are_refused() -> None:
    with pytest.raises(DataError, match="all sample weights are zero"):
        held(Blocks(X, Y, sample_weight=np.zeros(200)))
