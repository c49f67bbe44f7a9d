"""``PolynomialMap.transform`` against scikit-learn's ``PolynomialFeatures``, which has no weights: seconds."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures as Peer

from harness import Row, in_turn
from mercer.maps import PolynomialMap

TITLE = "PolynomialMap.transform, degree 2"
N, D = 50_000, 100
DENSITY = 0.1
REPEATS = 3


def run() -> list[Row]:
    """All rows of the section."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    S = sp.csr_matrix(X * (rng.random(X.shape) < DENSITY))
    ours, peer = PolynomialMap(2).fit(X), Peer(2).fit(X)
    rows = []
    for name, data in (("dense", X), (f"sparse, {DENSITY:g} of the entries", S)):
        times = in_turn(
            {"ours": lambda data=data: ours.transform(data), "peer": lambda data=data: peer.transform(data)},
            repeats=REPEATS,
        )
        met = times["ours"] <= times["peer"]
        case = f"{N:,} x {D}, {name}"
        rows.append(Row(case, "scikit-learn", times["ours"], times["peer"], ">= 1", met, f"{5151:,} features"))
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
