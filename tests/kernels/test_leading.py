"""Distances from leading directions: what they are, where they are used, and what they never change."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, Gram, kernels
from mercer.kernels.leading import leading_directions
from mercer.solvers.svm import active_set


@pytest.fixture(scope="module")
def wide():
    """Rows of 100 columns that vary in six directions, and a little in all."""
    rng = np.random.default_rng(20250701)
    return rng.standard_normal((3300, 6)) @ rng.standard_normal((6, 100)) + 0.1 * rng.standard_normal((3300, 100))


def test_directions_are_orthonormal_and_as_few_as_hold_their_share(rng):
    A = rng.standard_normal((500, 20)) * np.linspace(3, 0.1, 20)
    directions = leading_directions(A)
    np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-12)
    share = ((A @ directions) ** 2).sum() / (A**2).sum()
    assert share >= 0.95
    assert ((A @ directions[:, 1:]) ** 2).sum() / (A**2).sum() < 0.95


def test_values_are_those_of_the_formula(wide):
    X = wide[:60].copy()
    X[7] = X[3]
    close = Gram(kernels.RBF(9.0), X).leading()
    A = X - X.mean(axis=0)
    P = leading_directions(A)
    L, rest = A @ P, (A**2).sum(1) - ((A @ P) ** 2).sum(1)
    squares = ((L[:, None] - L[None]) ** 2).sum(-1) + rest[:, None] + rest
    squares[np.diag_indices(60)] = squares[7, 3] = squares[3, 7] = 0.0
    np.testing.assert_allclose(close.dense(), np.exp(-squares / (2 * 81)), rtol=1e-6)
    np.testing.assert_array_equal(close.diagonal(), np.ones(60))
    np.testing.assert_array_equal(close.restrict([3, 5], [7, 5]).dense(), close.dense()[np.ix_([3, 5], [7, 5])])
    assert close.astype(np.float32).dense().dtype == np.float32


def test_it_is_close_and_positive(wide):
    K = Gram(kernels.RBF(9.0), wide[:400])
    close = K.leading().dense()
    assert 0 < np.abs(close - K.dense()).max() < 0.01
    assert np.linalg.eigvalsh(close)[0] > -1e-10


def test_terms_on_the_same_rows_share_it(wide):
    kernel = kernels.RBF(9.0) + 2.0 * kernels.Matern(12.0, 1.5)
    close, K = Gram(kernel, wide[:50]).leading(), Gram(kernel, wide[:50])
    assert 0 < np.abs(close.dense() - K.dense()).max() < 0.05


@pytest.mark.parametrize(
    "kernel, X",
    [
        (kernels.Linear(), "wide"),
        (kernels.RBF(1.0).on([0, 1, 2]), "wide"),
        (kernels.RBF(1.0) + kernels.Linear(), "wide"),
        (kernels.RBF(1.0), "full"),
        (kernels.RBF(1.0), "narrow"),
        (kernels.RBF(1.0), "binary"),
    ],
)
def test_there_is_none_where_it_would_not_pay(wide, rng, kernel, X):
    data = {
        "wide": wide,
        "full": rng.standard_normal((300, 100)),
        "narrow": wide[:, :20],
        "binary": rng.integers(0, 2, (300, 100)),
    }
    assert Gram(kernel, data[X]).leading() is None


@pytest.fixture(scope="module")
def without(wide):
    """The machine that is fitted without distances from leading directions."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Gram, "leading", lambda self: None)
        return SVC(C=10.0, gamma=0.004, tol=1e-4).fit(wide, wide[:, 0] * wide[:, 1] > 0.3)


@pytest.mark.parametrize("cache_size", [200, 1])
def test_support_vector_machines_do_not_depend_on_it(wide, without, monkeypatch, cache_size):
    """With and without room for the rows of all support vectors in float64."""
    y, expected = wide[:, 0] * wide[:, 1] > 0.3, without
    used, rough = [], active_set._renew
    monkeypatch.setattr(active_set, "_renew", lambda *args: (used.append(1), rough(*args)))
    model = SVC(C=10.0, gamma=0.004, tol=1e-4, cache_size=cache_size).fit(wide, y)
    assert len(used) == (2 if cache_size == 200 else 1)
    assert model.certificate_.kkt_violation <= 1e-4
    assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(wide), expected.decision_function(wide), atol=2e-3)


def test_its_certificate_is_that_of_the_exact_kernel(wide):
    y = np.where(wide[:, 0] * wide[:, 1] > 0.3, 1.0, -1.0)
    model = SVC(C=10.0, gamma=0.004).fit(wide, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    K = Gram(model.kernel_, wide).dense()
    square = beta @ K @ beta
    assert model.certificate_.dual == pytest.approx(y @ beta - 0.5 * square, rel=1e-10)
    losses = np.maximum(0, 1 - y * (K @ beta + model.intercept_[0]))
    assert model.certificate_.primal == pytest.approx(0.5 * square + 10.0 * losses.sum(), rel=1e-10)


def test_constant_columns_change_nothing(wide, rng):
    padded = np.hstack([wide[:50], np.full((50, 40), 3.0)])
    np.testing.assert_allclose(kernels.RBF(5.0)(padded), kernels.RBF(5.0)(wide[:50]), rtol=1e-10)
    Z = rng.standard_normal(padded.shape)
    np.testing.assert_allclose(
        kernels.RBF(20.0)(padded, Z), np.exp(-((padded[:, None] - Z[None]) ** 2).sum(-1) / 800), rtol=1e-10
    )
    np.testing.assert_array_equal(kernels.RBF(5.0)(np.full((4, 70), 2.0)), np.ones((4, 4)))
    ones = sp.csr_matrix(np.hstack([np.ones((6, 40)), 2.0 * np.eye(6)]))
    np.testing.assert_allclose(kernels.RBF(5.0)(ones), kernels.RBF(5.0)(ones.toarray()), rtol=1e-12)
