"""What the kernels of a search share on vectors: distances of long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from mercer import SVC, GridSearchCV, config
from mercer.kernels import RBF, Kernel, Laplacian, Matern, Polynomial, RationalQuadratic
from mercer.selection.fold_rows import FoldMatrices
from search_cases import both

THREE = KFold(3, shuffle=True, random_state=0)
KERNELS: list[list[Kernel]] = [
    [RBF(4.0), RBF(8.0), Matern(9.0, nu=2.5), RationalQuadratic(7.0), 0.5 * RBF(5.0) + 0.1],
    [Laplacian(60.0), Laplacian(90.0), Laplacian(70.0).normalized()],
    [Polynomial(2), Polynomial(3, scale=0.1)],
]


def long_rows(n: int = 150, d: int = 70) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)


@pytest.mark.parametrize("kernels", KERNELS, ids=lambda kernels: type(kernels[0]).__name__)
@pytest.mark.parametrize("form", ["dense", "sparse", "more than a tile"])
def test_matrices_from_stored_distances_have_the_bits_of_those_without(kernels: list[Kernel], form: str) -> None:
    X: Any = long_rows(600 if form == "more than a tile" else 150)[0]
    if form == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 1, X, 0))
        if isinstance(kernels[0], Laplacian):
            X = X.toarray()
    matrices = FoldMatrices(X, None)
    for number, kernel in enumerate(kernels):
        whole = matrices.matrix(kernel)
        assert whole is not None and matrices.from_parts == number
        assert np.array_equal(whole.block(), kernel(X))
    matrices.close()
    # Another set of fits begins with nothing stored.
    assert matrices.matrix(kernels[0]) is not None


def test_distances_are_stored_where_they_pay_and_fit_only() -> None:
    X, _ = long_rows()
    few = FoldMatrices(X[:, :20], None)
    bits = FoldMatrices((X > 0).astype(float), None)
    columns = FoldMatrices(X, None)
    for width in (1.0, 2.0, 3.0):
        for matrices in (few, bits):
            assert matrices.matrix(RBF(width)) is not None
        assert columns.matrix(RBF(width).on([0, 1])) is not None
    X, _ = long_rows(400)
    low = FoldMatrices(X, None)
    with config(memory=100 * len(X) ** 2):
        for width in (1.0, 2.0, 3.0):
            assert low.matrix(RBF(width)) is not None
            low.begin()
    assert few.from_parts == bits.from_parts == columns.from_parts == low.from_parts == 0


def test_a_search_over_length_scales_has_the_scores_of_fits_alone() -> None:
    X, y = long_rows(90)
    grid = {"kernel": KERNELS[0], "C": [0.1, 1.0, 10.0]}
    ours, _ = both(GridSearchCV(SVC(), grid, cv=THREE), X, y)
    assert "; 4 of them from stored distances" in ours.sharing_
