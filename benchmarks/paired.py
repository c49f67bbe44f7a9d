"""Two versions of Mercer side by side: ``python benchmarks/paired.py BEFORE [AFTER] [--turns N] [name ...]``.

BEFORE and AFTER are checkouts (AFTER by default this one). Each case is run by both in turn, each in a process of its
own, and the table has the median over the turns of after / before, in processor seconds, and how far the answers are
apart. A ratio below 1 means that the later version is faster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    Gram,
    KernelKMeans,
    KernelLogisticRegression,
    KernelRidge,
)
from mercer import kernels as k
from mercer import svm_path as path_of

HERE = Path(__file__).resolve()
Run = Callable[[], Any]


def _vectors(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, two classes that no plane parts, and numbers."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, d)), rng.normal(size=n)
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * noise > 0, "a", "b"), np.sin(X[:, 0]) + 0.3 * noise


def gram_products() -> Run:
    """Lazy products with 20,000 rows."""
    X = _vectors(20_000, 50)[0].astype(np.float32)
    K, V = Gram(k.RBF(5.0), X), np.ones((len(X), 3), np.float32)
    return lambda: K @ V


def gram_dense() -> Run:
    """A whole matrix of 8,000 rows."""
    X = _vectors(8_000, 50)[0]
    return lambda: k.Matern(5.0, nu=2.5)(X)


def svc() -> Run:
    """SVC on 10,000 rows, with its predictions."""
    X, c, _ = _vectors(10_000, 20)
    return lambda: SVC(C=10, gamma=0.05).fit(X, c).decision_function(X[:4000])


def svc_many_classes() -> Run:
    """SVC on the digits, ten classes."""
    X, y = load_digits(return_X_y=True)
    return lambda: SVC(C=10).fit(X, y).decision_function(X)


def svc_hard() -> Run:
    """SVC where most rows become support vectors."""
    X, y = make_classification(8_000, 100, n_informative=20, n_clusters_per_class=8, flip_y=0.02, random_state=0)
    X = StandardScaler().fit_transform(X)
    return lambda: SVC(C=10, gamma=0.01).fit(X, y).decision_function(X[:100])


def svr() -> Run:
    """SVR on 6,000 rows."""
    X, _, y = _vectors(6_000, 10)
    return lambda: SVR(C=10, epsilon=0.05).fit(X, y).predict(X)


def svm_path() -> Run:
    """Ten values of C on 3,000 rows."""
    X, c, _ = _vectors(3_000, 10)
    return lambda: [model.intercept_[0] for model in path_of(X, c, np.logspace(-2, 2, 10), gamma=0.1)]


def kernel_ridge() -> Run:
    """KernelRidge on 5,000 rows."""
    X, _, y = _vectors(5_000, 20)
    return lambda: KernelRidge(1.0, kernel="rbf", gamma=0.02).fit(X, y).dual_coef_


def kernel_ridge_loo() -> Run:
    """KernelRidge on 2,000 rows, alpha by leave-one-out."""
    X, _, y = _vectors(2_000, 20)
    return lambda: KernelRidge("loo", kernel="rbf", gamma=0.02).fit(X, y).dual_coef_


def gp_evidence() -> Run:
    """The evidence with its gradient, 2,000 rows."""
    X, _, y = _vectors(2_000, 8)
    model = GaussianProcessRegressor(1.0 * k.RBF(2.0), alpha=0.1, optimizer=None).fit(X, y)
    theta = model.kernel_.theta
    return lambda: np.append(*model.log_marginal_likelihood(theta, eval_gradient=True)[::-1])


def gp_predictions() -> Run:
    """Means and deviations of 20,000 rows by 1,500."""
    X, _, y = _vectors(1_500, 8)
    new = _vectors(20_000, 8, seed=1)[0]
    model = GaussianProcessRegressor(1.0 * k.RBF(2.0), alpha=0.1, optimizer=None).fit(X, y)
    return lambda: np.concatenate(model.predict(new, return_std=True))


def gp_classifier() -> Run:
    """A fit with its search, 500 rows."""
    X, c, _ = _vectors(500, 5)
    return lambda: GaussianProcessClassifier(1.0 * k.RBF(1.0)).fit(X, c).predict_proba(X)[:, 1]


def logistic() -> Run:
    """KernelLogisticRegression, the ten classes of the digits."""
    X, y = load_digits(return_X_y=True)
    return lambda: KernelLogisticRegression(C=10).fit(X / 16, y).predict_proba(X[:100] / 16)


def kernel_kmeans() -> Run:
    """KernelKMeans on 3,000 rows, and linear on 50,000."""
    X, large = _vectors(3_000, 10)[0], _vectors(50_000, 10)[0]

    def run() -> list[float]:
        first = KernelKMeans(5, kernel="rbf", gamma=0.05, n_init=3, random_state=0).fit(X)
        return [first.inertia_, KernelKMeans(5, kernel="linear", n_init=2, random_state=0).fit(large).inertia_]

    return run


def strings() -> Run:
    """Spectrum, subsequences and mismatches of random strings."""
    rng = np.random.default_rng(0)
    many = ["".join(row) for row in np.array(list("acgt"))[rng.integers(0, 4, (3_000, 60))]]
    few = ["".join(row) for row in np.array(list("abcdefgh"))[rng.integers(0, 8, (250, 200))]]
    return lambda: [k.Spectrum(5)(many).sum(), k.Subsequence(4)(few).sum(), k.Mismatch(5, 1)(many[:800]).sum()]


def trees() -> Run:
    """Subset and partial trees of random trees."""
    rng = np.random.default_rng(0)

    def tree(size: int) -> str:
        if size < 2:
            return "ab"[int(rng.integers(2))]
        left = 1 + int(rng.integers(size - 1))
        return f"({'abc'[int(rng.integers(3))]} {tree(left)} {tree(size - left)})"

    X = [tree(40) for _ in range(600)]
    return lambda: [k.SubsetTree(0.4)(X).sum(), k.PartialTree(0.4)(X).sum()]


def graphs() -> Run:
    """Four kernels on random graphs."""
    rng = np.random.default_rng(0)
    X = [(rng.integers(0, 40, (100, 2)).tolist(), list(rng.choice(list("CNO"), 40)), [1] * 100) for _ in range(300)]
    some = [k.WeisfeilerLehman(5), k.ShortestPath(), k.Graphlet(4)]
    return lambda: [*(kernel(X).sum() for kernel in some), k.RandomWalk(0.01)(X[:80]).sum()]


def series() -> Run:
    """Alignment, warping and signatures of 150 series of length 100."""
    X = list(np.random.default_rng(0).normal(size=(150, 100, 2)).cumsum(axis=1) / 10)
    return lambda: [k.GlobalAlignment(1.0)(X).sum(), k.DynamicTimeWarping()(X).sum(), k.Signature(4, time=0.0)(X).sum()]


CASES: dict[str, Callable[[], Run]] = {
    case.__name__: case
    for case in (
        gram_products, gram_dense, svc, svc_many_classes, svc_hard, svr, svm_path, kernel_ridge, kernel_ridge_loo,
        gp_evidence, gp_predictions, gp_classifier, logistic, kernel_kmeans, strings, trees, graphs, series,
    )
}  # fmt: skip


def serve() -> None:
    """Prepare each case that is named on standard input, then run it as often as asked; seconds and answers go out."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        run = CASES[line.strip()]()
        run()
        print(json.dumps("ready"), flush=True)
        while sys.stdin.readline().strip() == "go":
            # Threads of BLAS look for more work for a while before they sleep.
            time.sleep(0.1)
            begin = time.process_time()
            answer = run()
            seconds = time.process_time() - begin
            print(json.dumps([seconds, np.asarray(answer, dtype=float).ravel()[:20_000].tolist()]), flush=True)


