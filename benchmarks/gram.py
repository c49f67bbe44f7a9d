"""The lazy and the dense Gram matrix against KeOps, scikit-learn and the floor.

The floor is what nobody can go below without skipping work: a matrix product of the size of the Gram matrix and one
``np.exp`` over its entries, on all cores.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from pykeops.numpy import Genred
from sklearn.metrics.pairwise import rbf_kernel

from harness import Row, in_turn
from mercer import Gram, kernels

TITLE = "Gram matrices, RBF, float32, n = 20,000"


def _floor(X: np.ndarray, pool: ThreadPoolExecutor, rows: int | None = None) -> np.ndarray:
    product = np.matmul(X[:rows], X.T)
    # A product of centred columns is of the size of the exponents of an RBF, so that exp does ordinary work.
    parts = np.array_split(product, os.cpu_count() or 1)
    list(pool.map(lambda part: np.exp(part, out=part), parts))
    return product


def _lazy(X: np.ndarray, pool: ThreadPoolExecutor) -> list[Row]:
    n, d = X.shape
    v = np.random.default_rng(1).normal(size=n).astype(np.float32)
    length_scale = float(np.sqrt(d))
    gram = Gram(kernels.RBF(length_scale), X)
    formula = "Exp(-g * SqDist(x, y)) * b"
    keops = Genred(formula, [f"x = Vi({d})", f"y = Vj({d})", "b = Vj(1)", "g = Pm(1)"], reduction_op="Sum", axis=1)
    g = np.array([0.5 / length_scale**2], np.float32)
    Y, b = X.copy(), v[:, None]
    small = X / np.float32(4 * np.sqrt(d))
    # Apart from KeOps, whose threads go on spinning for a while and would slow the floor down.
    against_floor = in_turn({"ours": lambda: gram @ v, "floor": lambda: _floor(small, pool)}, repeats=3)
    times = in_turn({"ours": lambda: gram @ v, "keops": lambda: keops(X, Y, b, g, backend="CPU")}, repeats=3)
    error = np.abs((gram @ v) - keops(X, Y, b, g, backend="CPU")[:, 0]).max() / np.abs(gram @ v).max()
    case = f"lazy K @ v, d = {d}"
    ratio, share = times["keops"] / times["ours"], against_floor["ours"] / against_floor["floor"]
    note = f"largest difference {error:.0e}"
    return [
        Row(case, "KeOps, CPU", times["ours"], times["keops"], ">= 5", ratio >= 5, note),
        Row(case, "floor", against_floor["ours"], against_floor["floor"], ">= 1/1.5", share <= 1.5),
    ]


def _dense(X: np.ndarray, pool: ThreadPoolExecutor) -> list[Row]:
    n, d = X.shape
    gamma = 0.5 / d
    gram = Gram(kernels.RBF.from_gamma(gamma), X)
    some = np.arange(0, n, 4)
    small = X / np.float32(4 * np.sqrt(d))
    rows = []
    for case, ours, peer, floor in (
        ("dense()", gram.dense, lambda: rbf_kernel(X, gamma=gamma), lambda: _floor(small, pool)),
        (
            "rows(n / 4)",
            lambda: gram.rows(some),
            lambda: rbf_kernel(X[some], X, gamma=gamma),
            lambda: _floor(small, pool, n // 4),
        ),
    ):
        times = in_turn({"ours": ours, "sklearn": peer, "floor": floor}, repeats=3)
        name = f"{case}, d = {d}"
        ratio, share = times["sklearn"] / times["ours"], times["ours"] / times["floor"]
        rows.append(Row(name, "scikit-learn rbf_kernel", times["ours"], times["sklearn"], ">= 2", ratio >= 2))
        rows.append(Row(name, "floor", times["ours"], times["floor"], ">= 1/1.5", share <= 1.5))
    return rows


def run() -> list[Row]:
    """All rows of the section."""
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for d in (3, 10, 100):
            X = np.random.default_rng(0).normal(size=(20_000, d)).astype(np.float32)
            rows += _lazy(X, pool) + _dense(X, pool)
    return rows
