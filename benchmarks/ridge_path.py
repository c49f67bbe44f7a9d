"""Thirty penalties of kernel ridge regression with their leave-one-out curve, against refits and one fit.

The peer that users have is a grid search over refits, here scikit-learn's with five folds. One fit with a given penalty
is what the path costs at least; leave-one-out by single fits would take 30 fits with two inverses each.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from harness import Row, in_turn
from mercer import KernelRidge, ridge_path

TITLE = "Paths over the penalty of kernel ridge regression, 30 penalties, n = 3,000"
N, D, FOLDS, REPEATS = 3_000, 10, 5, 3
ALPHAS = np.geomspace(1e-4, 1e2, 30)
GAMMA = 0.05
AGREE = 1e-6


def problem(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets: a sine of one column and another column, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def _search(X: np.ndarray, y: np.ndarray) -> GridSearchCV:
    search = GridSearchCV(
        Peer(kernel="rbf", gamma=GAMMA), {"alpha": ALPHAS}, cv=FOLDS, scoring="neg_mean_squared_error"
    )
    return search.fit(X, y)


def _against_fits(X: np.ndarray, y: np.ndarray) -> list[Row]:
    times = in_turn(
        {
            "path": lambda: ridge_path(X, y, ALPHAS, kernel="rbf", gamma=GAMMA),
            "fit": lambda: KernelRidge(0.1, kernel="rbf", gamma=GAMMA).fit(X, y),
            "loo": lambda: KernelRidge("loo", kernel="rbf", gamma=GAMMA).fit(X, y),
            "gcv": lambda: KernelRidge("gcv", kernel="rbf", gamma=GAMMA).fit(X, y),
            "evidence": lambda: KernelRidge("evidence", kernel="rbf", gamma=GAMMA).fit(X, y),
        },
        repeats=REPEATS,
    )
    path = ridge_path(X, y, ALPHAS, kernel="rbf", gamma=GAMMA)
    one = path[15]
    by_inverse = float(np.mean((y - KernelRidge(one.alpha, kernel="rbf", gamma=GAMMA).fit(X, y).loo_predictions_) ** 2))
    error = abs(path.loo[15] / by_inverse - 1)
    worst = max(c.kkt_violation for c in path.certificates)
    note = f"{times['path'] / times['fit']:.1f} fits; largest relative residual {worst:.0e}; curve to {error:.0e}"
    # Without leave-one-out, which takes an inverse for each.
    naive = 30 * times["fit"]
    rows = [Row("30 fits and curves", "30 x one fit", times["path"], naive, ">= 1", naive >= times["path"], note)]
    for name in ("loo", "gcv", "evidence"):
        ratio = times[name] / times["fit"]
        met = naive >= times[name]
        rows.append(Row(f'alpha="{name}"', "30 x one fit", times[name], naive, ">= 1", met, f"{ratio:.1f} fits"))
    return rows


def _against_the_search(X: np.ndarray, y: np.ndarray) -> Row:
    start = time.perf_counter()
    search = _search(X, y)
    peer = time.perf_counter() - start
    model = KernelRidge("loo", alphas=ALPHAS, kernel="rbf", gamma=GAMMA)
    ours = in_turn({"ours": lambda: model.fit(X, y)}, repeats=REPEATS)
    note = f"alpha {model.alpha_:.3g} by leave-one-out, {search.best_params_['alpha']:.3g} by {FOLDS} folds"
    met = peer >= 10 * ours["ours"]
    return Row("choice among 30", "scikit-learn, GridSearchCV", ours["ours"], peer, ">= 10", met, note)


def _linear(X: np.ndarray, y: np.ndarray) -> Row:
    """A kernel of low rank, where the peer works on the columns."""
    ours = KernelRidge("loo", alphas=ALPHAS)
    peer = RidgeCV(ALPHAS, fit_intercept=False)
    times = in_turn({"ours": lambda: ours.fit(X, y), "peer": lambda: peer.fit(X, y)}, repeats=REPEATS)
    difference = float(np.abs(ours.predict(X) - peer.predict(X)).max() / np.abs(y).max())
    met = ours.alpha_ == peer.alpha_ and difference < AGREE
    note = f"the same alpha, predictions differ by {difference:.0e}; ours forms the kernel matrix, for any kernel"
    case = "linear kernel, choice among 30"
    return Row(case, "scikit-learn, RidgeCV", times["ours"], times["peer"], "same", met, note)


def run() -> list[Row]:
    """All rows of the section."""
    X, y = problem()
    return [*_against_fits(X, y), _against_the_search(X, y), _linear(X, y)]


if __name__ == "__main__":
    for row in run():
        print(row)
