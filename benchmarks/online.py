"""``OnlineKernelLogisticRegression.partial_fit`` on a stream, within a budget, against loops in NumPy.

The loops make the same steps row by row: kernel values of the row with the support, its value, and what the budget asks
for. Merging has no loop beside it. Run as a script with a number it takes so many rows, for a trial.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.base import clone

from harness import Row, seconds_of
from mercer import OnlineKernelLogisticRegression
from mercer.kernels import RBF

TITLE = "OnlineKernelLogisticRegression.partial_fit, RBF, d = 20, budget 500, parts of 1000 rows"
N, D, PART, BUDGET, ALPHA = 40_000, 20, 1000, 500, 1e-3
DEMAND = 20_000.0
LENGTH = 5.0
# The loops take so many rows: a rate needs no more.
LOOPED = 6_000


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class is the sign of a smooth function, one label in ten turned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    values = X[:, 0] + X[:, 1] * X[:, 2] / 2 + np.sin(X[:, 3])
    return X, np.where((values > 0) ^ (rng.random(n) < 0.1), 1, -1)


def _kernel_row(x: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.exp(((Z - x) ** 2).sum(axis=1) * (-0.5 / LENGTH**2))


def truncation(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Drop the oldest term, with steps of one size, as truncation needs: points, weights and offset."""
    Z, c, b = np.empty((BUDGET, D)), np.zeros(BUDGET), 0.0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        size, rate = min(t, BUDGET), 1.0
        f = _kernel_row(x, Z[:size]) @ c[:size] + b
        g = label / (1.0 + np.exp(label * f))
        c *= 1.0 - rate * ALPHA
        Z[t % BUDGET], c[t % BUDGET], b = x, rate * g, b + rate * g
    return Z, c, b


def projection(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Replace the term that costs least by its projection on the others."""
    Z, c, b, Q = np.empty((BUDGET + 1, D)), np.zeros(BUDGET + 1), 0.0, np.zeros((BUDGET + 1, BUDGET + 1))
    size = 0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        rate = 1.0 / np.sqrt(t + 1)
        k = _kernel_row(x, Z[:size])
        g = label / (1.0 + np.exp(label * (k @ c[:size] + b)))
        c[:size] *= 1.0 - rate * ALPHA
        b += rate * g
        d = Q[:size, :size] @ k
        residual = 1.0 - d @ k
        costs = c[:size] ** 2 / (Q.diagonal()[:size] + d * d / residual)
        if size == BUDGET and (rate * g) ** 2 * residual <= costs.min():
            c[:size] += rate * g * d
            continue
        u = np.append(-d, 1.0)
        Q[: size + 1, : size + 1] += np.outer(u, u / residual)
        Z[size], c[size], size = x, rate * g, size + 1
        if size > BUDGET:
            j = int(np.argmin(costs))
            q = Q[:, j].copy()
            c -= c[j] / q[j] * q
            Q -= np.outer(q, q / q[j])
            Z[j], c[j], Q[j], Q[:, j] = Z[BUDGET], c[BUDGET], Q[BUDGET], Q[:, BUDGET]
            Q[j, j], size = Q[BUDGET, BUDGET], BUDGET
            Q[BUDGET], Q[:, BUDGET] = 0.0, 0.0
    return Z[:size], c[:size], b


def _row(strategy: str, n: int) -> Row:
    X, y = rows(n)
    schedule = "constant" if strategy == "truncation" else "invscaling"
    model = OnlineKernelLogisticRegression(
        kernel=RBF(LENGTH), alpha=ALPHA, budget=BUDGET, budget_strategy=strategy, learning_rate=schedule
    )

    def stream(upto: int) -> None:
        for start in range(0, upto, PART):
            model.partial_fit(X[start : start + PART], y[start : start + PART], [-1, 1])

    stream(PART)
    model = clone(model)
    looped = min(LOOPED, n)
    stream(looped)
    values = model.decision_function(X[:200])
    seconds = 0.0
    for start in range(looped, n, PART):
        part = slice(start, start + PART)
        seconds += seconds_of(lambda part=part: model.partial_fit(X[part], y[part]))
    rate = (n - looped) / seconds
    test, labels = rows(n + 2000)
    accuracy = model.score(test[n:], labels[n:])
    note = f"{rate:,.0f} rows a second; {100 * accuracy:.1f} % right on new rows, of whose labels a tenth is turned"
    facts = {"rate": rate, "accuracy": accuracy}
    met, peer = rate >= DEMAND, None
    loop = {"truncation": truncation, "projection": projection}.get(strategy)
    if loop is not None:
        answers: list[tuple[np.ndarray, np.ndarray, float]] = []
        peer = seconds_of(lambda: answers.append(loop(X[:looped], y[:looped])))
        Z, c, b = answers[0]
        expected = np.array([_kernel_row(x, Z) @ c + b for x in X[:200]])
        worst = float(np.abs(values - expected).max())
        met = met and worst < 1e-4
        note += f"; the loop {looped / peer:,.0f} a second, its values within {worst:.0e}"
        facts |= {"loop": looped / peer, "worst": worst}
        peer *= (n - looped) / looped
    demand = f">= {DEMAND:,.0f} rows a second" + ("" if loop is None else ", same values")
    return Row(
        f"partial_fit, {strategy}", "none" if loop is None else "NumPy loop", seconds, peer, demand, met, note, facts
    )


def run(n: int = N) -> list[Row]:
    """All rows of the section."""
    return [_row(strategy, n) for strategy in ("truncation", "projection", "merging")]


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else N):
        print(row)
