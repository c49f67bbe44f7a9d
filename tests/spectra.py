"""Matrices whose spectrum is known, and the proof of a witness."""

from __future__ import annotations

import numpy as np
import pytest


def planted(values, seed: int = 0) -> np.ndarray:
    """A symmetric matrix with these eigenvalues and random eigenvectors."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def verify_witness(K: np.ndarray, report) -> None:
    """What makes a witness one, by plain arithmetic."""
    c = report.witness
    assert np.linalg.norm(c) == pytest.approx(1.0)
    assert c @ K @ c == pytest.approx(report.witness_value, rel=1e-6)
    assert c @ K @ c < -report.tolerance
