"""Kernels on images against a Gaussian kernel of the pixels: accuracy on handwritten digits; and bags against loops."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC as PeerSVC

from harness import Row, in_turn
from mercer import SVC
from mercer.kernels import RBF, ConvolutionalPatches, SetOf, SpatialPyramid

TITLE = "Images and bags: digits (8 x 8), half of them to learn from; the mean of RBF over bags"
N, BAGS = 1797, 200
# What each kernel should reach: bounds of plausibility, not figures of a paper.
KERNELS = {
    "SpatialPyramid(3, bins=8)": (SpatialPyramid(3, bins=8, values=(0.0, 16.0)), 0.95),
    "ConvolutionalPatches(4)": (ConvolutionalPatches(4, length_scale=12.0), 0.85),
}


def _accuracy(n: int) -> list[Row]:
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X[:n], y[:n], test_size=0.5, random_state=0, stratify=y[:n])
    X, X_test, y, y_test = parts
    peer = PeerSVC(C=10.0).fit(X, y).score(X_test, y_test)
    rows = []
    for name, (kernel, least) in KERNELS.items():
        images, new = X.reshape(-1, 8, 8), X_test.reshape(-1, 8, 8)
        score = float(SVC(kernel=kernel.normalized(), C=1000.0).fit(images, y).score(new, y_test))
        note = f"{100 * score:.1f} % right, scikit-learn's RBF on pixels {100 * peer:.1f} %"
        rows.append(
            Row(
                f"digits, {name}",
                "RBF on pixels",
                None,
                None,
                f">= {100 * least:g} %",
                score >= least,
                note,
                {"accuracy": score, "peer": float(peer)},
            )
        )
    return rows


def _bags(count: int) -> Row:
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(size, 10)) for size in rng.integers(5, 40, count)]

    def loop() -> np.ndarray:
        return np.array([[rbf_kernel(a, b, gamma=0.5).mean() for b in bags] for a in bags])

    kernel = SetOf(RBF(1.0))
    error = float(np.abs(kernel(bags) - loop()).max())
    times = in_turn({"ours": lambda: kernel(bags), "peer": loop}, repeats=3)
    met = times["ours"] <= times["peer"] and error < 1e-12
    return Row(
        f"SetOf(RBF), {count} bags",
        "loop over pairs, scikit-learn's rbf_kernel",
        times["ours"],
        times["peer"],
        "<= its time, same to 1e-12",
        met,
        f"largest difference {error:.1e}",
        {"error": error},
    )


def run(n: int = N, bags: int = BAGS) -> list[Row]:
    """All rows of the section."""
    return [*_accuracy(n), _bags(bags)]


if __name__ == "__main__":
    for row in run():
        print(row)
