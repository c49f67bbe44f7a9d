"""``KernelPCA.fit`` against scikit-learn's default solver: seconds, and how far the answers are apart."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import KernelPCA as Peer

from harness import Row, in_turn
from mercer import KernelPCA

TITLE = "KernelPCA.fit, RBF, 20 components"
COMPONENTS = 20
# Rows, columns, gamma, and how many times as fast as scikit-learn it has to be.
CASES = ((2_000, 10, 0.05, 1.0), (10_000, 10, 0.05, 2.0), (10_000, 50, 0.02, 2.0))
REPEATS = 3
# Of the eigenvalues, relative to the largest.
ACCURACY = 1e-10


def problem(n: int, d: int) -> np.ndarray:
    """Rows around eight centres."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, d))
    rows: np.ndarray = centres[rng.integers(8, size=n)] + 0.5 * rng.normal(size=(n, d))
    return rows


def case(n: int, d: int, gamma: float, least: float) -> Row:
    """One row of the table."""
    X = problem(n, d)
    ours = KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, random_state=0)
    peer = Peer(COMPONENTS, kernel="rbf", gamma=gamma)
    runs = {"ours": lambda: ours.fit(X), "peer": lambda: peer.fit(X)}
    small = X[:300]
    times = in_turn(runs, REPEATS, lambda name: (ours if name == "ours" else peer).fit(small))
    ours.fit(X)
    difference = float(np.abs(ours.eigenvalues_ - peer.eigenvalues_).max() / peer.eigenvalues_[0])
    met = times["peer"] >= least * times["ours"] and difference <= ACCURACY
    note = (
        f"{ours.solver_}, {ours.certificate_.iterations} blocks; eigenvalues apart by {difference:.0e} of the largest"
    )
    return Row(f"n = {n:,}, d = {d}", "scikit-learn", times["ours"], times["peer"], f">= {least:g}", met, note)


def run() -> list[Row]:
    """All rows of the section."""
    return [case(*arguments) for arguments in CASES]


if __name__ == "__main__":
    for row in run():
        print(row)
