"""Matrices whose spectrum is known, and the proof of a witness."""

from __future__ import annotations

import functools

import numpy as np
import pytest


@functools.cache
def _turns(n: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def planted(values, seed: int = 0) -> np.ndarray:
    """A symmetric matrix with these eigenvalues and random eigenvectors."""
    Q = _turns(len(values), seed)
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def verify_witness(K: np.ndarray, report) -> None:
    """What makes a witness one, by plain arithmetic."""
    c = report.witness
    assert np.linalg.norm(c) == pytest.approx(1.0)
    assert c @ K @ c == pytest.approx(report.witness_value, rel=1e-6)
    assert c @ K @ c < -report.tolerance
