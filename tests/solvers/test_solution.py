"""What a certificate says in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer import SVC, SVR, KernelRidge
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.solution import Certificate, Status
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start

BOUND = "no solution has less than"


def certificate(primal: float, dual: float, status: Status = Status.converged, **others: object) -> Certificate:
    return Certificate(primal, dual, 1e-4, 10, 0.1, 2**20, status, **others)  # type: ignore[arg-type]


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((60, 2))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(int)


def test_gap_is_told_in_words() -> None:
    text = certificate(100.0, 99.0).explain()
    assert (
        "Objective 100, and no solution has less than 99: at most 1 can still be gained (1 % of the objective)" in text
    )
    assert text.startswith("converged: ") and "To do: nothing" in text
    assert "10 iterations, 0.1 s, 1.0 MiB" in text


def test_exact_answer_has_nothing_to_win() -> None:
    assert "nothing can be gained beyond rounding" in certificate(2.0, 2.0 - 1e-14).explain()
    assert "nothing can be gained beyond rounding" in certificate(2.0, 2.0 + 1e-14).explain()
    assert certificate(0.0, 0.0).relative_gap == 0.0
    assert "nothing can be gained" in certificate(0.0, 0.0).explain()


def test_optimum_about_zero_refers_to_the_gap_itself() -> None:
    text = certificate(1e-12, -1e-12).explain()
    assert "only the gap of 2e-12 itself matters" in text and "%" not in text
    assert "by itself" not in certificate(1.0, 0.9).explain()


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (Status.iteration_limit, "To do: raise max_iter"),
        (Status.stalled, "To do: pass X as float64"),
        (Status.least_squares, "To do: raise alpha"),
        (Status.direct, "To do: nothing."),
        (Status.stationary, "To do: for a solution with a guarantee, use a positive semi-definite kernel"),
    ],
)
def test_advice_fits_the_status(status: Status, advice: str) -> None:
    text = certificate(1.0, 0.9, status).explain()
    assert advice in text and text.startswith(f"{status.name}: ")
    assert len(text.splitlines()) <= 15


def test_large_gap_after_convergence_asks_for_stop_gap() -> None:
    assert 'stop="gap"' in certificate(1.0, 0.9).explain().splitlines()[-1]
    assert certificate(1.0, 0.9).explain().splitlines()[-1].startswith("To do: the gap is large")
    assert certificate(1.0, 0.999).explain().splitlines()[-1].startswith("To do: nothing")


@pytest.mark.parametrize("status", [Status.stationary, Status.iteration_limit, Status.stalled])
def test_indefinite_kernel_claims_no_bound(status: Status) -> None:
    text = certificate(1.0, 0.9, status, convex=False).explain()
    assert BOUND not in text and "bounds nothing" in text and "The bounds hold" not in text


def test_stationary_claims_no_bound_even_where_convex_is_left_out() -> None:
    assert BOUND not in certificate(1.0, 0.9, Status.stationary).explain()


def test_infinite_primal_leaves_the_lower_bound() -> None:
    text = certificate(np.inf, 3.0, Status.iteration_limit).explain()
    assert "no solution has less than 3: how much can still be gained is not known" in text


def test_violations_are_named_and_explained(rows: tuple[np.ndarray, np.ndarray]) -> None:
    c = SVC(kernel=RBF(1.0)).fit(*rows).certificate_
    text = c.explain()
    assert set(c.violations) == {"stationarity", "complementary slackness", "box", "sum"}
    for name, value in c.violations.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"  {name}: "))
        assert line.startswith(f"  {name}: {value:.3g}, ") and len(line.split()) > 6
    assert c.convex and BOUND in text and len(text.splitlines()) <= 15


def test_fitted_indefinite_machine_claims_no_bound(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    options = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0, "allow_indefinite": True}
    certificate = SVC(**options).fit(X, y).certificate_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = SVC(**options, max_iter=3).fit(X, y).certificate_
    assert certificate.status is Status.stationary and stopped.status is Status.iteration_limit
    for c in (certificate, stopped):
        assert not c.convex and BOUND not in c.explain() and "indefinite" in c.explain()


def test_certificate_without_violations_explains_itself(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    text = KernelRidge(alpha=0.1, kernel="rbf").fit(X, y).certificate_.explain()
    assert text.startswith("direct: ") and BOUND in text and text.endswith("To do: nothing.")


def test_stop_gap_ends_where_the_optimum_is_zero() -> None:
    """All targets are inside the tube: the best function is constant and the optimum 0, which no start is near."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((700, 2))
    K = PrecomputedGram(RBF(1.0)(X))
    targets = 0.05 * rng.uniform(-1, 1, 700)
    problem = BoxQP(K, targets, -np.ones(700), np.ones(700), tube=0.1)
    start = np.zeros(700)
    start[:2] = 0.5, -0.5
    solution = SMO(tol=1e-3, stop="gap").solve(problem, Start(start))
    gap = solution.certificate.gap
    assert solution.status is Status.converged and 0 <= gap <= 0.5e-6
    # What the gap promises of the function: the best one is constant.
    centred = K @ solution.value.beta
    assert np.abs(centred).max() <= 1e-3


def test_stop_gap_is_relative_where_the_optimum_is_not_zero(rng: np.random.Generator) -> None:
    X = rng.standard_normal((600, 2))
    y = 100.0 * np.sin(X[:, 0]) + rng.standard_normal(600)
    c = SVR(C=10.0, stop="gap", tol=1e-5).fit(X, y).certificate_
    assert c.status is Status.converged and c.relative_gap <= 1e-5


def test_a_gap_as_large_as_the_objective_is_no_success() -> None:
    text = certificate(1.15e6, 4.34).explain()
    assert "the solution may be far from optimal" in text and "gap of 1.15e+06 itself" in text
    advice = text.splitlines()[-1]
    assert (
        advice.startswith("To do: nothing if a gap of 1.15e+06 is small compared with")
        and 'choose stop="gap"' in advice
    )
