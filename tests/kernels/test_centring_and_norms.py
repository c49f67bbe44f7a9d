"""Kernels about a mean and of length one: against explicit features and scikit-learn, out of sample, and at zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import KernelCenterer

from mercer import Gram
from mercer import kernels as k
from mercer._errors import DataError, ParameterError
from mercer.maps import PolynomialMap

RNG = np.random.default_rng(4)
X, Z, REFERENCE = RNG.normal(size=(9, 3)), RNG.normal(size=(6, 3)), RNG.normal(size=(7, 3)) + 1.0


def features(rows: np.ndarray) -> np.ndarray:
    """Those of ``2 (x'z / 2 + 1)^3 + (x'z)^2``."""
    cubic, square = PolynomialMap(3, 0.5, 1.0), PolynomialMap(2, 1.0, 0.0)
    return np.hstack([np.sqrt(2.0) * cubic.fit_transform(rows), square.fit_transform(rows)])


KERNEL = 2.0 * k.Polynomial(3, 0.5, 1.0) + k.Polynomial(2, 1.0, 0.0)


def unit(F: np.ndarray) -> np.ndarray:
    return F / np.linalg.norm(F, axis=1, keepdims=True)


MIDDLE, UNIT_MIDDLE = features(REFERENCE).mean(axis=0), unit(features(REFERENCE)).mean(axis=0)
CASES = [
    (KERNEL.normalized(), lambda A: unit(features(A))),
    (KERNEL.centered(REFERENCE), lambda A: features(A) - MIDDLE),
    (KERNEL.centered(REFERENCE).normalized(), lambda A: unit(features(A) - MIDDLE)),
    (KERNEL.normalized().centered(REFERENCE), lambda A: unit(features(A)) - UNIT_MIDDLE),
    (
        KERNEL.centered(REFERENCE) + 3.0 * KERNEL.normalized(),
        lambda A: np.hstack([features(A) - MIDDLE, np.sqrt(3.0) * unit(features(A))]),
    ),
]


@pytest.mark.parametrize(("kernel", "explicit"), CASES, ids=[repr(case[0])[:60] for case in CASES])
def test_explicit_features(kernel: Any, explicit: Any) -> None:
    F, G = explicit(X), explicit(Z)
    tolerances = {"rtol": 1e-12, "atol": 1e-12 * np.abs(F @ F.T).max()}
    np.testing.assert_allclose(kernel(X), F @ F.T, **tolerances)
    np.testing.assert_allclose(kernel(X, Z), F @ G.T, **tolerances)
    np.testing.assert_allclose(kernel.diagonal(X), (F * F).sum(axis=1), **tolerances)
    gram, v = Gram(kernel, X, n_jobs=1), RNG.normal(size=(9, 2))
    np.testing.assert_allclose(gram @ v, F @ (F.T @ v), rtol=1e-11, atol=tolerances["atol"] * 10)
    np.testing.assert_allclose(gram.diagonal(), (F * F).sum(axis=1), **tolerances)
    some = np.array([5, 1, 8])
    np.testing.assert_allclose(gram.restrict(some, slice(2, 6)).dense(), F[some] @ F[2:6].T, **tolerances)
    np.testing.assert_allclose(gram.restrict(some, some).dense(), F[some] @ F[some].T, **tolerances)
    np.testing.assert_allclose(kernel(sp.csr_array(X), sp.csr_array(Z)), F @ G.T, **tolerances)
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, F @ G.T, atol=2e-5 * np.abs(features(X) @ features(X).T).max())


@pytest.mark.parametrize("kernel", [k.RBF(1.5), KERNEL, k.Matern(1.0, nu=1.5) * k.Linear()], ids=repr)
def test_centring_is_that_of_scikit_learn(kernel: Any) -> None:
    peer = KernelCenterer().fit(kernel(X))
    tolerances = {"rtol": 1e-11, "atol": 1e-13 * kernel.diagonal(X).max()}
    np.testing.assert_allclose(kernel.centered(X)(X), peer.transform(kernel(X)), **tolerances)
    np.testing.assert_allclose(kernel.centered(X)(Z, X), peer.transform(kernel(Z, X)), **tolerances)
    np.testing.assert_allclose(kernel.centered(X)(X).sum(axis=0), 0.0, atol=9 * tolerances["atol"])


def test_reference_rows_count_as_often_as_they_stand_there() -> None:
    weights = np.array([0, 1, 2, 3, 1, 0, 2])
    F, G = features(X), features(Z)
    middle = np.average(features(REFERENCE), axis=0, weights=weights)
    result = KERNEL.centered(np.repeat(REFERENCE, weights, axis=0))(X, Z)
    np.testing.assert_allclose(result, (F - middle) @ (G - middle).T, rtol=1e-12, atol=1e-10)


def test_rows_of_length_zero_have_no_direction() -> None:
    rows = np.vstack([np.zeros((1, 3)), X[:2], np.zeros((1, 3))])
    for kernel in (k.Linear(), k.Polynomial(2, 1.0, 0.0)):
        K = kernel.normalized()(rows)
        # The cosine with nothing is 0, also of nothing with itself, in every way of asking.
        assert (K[[0, 3]] == 0).all() and (K[:, [0, 3]] == 0).all()
        np.testing.assert_allclose(K[1:3, 1:3].diagonal(), 1.0, rtol=1e-15 * 4)
        assert kernel.normalized().diagonal(rows).tolist() == [0.0, 1.0, 1.0, 0.0]
        assert np.isfinite(kernel.normalized().pullback(rows, None, np.ones((4, 4)))).all()
    assert (k.Linear().normalized()(np.zeros((2, 3))) == 0).all()
    # A row that is the mean is one of these.
    middle = REFERENCE.mean(axis=0, keepdims=True)
    assert np.abs(k.Linear().centered(REFERENCE)(middle)).max() < 1e-15


@pytest.mark.parametrize("seed", range(20))
def test_a_row_at_the_mean_has_length_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = 10.0 ** rng.integers(-3, 4) * rng.normal(size=(rng.integers(2, 30), 3)) + 3.0 * rng.normal(size=3)
    middle = reference.mean(axis=0, keepdims=True)
    same = np.repeat(reference[:1], 7, axis=0)
    for kernel, row in [
        (k.Linear().centered(reference), middle),
        (k.RBF(1.0).centered(same), same[:1]),
        (k.Polynomial(3).centered(same), same[:1]),
        (k.NegativeDistance().centered(same), same[:1]),
    ]:
        assert kernel.diagonal(row).tolist() == [0.0]
        # Rounding below 0 is no reason to refuse it.
        rows = np.vstack([row, 2 * row])
        assert (kernel.normalized()(rows)[0] == 0).all()


def test_a_table_is_centred_by_the_terms_of_a_sum() -> None:
    table = pd.DataFrame({"text": ["abc", "abd", "xyz", "abcabc"], "size": [1.0, 2.0, 3.0, 4.0]})
    terms = k.Spectrum(2).on(["text"]), k.RBF(1.0).on(["size"])
    with pytest.raises(ParameterError, match=r"compares columns of a table.*kernel\.centered\(X\[columns\]\)\.on"):
        (terms[0] + terms[1]).centered(table)
    kernel = k.Spectrum(2).centered(table["text"]).on(["text"]) + k.RBF(1.0).centered(table[["size"]]).on(["size"])
    expected = KernelCenterer().fit_transform((terms[0] + terms[1])(table))
    np.testing.assert_allclose(kernel(table), expected, atol=1e-14 * 9)


def test_tiny_and_huge_rows_have_a_direction() -> None:
    # Norms whose squares are near the ends of the range of float64.
    for size in (1e-150, 1e150):
        np.testing.assert_allclose(k.Linear().normalized()(size * X), unit(X) @ unit(X).T, rtol=1e-13, atol=1e-15)


def test_a_kernel_that_is_negative_on_its_diagonal_is_refused() -> None:
    with pytest.raises(DataError, match=r"k\(x, x\) = .* < 0 in row 0.*only positive"):
        k.Sigmoid(1.0, -5.0).normalized()(np.zeros((2, 3)))
