"""Which pairs of a path over a stored matrix take steps on rows that are picked one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.svm import pairwise
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.pairwise import solve_pairs, solve_pairs_along
from mercer.solvers.svm.picked_pair import PickedPair
from mercer.solvers.svm.smo import SMO

SIZES = np.array([300, 290])


@pytest.fixture
def gram() -> PrecomputedGram:
    X = np.random.default_rng(0).normal(size=(590, 3))
    X[:300] += 0.7
    return PrecomputedGram(RBF(1.0)(X))


@pytest.mark.parametrize(("most", "expected"), [(589, 1), (590, 2)])
def test_more_rows_of_a_path_have_a_copy(
    monkeypatch: pytest.MonkeyPatch, gram: PrecomputedGram, most: int, expected: int
) -> None:
    made: list[tuple[int, int]] = []

    class Counted(PickedPair):
        def __init__(self, gram: PrecomputedGram, sizes: tuple[int, int]) -> None:
            made.append(sizes)
            super().__init__(gram, sizes)

    monkeypatch.setattr(pairwise, "PickedPair", Counted)
    monkeypatch.setattr(pairwise, "PICKED_ALONG", most)
    machine = CSVC(SMO())
    alone = solve_pairs(gram, SIZES, np.full(590, 10.0), machine)
    path = solve_pairs_along(gram, SIZES, [np.full(590, 1.0), np.full(590, 10.0)], [machine, replace(machine)])
    assert len(made) == expected
    assert path[1].certificates[0].kkt_violation <= 1e-3
    # Both objectives are within the tolerance of the optimum.
    assert path[1].certificates[0].dual == pytest.approx(alone.certificates[0].dual, rel=1e-4)
