"""Kernels by leave-one-out, sums of kernels, and memory of searches; part of ``search.py``."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

import mercer
from harness import Row, memory_now, peak_so_far, seconds_of, tell
from mercer import SVC, GaussianProcessRegressor, GridSearchCV, KernelRidge, MultipleKernelRidge
from mercer.kernels import RBF, White
from svm_data import read

try:
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
except ImportError:
    MultipleKernelRidgeCV = None

_BUDGET = 200 * 10**6
_TRAINING, _SEED = 4000, 0


def length_scales(folder: Path) -> list[Row]:
    """One length scale a column for 26 columns and 4000 rows: by leave-one-out, and by the evidence."""
    X, y, _ = read(folder, "regression", "pol")
    order = np.random.default_rng(_SEED).permutation(len(X))
    train, test = order[:_TRAINING], order[_TRAINING:]
    scaler = StandardScaler().fit(X[train])
    X, y = scaler.transform(X), (y - y[train].mean()) / y[train].std()
    d = X.shape[1]
    ridge = KernelRidge("loo", kernel=RBF([1.0] * d), kernel_params="loo")
    process = GaussianProcessRegressor(1.0 * RBF([1.0] * d) + White(0.1), normalize_y=False)
    seconds, errors = {}, {}
    for name, model in (("ridge", ridge), ("process", process)):
        seconds[name] = seconds_of(lambda model=model: model.fit(X[train], y[train]))
        errors[name] = (model.predict(X[test]) - y[test]) ** 2
        tell(f"length scales of pol: {name} {seconds[name]:.1f} s")
    ours, theirs = (float(np.sqrt(errors[name].mean())) for name in ("ridge", "process"))
    error = float(errors["process"].std() / np.sqrt(len(test)) / (2.0 * theirs))
    met = seconds["ridge"] <= 2.0 * seconds["process"] and ours <= theirs + error
    return [
        Row(
            f"length scales of KernelRidge by leave-one-out, n = {_TRAINING}, d = {d} (pol)",
            "our GP by the evidence, one fit",
            seconds["ridge"],
            seconds["process"],
            ">= 0.5, error within a standard error",
            met,
            f"test RMSE {ours:.4f}, by the evidence {theirs:.4f} ± {error:.4f}",
            {"rmse": ours, "peer_rmse": theirs, "peer_error": error},
        )
    ]


def several_kernels(folder: Path) -> list[Row]:
    """A sum of five kernels for 1000 targets; both sides with the same weights, penalties, and held-out rows."""
    del folder
    if MultipleKernelRidgeCV is None:
        return []
    rng = np.random.default_rng(_SEED)
    n, targets, terms = 3000, 1000, 5
    X = rng.standard_normal((n + 500, 4 * terms))
    Y = sum(np.sin(X[:, 4 * m : 4 * m + 4] @ rng.standard_normal((4, targets))) for m in range(terms))
    Y = Y + 0.5 * rng.standard_normal(Y.shape)
    kernels = [RBF(2.0).on(list(range(4 * m, 4 * m + 4))) for m in range(terms)]
    alphas = np.logspace(-3, 3, 7)
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total + kernel
    # The first draw has equal weights.
    ours = MultipleKernelRidge(total, search="random", n_iter=1, alphas=alphas, random_state=0)
    set_backend("numpy")
    Ks = np.stack([kernel(X[:n]) for kernel in kernels])
    options = {"n_iter": np.full((1, terms), 1.0 / terms), "alphas": alphas, "progress_bar": False}
    theirs = MultipleKernelRidgeCV("precomputed", solver_params=options, cv=5)
    seconds = seconds_of(lambda: ours.fit(X[:n], Y[:n]))
    tell(f"MultipleKernelRidge: {seconds:.1f} s")
    peer_seconds = seconds_of(lambda: theirs.fit(Ks, Y[:n]))
    tell(f"himalaya: {peer_seconds:.1f} s")
    score = float(r2_score(Y[n:], ours.predict(X[n:])))
    peer = float(r2_score(Y[n:], theirs.predict(np.stack([kernel(X[n:], X[:n]) for kernel in kernels]))))
    met = peer_seconds >= 2.0 * seconds and score >= peer - 1e-3
    return [
        Row(
            f"MultipleKernelRidge, {n} rows x {targets} targets, {terms} kernels, one draw, {len(alphas)} penalties",
            "himalaya on NumPy, 5 folds",
            seconds,
            peer_seconds,
            ">= 2, equal score",
            met,
            f"mean R² on 500 new rows {score:.4f}, himalaya {peer:.4f}",
            {"score": score, "peer_score": peer},
        )
    ]


def memory(folder: Path) -> list[Row]:
    """The peak of a process whose search has a budget of 200 MB, and its scores beside those without one.

    The process has made a search before, over every third row with a ninth of the budget: the same share of its
    matrices, so that it takes the same ways. What comes once in a process is then there: compiled loops, of which the
    first run on a machine compiles some, work arrays of the threads, and buffers of BLAS. Fewer rows would not do:
    folds of less than 512 are solved in other ways. What is measured is the peak beside the memory that is in use then,
    and not beside the peak of the first search.
    """
    rows = []
    for name in ("KernelRidge", "SVC"):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            before, peak, apart = process.submit(_search_within_budget, name, folder).result()
        used = peak - before
        rows.append(
            Row(
                f"memory: {name} in a search at a budget of 200 MB",
                "the budget",
                None,
                None,
                "<= 200 MB beside what the process had before",
                used <= _BUDGET and apart < 1e-6,
                f"{used / 1e6:.0f} MB, {before / 1e6:.0f} before; scores at most {apart:.1e} from those without it",
                {"used_bytes": float(used), "before_bytes": float(before), "scores_apart": apart},
            )
        )
        tell(f"{rows[-1].case}: {rows[-1].note}")
    return rows


def _search_within_budget(name: str, folder: Path) -> tuple[int, int, float]:
    """Memory before a search, its peak, and how far the scores are from those without a budget."""
    grid: dict[str, Any]
    if name == "KernelRidge":
        rng = np.random.default_rng(_SEED)
        X = rng.standard_normal((3000, 10))
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(3000)
        model, grid = KernelRidge(kernel="rbf"), {"alpha": np.logspace(-2, 2, 5), "gamma": [0.01, 0.1]}
    else:
        X, y, n = read(folder, "classification", "covtype_5000")
        X, y = StandardScaler().fit_transform(X[:n]), y[:n]
        model, grid = SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}
    search = GridSearchCV(model, grid, cv=5, refit=False)
    with mercer.config(memory=_BUDGET // 9):
        search.fit(X[::3], y[::3])
    before = memory_now()
    with mercer.config(memory=_BUDGET):
        tight = search.fit(X, y).cv_results_["mean_test_score"]
    peak = peak_so_far()
    free = search.fit(X, y).cv_results_["mean_test_score"]
    return before, peak, float(np.abs(tight - free).max())
