"""``KernelPerceptron`` against a NumPy loop over the rows of a kernel matrix, ten passes.

The loop makes the same steps, one product of the weights with a row of the matrix each. First both are given the
matrix; then ours has only the rows and makes the kernel values it needs, while the time for the loop's matrix is still
not counted, and then it is. The last row of the table streams rows through ``partial_fit`` inside a budget. Run as a
script with a number it takes so many rows, for a trial.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from harness import Row, in_turn
from mercer import KernelPerceptron
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.online.perceptron import make_passes
from mercer.solvers.online.problem import Expansion, PerceptronProblem

TITLE = "KernelPerceptron, RBF, d = 20, ten passes over 20,000 rows"
N, D, PASSES = 20_000, 20, 10
FASTER = 20.0
STREAMED, PART, BUDGET = 20_000.0, 1000, 500
KERNEL = RBF(5.0)
GAMMA = 0.5 / 5.0**2


def rows(n: int, gap: float, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class is the sign of a smooth function that is at least ``gap`` in size; a share of labels turned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6 * n, D))
    values = X[:, 0] + X[:, 1] * X[:, 2] / 2 + np.sin(X[:, 3])
    clear = np.flatnonzero(np.abs(values) >= gap)[:n]
    y = np.where(values[clear] > 0, 1, -1)
    return X[clear], np.where(rng.random(len(clear)) < noise, -y, y)


def loop(K: np.ndarray, y: np.ndarray, passes: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """The perceptron as one writes it down."""
    theta, bias, mistakes, rng = np.zeros(len(y)), 0.0, [], np.random.RandomState(seed)
    for _ in range(passes):
        count = 0
        for i in rng.permutation(len(y)):
            if y[i] * (K[i] @ theta + bias) <= 0:
                theta[i] += y[i]
                bias += y[i]
                count += 1
        mistakes.append(count)
        if not count:
            break
    return theta, mistakes


def given(K: np.ndarray, y: np.ndarray, passes: int, seed: int) -> Expansion:
    """What ``KernelPerceptron`` does once it has looked whether the matrix is symmetric and positive semidefinite."""
    expansion = Expansion.empty(1, len(y))
    problem = PerceptronProblem(PrecomputedGram(K), (y > 0).astype(int), np.array([1]), constant=1.0)
    make_passes(problem, expansion, passes, np.random.RandomState(seed))
    return expansion


def _passes(n: int, gap: float) -> list[Row]:
    X, y = rows(n, gap)
    K = rbf_kernel(X, gamma=GAMMA)
    ours = KernelPerceptron(KERNEL, max_iter=PASSES, random_state=0)
    ours.fit(X[:500], y[:500])
    times = in_turn(
        {
            "ours": lambda: ours.fit(X, y),
            "loop": lambda: loop(K, y, PASSES, 0),
            "given": lambda: given(K, y, PASSES, 0),
            "matrix": lambda: rbf_kernel(X, gamma=GAMMA),
        },
        repeats=3,
    )
    theta, _ = loop(K, y, PASSES, 0)
    coefficients = np.zeros(len(y))
    coefficients[ours.support_] = ours.dual_coef_[0]
    same = bool(np.array_equal(coefficients, theta))
    expansion = given(K, y, PASSES, 0)
    same = same and bool(np.array_equal(expansion.theta[0], theta))
    note = (
        f"{ours.n_iter_} passes, {int(ours.mistakes_.sum())} updates of {len(ours.support_)} rows; "
        f"{'the same' if same else 'OTHER'} weights as the loop's"
    )
    facts = {"updates": float(ours.mistakes_.sum()), "support": float(len(ours.support_)), "same": float(same)}
    case = f"classes {gap:g} apart" if gap else "classes that touch"
    # Both read a row of the matrix, the loop at each step and ours at each update: no ratio is above their quotient.
    least = FASTER if gap else 0.0
    demand = f">= {least:g} x" if gap else "none: too many updates for it"

    def row(what: str, ours: float, peer: float) -> Row:
        return Row(
            f"{case}: {what}",
            "NumPy loop over a matrix",
            ours,
            peer,
            demand,
            peer >= least * ours and same,
            note,
            facts,
        )

    return [
        row("the passes, both given the matrix", times["given"], times["loop"]),
        row("fit to rows, the loop given the matrix", times["ours"], times["loop"]),
        row("fit to rows, the loop with its rbf_kernel", times["ours"], times["loop"] + times["matrix"]),
    ]


def _stream(n: int) -> Row:
    X, y = rows(n, 0.0, 0.1)
    parts = [slice(start, start + PART) for start in range(0, n, PART)]
    model = KernelPerceptron(KERNEL, budget=BUDGET, random_state=0).partial_fit(X[parts[0]], y[parts[0]], [-1, 1])
    start_time = time.perf_counter()
    for part in parts[1:]:
        model.partial_fit(X[part], y[part])
    seconds = time.perf_counter() - start_time
    rate = (n - PART) / seconds
    note = f"{rate:,.0f} rows a second, in parts of {PART}"
    return Row(
        f"partial_fit, budget {BUDGET}",
        "none",
        seconds,
        None,
        f">= {STREAMED:,.0f} rows a second",
        rate >= STREAMED,
        note,
        {"rate": rate},
    )


def run(n: int = N) -> list[Row]:
    """All rows of the section."""
    return [*_passes(n, 1.0), *_passes(n, 0.0), _stream(n)]


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else N):
        print(row)
