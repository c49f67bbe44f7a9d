"""The section on the kernel."""

from __future__ import annotations

import numpy as np
import pytest

import mercer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
LABELS = np.where(X[:, 0] > 0, "a", "b")


def test_values_and_eigenvalues_are_those_of_the_matrix() -> None:
    ridge = mercer.KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(X, X[:, 0])
    section = mercer.report(ridge, X, X[:, 0])["kernel"]
    K = ridge.kernel_(X)
    s = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(section.table("The 30 largest").column("eigenvalue"), s[:30], atol=1e-12)
    fact = next(value for name, value in section.facts if name.startswith("effective dimension"))
    assert fact == pytest.approx((s / (s + 0.1)).sum())
    off = K[~np.eye(60, dtype=bool)]
    assert section.table("Kernel values").rows[1][1:] == pytest.approx((off.min(), np.median(off), off.max()))


def test_a_kernel_with_many_length_scales_can_be_read() -> None:
    scales = [1.23456789 + j for j in range(6)]
    model = mercer.KernelRidge(kernel=mercer.kernels.RBF(scales)).fit(np.hstack([X, X, X]), X[:, 0])
    section = mercer.report(model, np.hstack([X, X, X]), X[:, 0])["kernel"]
    assert section.fact("kernel") == "RBF([1.235, 2.235, 3.235, ... of 6])"
    assert section.fact("parameter length_scale").startswith("1.235, 2.235, 3.235")


def test_classes_are_told_apart() -> None:
    model = mercer.SVC().fit(X, LABELS)
    table = mercer.report(model, X, LABELS)["kernel"].table("Kernel values")
    assert table.column("values")[2:] == ["of the same class", "of different classes"]


def test_indefinite_and_given_matrices() -> None:
    model = mercer.SVC(kernel="sigmoid", allow_indefinite=True).fit(X, LABELS)
    report = mercer.report(model, X, LABELS)
    assert "distance" not in report and "kernel" in report
    given = mercer.KernelRidge(kernel="precomputed").fit(X @ X.T, X[:, 0])
    section = mercer.report(given, X @ X.T, X[:, 0], X_train=X @ X.T, y_train=X[:, 0])["kernel"]
    assert section.fact("kernel") == "a matrix that was given"
    assert section.table("The 30 largest").column("eigenvalue")[2] == pytest.approx(0.0, abs=1e-9)
