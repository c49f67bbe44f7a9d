"""``KernelRidge.fit`` against scikit-learn's: seconds, peak memory and residual.

Memory is the growth of the resident set's peak during one fit, each in a process of its own (on Linux).
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from sklearn.kernel_ridge import KernelRidge as Peer

from harness import HERE, Row, in_turn
from mercer import Gram, KernelRidge, kernels

TITLE = "KernelRidge.fit, RBF, n = 10,000, d = 50"
N, D, GAMMA, ALPHA = 10_000, 50, 0.02, 1.0
RESIDUAL = 1e-10
REPEATS = 3

# A process of its own; a small fit first, so that only what grows with n is counted.
PEAK = """
import sys
sys.path.insert(0, sys.argv[2])
import harness, kernel_ridge
X, y = kernel_ridge.problem(sys.argv[3])
model = kernel_ridge.contender(sys.argv[1])
model.fit(X[:200], y[:200])
before = harness.peak_so_far()
model.fit(X, y)
print(harness.peak_so_far() - before)
"""


def problem(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets: a sine of one column, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
    return X.astype(dtype), y.astype(dtype)


def contender(name: str) -> KernelRidge | Peer:
    """``"ours"`` or ``"peer"``."""
    return (KernelRidge if name == "ours" else Peer)(alpha=ALPHA, kernel="rbf", gamma=GAMMA)


def _peak_bytes(name: str, dtype: str) -> int:
    command = [sys.executable, "-c", PEAK, name, str(HERE), dtype]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def residual(X: np.ndarray, y: np.ndarray, dual_coef: np.ndarray) -> float:
    """``||y - (K + alpha I) c|| / ||y||`` in float64."""
    c = dual_coef.astype(np.float64)
    r = y - (Gram(kernels.RBF.from_gamma(GAMMA), X, dtype=np.float64) @ c + ALPHA * c)
    return float(np.linalg.norm(r) / np.linalg.norm(y))


def _rows(dtype: str) -> list[Row]:
    X, y = problem(dtype)
    ours, peer = contender("ours"), contender("peer")
    times = in_turn({"ours": lambda: ours.fit(X, y), "peer": lambda: peer.fit(X, y)}, repeats=REPEATS)
    error = residual(X, y, ours.dual_coef_)
    # In float32 scikit-learn stops at a residual that is a hundred million times as large.
    least = 2.0 if dtype == "float64" else 1.0
    met = times["peer"] >= least * times["ours"] and error <= RESIDUAL
    note = f"{ours.factorization_}; relative residual {error:.0e}, scikit-learn {residual(X, y, peer.dual_coef_):.0e}"
    rows = [Row(f"fit, {dtype}", "scikit-learn", times["ours"], times["peer"], f">= {least:g}", met, note)]
    peaks = {name: _peak_bytes(name, dtype) for name in ("ours", "peer")}
    note = f"peak memory {peaks['ours'] / 2**20:.0f} MiB, scikit-learn {peaks['peer'] / 2**20:.0f} MiB"
    less = peaks["ours"] <= peaks["peer"]
    rows.append(Row(f"memory of the fit, {dtype}", "scikit-learn", times["ours"], times["peer"], "no more", less, note))
    return rows


def run() -> list[Row]:
    """All rows of the section."""
    return [row for dtype in ("float64", "float32") for row in _rows(dtype)]


if __name__ == "__main__":
    for row in run():
        print(row)
