"""``solver=`` of the support vector machines: every name and value gives the same answer, certified."""

from __future__ import annotations

import copy
import functools
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer._errors import DataError, ParameterError
from mercer.gram import PrecomputedGram
from mercer.solvers import SMO, BoxQP, BoxSolver, ProjectedGradient, Start
from mercer.solvers.solution import Status

TOL = 1e-4
MACHINES: dict[str, Any] = {
    "svc": SVC(C=2.0, gamma=0.5),
    "homogeneous": SVC(C=2.0, gamma=0.5, fit_intercept=False),
    "nu_svc": NuSVC(nu=0.3, gamma=0.5),
    "weighted": NuSVC(nu=0.3, gamma=0.5, class_weight={1: 2.0}),
    "svr": SVR(C=2.0, gamma=0.5),
    "nu_svr": NuSVR(nu=0.4, C=2.0, gamma=0.5),
    "one_class": OneClassSVM(nu=0.3, gamma=0.5),
}
SOLVERS: dict[str, Any] = {
    "projected-gradient": "projected-gradient",
    "accelerated-projected-gradient": "accelerated-projected-gradient",
    "SMO": SMO(tol=TOL, cache_bytes=2**20, n_jobs=1),
    "SMO, gap": SMO(tol=TOL, stop="gap"),
    "ProjectedGradient": ProjectedGradient(tol=TOL, accelerated=True, stop="gap"),
}


def data(machine: str, n: int = 70) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    numbers = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    if machine == "one_class":
        return X, None
    return X, numbers if machine.endswith("svr") else np.digitize(numbers, [-0.4, 0.5])


@functools.cache
def by_default(machine: str) -> Any:
    """The answer on few rows, for tests that only read it."""
    model = clone(MACHINES[machine]).set_params(tol=TOL).fit(*data(machine, n=30))
    if machine not in ("svr", "nu_svr", "one_class"):
        model.decision_function_shape = "ovo"
    return model


@pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.slow) if name == "projected-gradient" else name for name in SOLVERS]
)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_solver_gives_the_answer_of_the_default(machine: str, solver: str) -> None:
    # Without acceleration, gradient descent takes ten thousand steps and more on a few dozen rows.
    X, y = data(machine, n=30)
    default = by_default(machine)
    other = clone(MACHINES[machine]).set_params(tol=TOL, solver=SOLVERS[solver]).fit(X, y)
    values = "predict" if machine.endswith("svr") else "decision_function"
    if machine not in ("svr", "nu_svr", "one_class"):
        other.decision_function_shape = "ovo"
    np.testing.assert_allclose(getattr(other, values)(X), getattr(default, values)(X), atol=30 * TOL)
    certificate = other.certificate_
    assert certificate.status is Status.converged and certificate.kkt_violation <= TOL
    # The best value lies between the two of either answer. With class weights the problem itself depends on rho.
    assert machine == "weighted" or certificate.dual <= default.certificate_.primal + 1e-12
    assert certificate.primal == pytest.approx(certificate.dual, rel=1e-2)
    assert certificate.primal == pytest.approx(default.certificate_.primal, rel=1e-2)


def test_the_value_rules_and_the_name_follows_the_estimator() -> None:
    X, y = data("svr")
    with pytest.warns(Warning, match="max_iter was reached"):
        assert SVR(tol=1e-3, solver=SMO(max_iter=5)).fit(X, y).n_iter_ == 5
    loose = SVR(tol=1e-9, C=50.0, solver=ProjectedGradient(tol=0.5, accelerated=True)).fit(X, y)
    assert 1e-9 < loose.certificate_.kkt_violation <= 0.5 and loose.fit_status_ == 0
    with pytest.warns(Warning, match="max_iter was reached"):
        SVR(max_iter=3, solver="projected-gradient").fit(X, y)


def test_paths_and_probabilities_use_the_solver() -> None:
    X, y = data("svc")
    values = mercer.svm_path(X, y, [0.5, 2.0], estimator=SVC(gamma=0.5, solver=SMO(tol=1e-6)))
    named = mercer.svm_path(X, y, [0.5, 2.0], estimator=SVC(gamma=0.5, tol=1e-6))
    for one, other in zip(values, named, strict=True):
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)
    by_nu = mercer.svm_path(
        X, y, nus=[0.2, 0.3], estimator=NuSVC(gamma=0.5, solver=ProjectedGradient(accelerated=True))
    )
    assert all(c.kkt_violation <= 1e-3 for c in by_nu.certificates)


def test_values_are_cloned_compared_printed_and_saved(tmp_path: Path) -> None:
    X, y = data("svc")
    solver = ProjectedGradient(tol=1e-2, accelerated=True)
    model = SVC(solver=solver).fit(X, y)
    assert clone(model).solver == model.get_params()["solver"] == solver == eval(repr(solver))
    assert pickle.loads(pickle.dumps(model)).solver == copy.deepcopy(model).solver == solver
    assert "solver=ProjectedGradient(tol=0.01" in repr(model)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.solver == solver
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("machine", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
@pytest.mark.parametrize("solver", ["newton", SMO, None, ["smo"], np.array(["smo"])])
def test_what_is_no_solver(machine: Any, solver: Any) -> None:
    X, y = data("svc" if machine in (SVC, NuSVC) else "svr")
    with pytest.raises(
        ParameterError, match=r"solver must be one of 'smo', .* or a solver such as mercer\.solvers\.SMO"
    ):
        machine(solver=solver).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": 0.0}, "SMO: tol must be a finite number above 0, but is 0.0"),
        ({"tol": np.inf}, "tol must be"),
        ({"stop": "soon"}, "stop must be 'kkt' or 'gap', but is 'soon'"),
        ({"max_iter": -2}, "max_iter must be a whole number, -1 for no limit"),
        ({"max_iter": 2.5}, "max_iter must be"),
        ({"n_jobs": 1.5}, "n_jobs must be None or a whole number"),
        ({"verbose": "yes"}, "verbose must be True or False"),
        ({"cache_bytes": -1}, "cache_bytes must be a whole number of at least 0"),
    ],
)
def test_parameters_of_values_are_checked_when_they_are_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        SMO(**options)