class Version:
    """One checkout, with a process of its own."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(folder / "src")}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, line: str) -> Any:
        """What it answers."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def leave(self) -> None:
        """Go on to the next case."""
        assert self.process.stdin is not None
        self.process.stdin.write("next\n")
        self.process.stdin.flush()


def compare(before: Version, after: Version, name: str, turns: int) -> str:
    """A row of the table."""
    versions = (before, after)
    for version in versions:
        version.ask(name)
    seconds: list[list[float]] = [[], []]
    answers: list[list[float]] = [[], []]
    for turn in range(turns):
        # Who goes first changes, so that neither always follows the other.
        for number in (turn % 2, 1 - turn % 2):
            duration, answers[number] = versions[number].ask("go")
            seconds[number].append(duration)
    for version in versions:
        version.leave()
    old, new = map(np.asarray, answers)
    error = float(np.abs(old - new).max() / max(np.abs(old).max(), 1e-300)) if old.shape == new.shape else np.inf
    ratios = [b / a for a, b in zip(*seconds, strict=True)]
    middle = [statistics.median(values) for values in seconds]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return f"| {name} | {middle[0]:.3f} | {middle[1]:.3f} | {statistics.median(ratios):.2f} | {spread} | {error:.1e} |"


def main(arguments: list[str]) -> int:
    """Print the table."""
    turns = 5
    if "--turns" in arguments:
        place = arguments.index("--turns")
        turns = int(arguments[place + 1])
        del arguments[place : place + 2]
    folders = [Path(a) for a in arguments if a not in CASES]
    names = [a for a in arguments if a in CASES] or list(CASES)
    missing = [str(f) for f in folders if not (f / "src" / "mercer").is_dir()]
    if not folders or len(folders) > 2 or missing:
        print(f"{__doc__}\nThe cases are {', '.join(CASES)}." + (f" Not a checkout: {missing}" if missing else ""))
        return 2
    before, after = Version(folders[0]), Version(folders[1] if len(folders) > 1 else HERE.parents[1])
    print("| case | before, s | after, s | after / before | spread | answers apart |\n|---|---|---|---|---|---|")
    for name in names:
        print(compare(before, after, name, turns), flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        raise SystemExit(main(sys.argv[1:]))
