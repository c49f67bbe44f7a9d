"""Every solver on a matrix that it knows by the protocol alone: the answers are those of the lazy Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import mercer
from gram.naive_gram import NaiveGram
from mercer._errors import IndefiniteKernelError
from mercer.gram import Gram
from mercer.gram.protocol import GramMatrix
from mercer.kernels import RBF, Linear
from mercer.losses import Hinge, Huber, Logistic, Quantile, Squared
from mercer.losses.log_loss import log_loss
from mercer.solvers import evaluate
from mercer.solvers.clustering.kmeans import Clustering
from mercer.solvers.clustering.kmeans import solve as solve_kmeans
from mercer.solvers.clustering.starts import Start
from mercer.solvers.curvature import lowest_quotient, require_conditionally_positive, require_kernel, require_positive
from mercer.solvers.gaussian.approaches import Name, approach
from mercer.solvers.gaussian.classification import Evidence, GaussianClassification
from mercer.solvers.gaussian.condition import condition
from mercer.solvers.gaussian.covariance import MatrixCovariance
from mercer.solvers.gaussian.latent import LatentPosterior
from mercer.solvers.gaussian.ordinal import OrdinalEvidence, OrdinalProcess
from mercer.solvers.gaussian.regression import GaussianRegression
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.leave_one_out import leave_one_out
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.linear.penalty_path import PenaltyPath
from mercer.solvers.linear.primal import PRIMAL
from mercer.solvers.online.budgeted import learn
from mercer.solvers.online.perceptron import make_passes
from mercer.solvers.online.problem import PerceptronProblem, PerceptronState
from mercer.solvers.online.state import OnlineProblem, OnlineState
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.risk.gradient_descent import HeldOut, LeastSquares, descend
from mercer.solvers.risk.logistic import LogisticSolver
from mercer.solvers.risk.logistic_problem import LogisticRisk
from mercer.solvers.risk.ordered_quantiles import OrderedQuantiles, QuantilesSolver
from mercer.solvers.risk.ordinal import OrdinalSolver
from mercer.solvers.risk.ordinal_evidence import slope_by_evidence
from mercer.solvers.risk.ordinal_problem import OrdinalProblem
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.solve import RiskSolver
from mercer.solvers.risk.stationary import StationarySolver
from mercer.solvers.spectral.eigenpairs import Eigenproblem
from mercer.solvers.spectral.eigenpairs import solve as solve_eigenpairs
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.c_svc import CSVC
from mercer.solvers.svm.hard_margin import HardMargin
from mercer.solvers.svm.nu_margin import nu_problem, solve_nu_margin
from mercer.solvers.svm.pair_problem import PairProblem
from mercer.solvers.svm.pairwise import solve_pairs
from mercer.solvers.svm.projected import ProjectedGradient
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.stochastic import MarginRisk, StochasticDescent
from mercer.solvers.svm.stochastic_rows import KernelRows

RNG = np.random.default_rng(0)
N, NEW = 520, 40
X = RNG.normal(size=(N, 3))
Z = RNG.normal(size=(NEW, 3))
NUMBERS = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * RNG.normal(size=N)
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
CODES = np.digitize(NUMBERS, [0.0, 0.8])
WEIGHTS = RNG.uniform(0.5, 2.0, N)
KERNEL = RBF(1.0)

Answers = list[Any]


def box(gram: GramMatrix) -> BoxQP:
    return BoxQP.classification(gram, SIGNS, np.full(N, 2.0))


def smo(gram: GramMatrix) -> Answers:
    value = SMO(tol=1e-8).solve(box(gram)).value
    return [gram @ value.beta, value.offset]


def smo_on_working_sets(gram: GramMatrix) -> Answers:
    # More rows than are taken as one block.
    rows = np.tile(np.arange(N), 5)
    problem = BoxQP.classification(gram.restrict(rows, rows), np.tile(SIGNS, 5), np.full(5 * N, 0.4))
    value = SMO(tol=1e-4).solve(problem).value
    return [problem.linear - value.gradient, value.offset]


def projected_gradient(gram: GramMatrix) -> Answers:
    value = ProjectedGradient(tol=1e-3, max_iter=50).solve(box(gram)).value
    return [gram @ value.beta]


def hard_margin(gram: GramMatrix) -> Answers:
    few = np.arange(60)
    value = HardMargin(SMO(tol=1e-6)).solve(PairProblem(gram.restrict(few, few), SIGNS[:60], np.full(60, np.inf))).value
    return [value.beta, value.offset]


def nu_margin(gram: GramMatrix) -> Answers:
    answer, rho = solve_nu_margin(nu_problem(gram, SIGNS, np.full(N, 1.0), 0.4 * N), SMO(tol=1e-8))
    return [gram @ answer.value.beta, rho]


def pairs_of_classes(gram: GramMatrix) -> Answers:
    order, sizes = np.argsort(CODES, kind="stable"), np.bincount(CODES)
    answers = solve_pairs(gram.restrict(order, order), sizes, np.ones(N), CSVC(SMO(tol=1e-8)))
    return [answers.offsets]


def stochastic(gram: GramMatrix) -> Answers:
    risk = MarginRisk(KernelRows(gram), CODES, np.array([1]), WEIGHTS / N, alpha=0.01)
    return [StochasticDescent(max_epochs=3).solve(risk, rng=np.random.RandomState(0)).value.coefficients]


def linear_system(gram: GramMatrix) -> Answers:
    system = LinearSystem(gram, NUMBERS[:, None], [0.1], WEIGHTS)
    c = cholesky.solve(system).value
    return [c, leave_one_out(system, c), evaluate.of_system(system, c).primal]


def system_of_low_rank(gram: GramMatrix) -> Answers:
    solution = cholesky.solve(LinearSystem(gram, NUMBERS[:, None], [0.1]))
    assert solution.state.method == ("low rank" if isinstance(gram, NaiveGram) else PRIMAL)
    return [solution.value]


def penalty_path(gram: GramMatrix) -> Answers:
    with ExitStack() as stack:
        path = PenaltyPath(LinearSystem(gram, NUMBERS[:, None], [0.0], WEIGHTS), stack, single_rows=True)
        criteria = path.criteria(0.3)
        (solution,) = path.solutions(np.array([[0.3]]))
    return [*criteria.values(), solution.value]


def newton(gram: GramMatrix) -> Answers:
    return [RiskSolver().solve(RegularizedRisk(gram, Logistic(), SIGNS, alpha=0.5, intercept=True)).value.c]


def newton_by_products(gram: GramMatrix) -> Answers:
    return [RiskSolver(method="newton-cg").solve(RegularizedRisk(gram, Squared(), NUMBERS, alpha=0.5)).value.c]


def multipliers(gram: GramMatrix) -> Answers:
    return [RiskSolver(method="multipliers").solve(RegularizedRisk(gram, Huber(), NUMBERS, alpha=0.5)).value.Kc]


def quantile(gram: GramMatrix) -> Answers:
    return [RiskSolver().solve(RegularizedRisk(gram, Quantile(0.3), NUMBERS, alpha=0.5, intercept=True)).value.Kc]


def quantiles_in_order(gram: GramMatrix) -> Answers:
    few = np.arange(150)
    problem = OrderedQuantiles(gram.restrict(few, few), NUMBERS[:150], np.array([0.3, 0.7]), np.ones(150))
    return [QuantilesSolver().solve(problem).value.F]


def stationary_point(gram: GramMatrix) -> Answers:
    return [StationarySolver().solve(RegularizedRisk(gram, Squared(), NUMBERS, alpha=0.5, convex=False)).value.c]


def two_classes(gram: GramMatrix) -> Answers:
    loss = log_loss((SIGNS > 0).astype(np.intp), WEIGHTS, 2)
    return [LogisticSolver().solve(LogisticRisk(gram, loss)).value.weights]


def many_classes(gram: GramMatrix) -> Answers:
    return [LogisticSolver().solve(LogisticRisk(gram, log_loss(CODES, WEIGHTS, 3))).value.weights]


def ordinal(gram: GramMatrix) -> Answers:
    few = np.arange(150)
    problem = OrdinalProblem(CODES, WEIGHTS, LINKS["logit"], gram=gram)
    part = OrdinalProblem(CODES[:150], WEIGHTS[:150], LINKS["logit"], gram=gram.restrict(few, few))
    return [OrdinalSolver().solve(problem).value.cuts, slope_by_evidence(part, 1.0, tol=1e-8, max_iter=50).slope]


def gradient_descent(gram: GramMatrix) -> Answers:
    learned, new = np.arange(N - NEW), np.arange(N - NEW, N)
    held_out = HeldOut(gram.restrict(new, learned), NUMBERS[new, None], np.ones(NEW), 3, 0.0)
    problem = LeastSquares(gram.restrict(learned, learned), NUMBERS[learned, None], WEIGHTS[learned])
    solution = descend(problem, max_iter=30, tol=0.0, held_out=held_out)
    return [solution.value, solution.state.losses, held_out.scores]


def gaussian_predictions(gram: GramMatrix) -> Answers:
    posterior = condition(
        GaussianRegression(MatrixCovariance(gram), NUMBERS[:, None], np.full(N, 0.1)), np.zeros(0)
    ).value
    cross = gram.restrict(np.arange(NEW), None)
    return [*posterior.moments(cross, np.ones(NEW)), *posterior.covariance(cross, KERNEL(X[:NEW]))]


def gaussian_classes(gram: GramMatrix) -> Answers:
    answers: Answers = []
    cases: list[tuple[Name, int, int]] = [("laplace", 2, N), ("ep", 2, 150), ("laplace", 3, 150)]
    for name, classes, n in cases:
        rows = np.arange(n)
        covariance = MatrixCovariance(gram.restrict(rows, rows) if n < N else gram)
        problem = GaussianClassification(covariance, np.minimum(CODES[:n], classes - 1), classes)
        evidence = Evidence(problem, approach(problem.n, classes, name))
        value = evidence.solve(np.zeros(0), keep_factor=True).value
        assert value.factor is not None
        posterior = LatentPosterior(value.weights, value.root, value.factor)
        cross = gram.restrict(np.arange(NEW), rows).block()
        variance = posterior.variance if classes == 2 else posterior.covariance
        answers += [value.evidence, posterior.mean(cross), variance(cross, np.ones(NEW))]
    return answers


def gaussian_ordered_classes(gram: GramMatrix) -> Answers:
    process = OrdinalProcess(MatrixCovariance(gram), CODES, LINKS["probit"], slope=None)
    theta = process.join(np.zeros(0), 2.0, np.array([-0.4, 0.6]))
    posterior = OrdinalEvidence(process).posterior(theta)
    return [*OrdinalEvidence(process)(theta), posterior.coefficients, posterior.root]


def kmeans(gram: GramMatrix) -> Answers:
    start = Start("labels", (np.arange(N) % 4).astype(np.int32))
    problem = Clustering(gram, WEIGHTS, 4, start, 1, 100, 0.0, np.random.RandomState(0))
    clusters = solve_kmeans(problem).value
    return [clusters.labels, clusters.inertia]


def eigenpairs(gram: GramMatrix) -> Answers:
    return [
        solve_eigenpairs(Eigenproblem(gram, 5, solver)).value.values for solver in ("dense", "arpack", "randomized")
    ]


def perceptron(gram: GramMatrix) -> Answers:
    answers = []
    for budget in (None, 20):
        expansion = PerceptronState.empty(1, N)
        problem = PerceptronProblem(gram, CODES, np.array([1]), budget=budget)
        answers += [make_passes(problem, expansion, 3), expansion.theta]
    return answers


def online(gram: GramMatrix) -> Answers:
    state = OnlineState.empty(1)
    problem = OnlineProblem(Hinge(), intercept=True, budget=30, strategy="projection")
    learn(problem, gram, SIGNS[:, None], state, np.arange(N), np.full(N, 0.5))
    return [state.theta, state.bias]


def curvature(gram: GramMatrix) -> Answers:
    require_conditionally_positive(gram)
    require_positive(gram)
    require_kernel(gram, np.arange(N), np.float64, balanced=True, curved=False)
    return [lowest_quotient(gram, balanced=False)]


SOLVERS: list[Callable[[GramMatrix], Answers]] = [
    smo,
    smo_on_working_sets,
    projected_gradient,
    hard_margin,
    nu_margin,
    pairs_of_classes,
    stochastic,
    linear_system,
    penalty_path,
    newton,
    newton_by_products,
    multipliers,
    quantile,
    quantiles_in_order,
    stationary_point,
    two_classes,
    many_classes,
    ordinal,
    gradient_descent,
    gaussian_predictions,
    gaussian_classes,
    gaussian_ordered_classes,
    kmeans,
    eigenpairs,
    perceptron,
    online,
    curvature,
]


def same(result: Answers, expected: Answers) -> None:
    assert len(result) == len(expected)
    for mine, other in zip(result, expected, strict=True):
        scale = max(float(np.abs(other).max()), 1.0)
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.__name__)
def test_every_solver_needs_the_protocol_alone(solver: Callable[[GramMatrix], Answers]) -> None:
    same(solver(NaiveGram(KERNEL(X))), solver(Gram(KERNEL, X)))


@pytest.mark.parametrize("solver", [system_of_low_rank, penalty_path], ids=lambda solver: solver.__name__)
def test_matrices_of_low_rank(solver: Callable[[GramMatrix], Answers]) -> None:
    same(solver(NaiveGram(X @ X.T)), solver(Gram(Linear(), X)))


@pytest.mark.parametrize("solver", [many_classes, kmeans, perceptron, newton], ids=lambda solver: solver.__name__)
def test_without_room_for_the_whole_matrix(solver: Callable[[GramMatrix], Answers]) -> None:
    gram = NaiveGram(KERNEL(X))
    expected = solver(gram)
    with mercer.config(memory=3 * N * N):
        same(solver(gram), expected)


def test_an_indefinite_matrix_is_found() -> None:
    with pytest.raises(IndefiniteKernelError):
        require_positive(NaiveGram(-KERNEL(X)))
