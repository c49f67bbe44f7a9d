"""Nearest rows in feature space against scikit-learn's brute-force Euclidean neighbours: seconds, and the same rows."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from harness import Row, in_turn
from mercer import KernelNeighborsClassifier

TITLE = "KernelNeighborsClassifier, RBF, 50,000 x 50 rows, 5000 queries, 5 neighbours"
N, M, D, K = 50_000, 5000, 50, 5
# The most that Mercer may take, in units of the peer's time.
ALLOWED = 2.0


def _rows(dtype: str, n: int, m: int) -> Row:
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(n, D)).astype(dtype), rng.normal(size=(m, D)).astype(dtype)
    y = rng.integers(0, 3, n)
    ours = KernelNeighborsClassifier(K, kernel="rbf").fit(X, y)
    peer = KNeighborsClassifier(K, algorithm="brute").fit(X, y)
    times = in_turn({"ours": lambda: ours.kneighbors(queries), "peer": lambda: peer.kneighbors(queries)})
    same = float((ours.kneighbors(queries)[1] == peer.kneighbors(queries)[1]).mean())
    # Of float32 rows scikit-learn compares distances in float64: nearly equal ones may change places.
    met = times["ours"] <= ALLOWED * times["peer"] and same >= (1.0 if dtype == "float64" else 0.999)
    note = f"{100 * same:.2f} % of the neighbours are the same in the same order"
    return Row(
        f"kneighbors, {dtype}",
        "scikit-learn, brute force",
        times["ours"],
        times["peer"],
        f"<= {ALLOWED:g} x its time",
        met,
        note,
        {"same": same},
    )


def run(n: int = N, m: int = M) -> list[Row]:
    """All rows of the section."""
    return [_rows(dtype, n, m) for dtype in ("float64", "float32")]


if __name__ == "__main__":
    for row in run():
        print(row)
