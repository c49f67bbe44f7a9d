"""Certificates of fits over landmarks for the problem of all rows: whether they hold, how loose they are, and cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from harness import Row, in_turn
from mercer import SVC, SVR, KernelLogisticRegression, KernelRidge, certify_landmarks
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Matern
from mercer.solvers.restricted.exact import RowSample, squares
from mercer.solvers.restricted.least_squares_problem import RestrictedLeastSquares

_ROWS, _PROBLEMS = 2000, 200
_MANY = 20_000
_MOST, _SHARE = 1.2, 0.05
_DRAWS, _CONFIDENCE = 200, 0.9
_REGRESSORS = ("KernelRidge", "SVR")


def _learners(number: int, random: np.random.Generator) -> dict[str, tuple[Any, Any]]:
    """Learners over landmarks, and the same for all rows."""
    d = int(random.integers(1, 9))
    kernel: Any = (RBF, Matern)[number % 2](float(np.sqrt(d) * 10.0 ** random.uniform(-0.5, 0.5)))
    few = {"approximation": "nystroem", "n_landmarks": int(10.0 ** random.uniform(1.3, 2.7)), "random_state": 0}
    alpha, cost = 10.0 ** random.uniform(-2, 1), 10.0 ** random.uniform(-1, 1.5)
    makers: dict[str, Callable[..., Any]] = {
        "KernelRidge": lambda **options: KernelRidge(alpha, kernel=kernel, **options),
        "KernelLogisticRegression": lambda **options: KernelLogisticRegression(C=cost, kernel=kernel, **options),
        "SVC": lambda **options: SVC(C=cost, kernel=kernel, **options),
        "SVR": lambda **options: SVR(C=cost, kernel=kernel, **options),
    }
    exact: dict[str, dict[str, Any]] = {
        "KernelRidge": {},
        "KernelLogisticRegression": {"tol": 1e-6},
        "SVC": {"tol": 1e-5},
        "SVR": {"tol": 1e-5},
    }
    return {name: (make(**few), make(**exact[name])) for name, make in makers.items()} | {"d": (d, d)}


def bounds() -> list[Row]:
    """Bounds beside the exact solutions."""
    looseness: dict[str, list[float]] = {}
    share: dict[str, list[float]] = {}
    violated: dict[str, int] = {}
    for number in range(_PROBLEMS):
        random = np.random.default_rng(number)
        learners = _learners(number, random)
        d = learners.pop("d")[0]
        X, new = random.normal(size=(_ROWS, d)), random.normal(size=(200, d))
        y = np.sin(2 * X).sum(axis=1) / np.sqrt(d) + 10.0 ** random.uniform(-1.5, 0.5) * random.normal(size=_ROWS)
        for name, (model, full) in learners.items():
            targets, ask = (y, "predict") if name in _REGRESSORS else (y > 0, "decision_function")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, targets)
                full.fit(X, targets)
            certificate = certify_landmarks(model, X, targets)
            far = np.abs(getattr(model, ask)(new) - getattr(full, ask)(new))
            limit = certificate.prediction_bound(new)
            gained = certificate.primal - full.certificate_.primal
            wrong = (far > limit).any() or certificate.gap < gained - 1e-7 * certificate.primal
            violated[name] = violated.get(name, 0) + int(wrong)
            looseness.setdefault(name, []).append(certificate.gap / max(gained, 1e-300))
            share.setdefault(name, []).append(float(np.median(limit / np.maximum(far, 1e-300))))
    rows = []
    for name in violated:
        gaps, limits = np.quantile(looseness[name], [0.5, 0.9]), np.quantile(share[name], [0.5, 0.9])
        note = (
            f"{violated[name]} violated; gap by what all rows gain: median {gaps[0]:.2f}, 90 % below {gaps[1]:.3g}; "
            f"bound of a prediction by its difference: {limits[0]:.3g}, {limits[1]:.3g}"
        )
        case = f"{name}, {_PROBLEMS} problems of {_ROWS:,} rows"
        rows.append(Row(case, "the exact solution", None, None, "none violated", violated[name] == 0, note))
    return rows


def cost() -> list[Row]:
    """The certificate of all pairs, and of 500 rows, beside one product with the kernel matrix."""
    random = np.random.default_rng(0)
    X = random.normal(size=(_MANY, 10))
    y = np.sin(X).sum(axis=1) + 0.3 * random.normal(size=_MANY)
    kernel, rows = RBF(3.0), []
    few = {"approximation": "nystroem", "n_landmarks": 500, "random_state": 0}
    models: dict[str, tuple[Any, Any]] = {
        "KernelRidge": (KernelRidge(1.0, kernel=kernel, **few), y),
        "KernelLogisticRegression": (KernelLogisticRegression(kernel=kernel, **few), y > 0),
        "SVC": (SVC(kernel=kernel, **few), y > 0),
    }
    vector = random.normal(size=(_MANY, 1))
    for name, (model, targets) in models.items():
        model.fit(X, targets)
        contenders: dict[str, Callable[[], object]] = {
            "ours": lambda model=model, targets=targets: certify_landmarks(model, X, targets),
            "some": lambda model=model, targets=targets: certify_landmarks(model, X, targets, n_rows=500),
            "peer": lambda: Gram(kernel, X) @ vector,
        }
        times = in_turn(contenders, 3)
        part = certify_landmarks(model, X, targets, n_rows=500)
        whole = certify_landmarks(model, X, targets)
        note = (
            f"{times['ours'] / times['peer']:.2f} passes; of 500 rows {times['some'] / times['peer']:.2f}, with a gap "
            f"of {part.gap_interval[0]:.3g} to {part.gap_interval[1]:.3g} for {whole.gap:.3g}"
        )
        case = f"{name}, {_MANY:,} rows, d = 10, 500 landmarks"
        met = times["ours"] <= _MOST * times["peer"]
        rows.append(Row(case, "one product with K", times["ours"], times["peer"], f"<= {_MOST:g} passes", met, note))
    return rows


def restricted_cost() -> list[Row]:
    """The pass in float64 that gives the certificate of a fit over landmarks, beside the whole fit."""
    random, spent = np.random.default_rng(0), []
    residual = RestrictedLeastSquares.residual

    def timed(problem: RestrictedLeastSquares, gamma: Any) -> Any:
        start = time.perf_counter()
        found = residual(problem, gamma)
        spent.append(time.perf_counter() - start)
        return found

    rows = []
    for n, m in ((20_000, 500), (100_000, 1000), (1_000_000, 1000)):
        X = random.normal(size=(n, 10))
        y = np.sin(X).sum(axis=1) + 0.3 * random.normal(size=n)
        model = KernelRidge(1e-6 * n, kernel=RBF(3.0), approximation="nystroem", n_landmarks=m, random_state=0)
        model.fit(X[:2000], y[:2000])
        spent.clear()
        RestrictedLeastSquares.residual = timed
        start = time.perf_counter()
        model.fit(X, y)
        whole = time.perf_counter() - start
        RestrictedLeastSquares.residual = residual
        share = spent[-1] / whole
        note = f"{share:.1%} of the fit; {model.certificate_.iterations} passes"
        case = f"certificate of {n:,} rows, {m:,} landmarks"
        rows.append(Row(case, "the fit", spent[-1], whole, f"<= {_SHARE:.0%}", share <= _SHARE, note))
    return rows


def _skewed(number: int, targets: int) -> tuple[Any, Any, Any]:
    """K, coefficients of all rows and a function over landmarks, with noise or scales of targets that differ much."""
    random = np.random.default_rng(number)
    X = random.normal(size=(1000, [2, 4, 8][number % 3]))
    Y = np.sin(2 * X @ random.normal(size=(X.shape[1], targets)))
    Y += 0.1 * (random.standard_t(2.5, size=Y.shape) if number % 2 else random.normal(size=Y.shape))
    Y *= 10.0 ** random.uniform(-2, 2, targets)
    few = {"approximation": "nystroem", "n_landmarks": 100, "random_state": 0}
    model = KernelRidge(0.1, kernel=RBF(1.5), **few).fit(X, Y)
    near = model.predict(X).reshape(Y.shape)
    return RBF(1.5)(X), (Y - near) / 0.1, near


def intervals() -> list[Row]:
    """In which share of samples all intervals of several targets hold."""
    rows = []
    for targets in (1, 5, 20):
        problems = [_skewed(number, targets) for number in range(6)]
        for size in (max(25, 2 * targets), 100, 400):
            shares, wide = [], []
            for K, C, near in problems:
                products = K @ C
                whole, gap, held = (C * products).sum(axis=0), (C * (products - near)).sum(axis=0), 0
                for seed in range(_DRAWS):
                    sample = RowSample(size, _CONFIDENCE, np.random.RandomState(seed))
                    found = squares(PrecomputedGram(K), C, near, sample)
                    held += bool(((found.low <= whole) & (whole <= found.high)).all())
                    wide.append(float(np.median((found.high - found.low) / (2 * gap))))
                shares.append(held / _DRAWS)
            note = f"least {min(shares):.1%}, mean {np.mean(shares):.1%}; half width by the sum {np.median(wide):.2f}"
            case = f"{targets} targets, {size} of 1,000 rows, 6 problems, {_DRAWS} samples each"
            met = min(shares) >= _CONFIDENCE
            rows.append(Row(case, "all pairs", None, None, f"{_CONFIDENCE:.0%} of the samples", met, note))
    return rows


PARTS = {"bounds": bounds, "bounds_cost": cost, "restricted_cost": restricted_cost, "bounds_intervals": intervals}
