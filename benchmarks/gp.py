"""Gaussian process regression: evidence with its gradient, a whole fit, predictions with their deviations.

Peers: LAPACK alone (a Cholesky factor and the inverse from it, in place), scikit-learn, and GPyTorch with its Cholesky
factorisation where it is installed. Memory is the growth of the resident set's peak, in a process of its own.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as their

import mercer
from harness import HERE, Row, in_turn, seconds_of
from mercer import GaussianProcessRegressor, kernels
from mercer.engine import lapack
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.solvers.gaussian.regression import GaussianRegression, Objective

TITLE = "Gaussian process regression, float64: evidence and gradient, fits, predictions"
N, D = 4000, 8
FIT_ROWS, RESTARTS = 1500, 5
NEW_ROWS, BUDGET = 100_000, "1GiB"
NOISE = 0.01

PEAK = """
import sys
sys.path.insert(0, sys.argv[1])
import gp, harness
small, large = gp.evaluation(400), gp.evaluation(gp.N)
small()
before = harness.peak_so_far()
large()
print(harness.peak_so_far() - before)
"""


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets: a smooth function of some columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def evaluation(n: int, kernel: Any = None) -> Callable[[], Any]:
    """Evidence and gradient in a signal variance, a length scale a column, and the noise."""
    kernel = 1.0 * kernels.RBF([2.0] * D) if kernel is None else kernel
    X, y = problem(n)
    task = GaussianRegression(KernelCovariance(kernel, X), y[:, None], np.zeros(n), free_noise=True)
    objective, theta = Objective(task), np.append(kernel.theta, np.log(NOISE))
    return lambda: objective(theta)


def peer_evaluation(n: int) -> Callable[[], Any]:
    """The same with scikit-learn."""
    kernel = their.ConstantKernel(1.0) * their.RBF([2.0] * D) + their.WhiteKernel(NOISE)
    model = Peer(kernel, optimizer=None).fit(*problem(n))
    return lambda: model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)


def lapack_alone(n: int) -> Callable[[], Any]:
    """A factor and an inverse of a matrix of that size, made again each time."""
    matrix = kernels.RBF([2.0] * D)(problem(n)[0])
    matrix[np.diag_indices(n)] += NOISE
    work = np.empty_like(matrix)

    def run() -> None:
        work[...] = matrix
        lapack.factor_cholesky(work)
        lapack.invert_cholesky(work)

    return run


def gpytorch_evaluation(n: int) -> Callable[[], Any] | None:
    """The same with GPyTorch, without its iterative methods; None where it is not installed."""
    if importlib.util.find_spec("gpytorch") is None:
        return None
    gpytorch, torch = importlib.import_module("gpytorch"), importlib.import_module("torch")
    X, y = (torch.from_numpy(part) for part in problem(n))

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(X, y, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=D))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(likelihood).double().train()
    likelihood.double().train()
    likelihood.noise, model.kernel.base_kernel.lengthscale = NOISE, 2.0
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def run() -> None:
        model.zero_grad()
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**6):
            (-objective(model(X), y)).backward()

    return run


def composite() -> Any:
    """Five kernels, added and multiplied."""
    k = kernels
    rough, fine = 0.5 * k.Matern(1.5) * k.RationalQuadratic(2.0), 0.2 * k.RBF(0.7) * k.Matern(3.0, nu=2.5)
    return 1.0 * k.RBF([2.0] * D) + rough + fine


def _evaluations() -> list[Row]:
    peers: dict[str, tuple[Callable[[], Any] | None, str, float]] = {
        "LAPACK": (lapack_alone(N), "<= 1.5 x", 1 / 1.5),
        "scikit-learn": (peer_evaluation(N), ">= 8", 8.0),
        "GPyTorch": (gpytorch_evaluation(N), ">= 3", 3.0),
    }
    runs = {"ours": evaluation(N)} | {name: run for name, (run, _, _) in peers.items() if run is not None}
    times = in_turn(runs, repeats=3)
    case, ours = f"evidence and gradient, n = {N}, d = {D}", times["ours"]
    rows = [
        Row(case, name, ours, times[name], demand, times[name] >= least * ours)
        for name, (run, demand, least) in peers.items()
        if run is not None
    ]
    command = [sys.executable, "-c", PEAK, str(HERE)]
    share = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / (8 * N * N)
    rows.append(Row("its peak memory", "", None, None, "<= 4 n^2 doubles", share <= 4, f"{share:.2f} n^2 doubles"))
    five = seconds_of(evaluation(N, composite()))
    # Each kernel may add what its tiles take: about an eighth of the factorisation.
    note = f"{five / ours:.2f} times one kernel; no array of n x n x parameters"
    rows.append(Row("the same with five kernels", "one kernel", five, ours, "tiles alone", five <= 2.5 * ours, note))
    return rows


def _fit() -> Row:
    X, y = problem(FIT_ROWS)
    options = {"n_restarts_optimizer": RESTARTS, "random_state": 0}
    ours = GaussianProcessRegressor(1.0 * kernels.RBF([2.0] * D), noise=NOISE, noise_bounds=(1e-5, 1e5), **options)
    kernel = their.ConstantKernel(1.0) * their.RBF([2.0] * D) + their.WhiteKernel(NOISE)
    peer = Peer(kernel, **options)
    with warnings.catch_warnings():
        # Of parameters at their bounds, on both sides.
        warnings.simplefilter("ignore")
        runs = {"ours": lambda: ours.fit(X, y), "peer": lambda: peer.fit(X, y)}
        times = in_turn(runs, 1, lambda name: (ours if name == "ours" else peer).fit(X[:60], y[:60]))
    evidence, theirs = ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_
    met = bool(times["peer"] >= 6 * times["ours"] and evidence >= theirs - 1e-2)
    note = f"log marginal likelihood {evidence:.3f}, scikit-learn {theirs:.3f}"
    case = f"fit with {RESTARTS} restarts, n = {FIT_ROWS}"
    return Row(case, "scikit-learn", times["ours"], times["peer"], ">= 6", met, note)


def _predictions() -> Row:
    X, y = problem(N)
    new = problem(NEW_ROWS, seed=1)[0]
    ours = GaussianProcessRegressor(1.0 * kernels.RBF([2.0] * D), noise=NOISE, optimizer=None).fit(X, y)
    peer = Peer(their.ConstantKernel(1.0) * their.RBF([2.0] * D), alpha=NOISE, optimizer=None).fit(X, y)

    answers: dict[str, Any] = {}

    def tiled() -> None:
        with mercer.config(memory=BUDGET):
            answers["ours"] = ours.predict(new, return_std=True)

    def at_once() -> None:
        answers["peer"] = peer.predict(new, return_std=True)

    runs = {"ours": tiled, "peer": at_once}
    times = in_turn(runs, 1, lambda name: (ours if name == "ours" else peer).predict(new[:600], return_std=True))
    (mean, std), (their_mean, their_std) = answers["ours"], answers["peer"]
    differences = np.abs(mean - their_mean).max(), (np.abs(std - their_std) / their_std).max()
    note = (
        f"inside {BUDGET}; means differ by {differences[0]:.0e} at most, deviations by {differences[1]:.0e} of theirs"
    )
    met = bool(times["peer"] >= 3 * times["ours"] and differences[1] <= 1e-4)
    case = f"mean and deviation, {NEW_ROWS:,} new rows, n = {N}"
    return Row(case, "scikit-learn", times["ours"], times["peer"], ">= 3", met, note)


def run() -> list[Row]:
    """All rows of the section."""
    return [*_evaluations(), _fit(), _predictions()]


if __name__ == "__main__":
    for row in run():
        print(row)
