"""Box problems in the space of features by interior points: against steps on K, and where passes crawl."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, SVR, OneClassSVM
from mercer.gram import Gram
from mercer.gram.features import ExplicitFeatures
from mercer.kernels import Linear
from mercer.solvers.solution import Status
from mercer.solvers.svm import coordinates
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.interior_features import go_on_inside, passes_before
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.smo import SMO

N = 300


def problem(form: str, X: np.ndarray, C: float) -> BoxQP:
    rng = np.random.default_rng(1)
    y = X[:, 0] / np.abs(X[:, 0]).max() + 0.3 * rng.normal(size=len(X))
    upper = C * rng.uniform(0.2, 1.0, len(X))
    gram = Gram(Linear(), X, X)
    if form == "classes":
        return BoxQP.classification(gram, np.where(y > 0, 1.0, -1.0), upper)
    return BoxQP(gram, y, -upper, upper, tube=0.1)


@pytest.mark.parametrize(
    ("form", "C", "spread"),
    [
        (("classes", "values")[(i + j) % 2], C, spread)
        for i, C in enumerate([1e-2, 1.0, 1e4])
        for j, spread in enumerate([0, 2])
    ],
)
def test_it_is_the_answer_of_steps_on_the_matrix(form: str, C: float, spread: int) -> None:
    X = np.random.default_rng(0).normal(size=(N, 6)) * 10.0 ** np.linspace(-spread / 2, spread / 2, 6)
    stated = problem(form, X, C)
    best = SMO(tol=1e-9, max_iter=2_000_000).solve(stated)
    point = Iterate.begin(stated, None)
    assert go_on_inside(ExplicitFeatures(X), point, np.asarray(stated.totals), 1e-6)
    assert point.violation() <= 1e-6
    # Pairs may crawl; then theirs is the lesser one.
    assert point.dual() >= best.certificate.dual - 1e-7 * abs(best.certificate.dual) - 1e-9
    assert point.dual() <= best.certificate.primal * (1 + 1e-9) + 1e-9
    assert (point.beta >= stated.lower).all() and (point.beta <= stated.upper).all()
    assert point.beta.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(point.beta).sum())
    np.testing.assert_allclose(point.F, stated.linear - X @ (X.T @ point.beta), atol=1e-9 * np.abs(X).max() ** 2 * C)


def test_it_leaves_a_better_point_alone() -> None:
    X = np.random.default_rng(0).normal(size=(N, 3))
    stated = problem("classes", X, 1.0)
    point = Iterate.begin(stated, SMO(tol=1e-10).solve(stated).value.beta)
    point.F = stated.linear - X @ (X.T @ point.beta)
    before = point.beta.copy()
    moved = go_on_inside(ExplicitFeatures(X), point, np.zeros(1), 1e-6)
    assert moved or np.array_equal(point.beta, before)
    assert point.violation() <= 1e-6


def test_the_method_is_for_few_features() -> None:
    assert passes_before(10) < passes_before(500) < np.inf == passes_before(2000)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_learners_of_columns_in_other_units_converge(kind, C: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 5)) * (rng.uniform(size=(2500, 5)) < 0.8) * 10.0 ** np.linspace(-1, 2, 5)
    score = X @ (1 / 10.0 ** np.linspace(-1, 2, 5)) + rng.normal(size=2500)
    machine = SVC(kernel="linear", C=C, max_iter=-1).fit(kind(X), score > 0)
    tube = SVR(kernel="linear", C=C).fit(kind(X), score + 100.0)
    for model in (machine, tube):
        assert model.certificate_.status is Status.converged
        assert model.certificate_.relative_gap <= 1e-4
    assert machine.score(X, score > 0) > 0.8 and tube.score(X, score + 100.0) > 0.7


def test_one_class_machines_as_well() -> None:
    X = np.random.default_rng(0).normal(size=(2500, 4)) * [1e-1, 1.0, 10.0, 100.0] + 5.0
    model = OneClassSVM(kernel="linear", nu=0.2).fit(X)
    assert model.certificate_.status is Status.converged
    assert np.mean(model.predict(X) < 0) == pytest.approx(0.2, abs=0.02)


def test_passes_that_crawl_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments):
        calls.append(go_on_inside(*arguments))
        return calls[-1]

    monkeypatch.setattr(coordinates, "go_on_inside", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 5))
    SVC(kernel="linear", C=1e-3).fit(X, X[:, 0] > 0)
    assert not calls
    SVC(kernel="linear", C=1e3).fit(X * [1e-2, 1.0, 1.0, 30.0, 1e3], X.sum(axis=1) + rng.normal(size=2500) > 0)
    assert calls == [True]