def test_parameters_of_projected_gradient() -> None:
    with pytest.raises(ParameterError, match="accelerated must be True or False, but is 'much'"):
        ProjectedGradient(accelerated="much")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Answers(BoxSolver):
    """Gives what it was made with, or zeros."""

    beta: Any = None

    def improve(self, problem: BoxQP, beta: np.ndarray) -> tuple[np.ndarray, int]:
        return (np.zeros(len(beta)) if self.beta is None else np.array(self.beta)), 1


def test_an_answer_is_judged_by_its_weights_alone() -> None:
    problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.full(2, 10.0))
    right = Answers(beta=(1.0, -1.0)).solve(problem, Start(np.array([0.5, -0.5])))
    assert right.status is Status.converged and right.certificate.gap == 0 and right.value.offset == 0
    wrong = Answers().solve(problem)
    assert wrong.status is Status.stalled and wrong.certificate.gap > 1
    assert Answers(max_iter=1).solve(problem).status is Status.iteration_limit
    for beta, words in (
        ((1.0, -1.0, 0.0), r"returned weights of shape \(3,\), not \(2,\)"),
        ((11.0, -1.0), "outside the box by 1"),
        ((np.nan, -1.0), "outside the box by nan"),
        ((1.0, -2.0), "whose sums are off by 1"),
        ((1.0 + 1j, -1.0), "weights of type complex128, not real numbers"),
        (("1", "-1"), "weights of type <U2, not real numbers"),
    ):
        with pytest.raises(DataError, match=words):
            Answers(beta=beta).solve(problem)
    with pytest.raises(NotImplementedError, match="must define improve"):
        BoxSolver().solve(problem)


@dataclass(frozen=True)
class Returns(BoxSolver):
    """Returns what it was made with."""

    answer: Any = None

    def improve(self, problem: BoxQP, beta: np.ndarray) -> Any:
        return self.answer


@dataclass(frozen=True)
class Overwrites(BoxSolver):
    """Leaves zeros wherever it may write."""

    def improve(self, problem: BoxQP, beta: np.ndarray) -> tuple[np.ndarray, int]:
        for array in (problem.linear, problem.lower, problem.upper, beta):
            array[:] = 0
        return beta, 0


@pytest.mark.parametrize("steps", [None, "many", np.nan, 2.5, -1, True])
def test_an_answer_is_weights_and_a_number_of_steps(steps: Any) -> None:
    problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.full(2, 10.0))
    for answer in (None, np.zeros(2), (np.zeros(2), steps)):
        with pytest.raises(DataError, match=r"Returns\.improve must return a tuple of weights and the number"):
            Returns(answer=answer).solve(problem)
    assert Returns(answer=(np.zeros(2), np.int64(3))).solve(problem).certificate.iterations == 3


def test_a_solver_cannot_change_the_problem_that_it_is_judged_by() -> None:
    problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.full(2, 10.0))
    assert Overwrites().solve(problem).status is Status.stalled
    assert problem.linear.tolist() == [1.0, -1.0] and problem.upper.tolist() == [10.0, 0.0]


@pytest.mark.parametrize("solver", [SMO, ProjectedGradient])
def test_a_limit_beyond_all_integers_is_no_limit(solver: Any) -> None:
    X, y = data("svc")
    model = SVC(solver=solver(max_iter=10**30)).fit(X, y)
    assert model.certificate_.status is Status.converged


def test_the_certificate_tells_where_the_kernel_matrix_was() -> None:
    X, y = data("svr")
    assert SVR(gamma=0.5).fit(X, y).certificate_.storage.startswith("held whole in float64, 38.3 KiB")
    certificate = SVR(kernel="precomputed").fit(X @ X.T, y).certificate_
    assert (
        certificate.storage.startswith("given whole in float64")
        and "Kernel matrix: given whole" in certificate.explain()
    )
    many = np.random.default_rng(0).standard_normal((2100, 2))
    assert SVR(gamma=0.5).fit(many, many[:, 0]).certificate_.storage == "evaluated by tiles"
    laplacian = SVR(kernel="laplacian", gamma=0.5).fit(many, many[:, 0])
    assert "kept rows in float32" in laplacian.certificate_.storage


@pytest.mark.parametrize("solver", ["smo", "projected-gradient"])
@pytest.mark.parametrize("classes", [2, 4])
def test_certificates_say_where_the_matrix_was(solver: str, classes: int) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(16, 3)), np.arange(16) % classes
    for model in (SVC(solver=solver, tol=0.01), NuSVC(nu=0.3, solver=solver, tol=0.01)):
        certificate = model.fit(rows, labels).certificate_
        assert certificate.storage and f"Kernel matrix: {certificate.storage}." in certificate.explain()
