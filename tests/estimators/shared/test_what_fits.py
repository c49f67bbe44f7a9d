"""Errors of the memory budget name parameters that work."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    Blocks,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelMachine,
    KernelPCA,
    KernelQuantileRegression,
    KernelRidge,
    OneClassSVM,
    config,
    estimate,
)
from mercer._errors import MemoryBudgetError
from mercer.kernels import RBF

X = np.random.default_rng(0).normal(size=(900, 3))
Y = np.sin(X[:, 0])
OPTIONS: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5}
BUDGET = "4MiB"
# Solvers that keep a matrix in float32 fit that.
LESS = "2MiB"

LEARNERS: dict[str, Any] = {
    "Cholesky": KernelRidge(0.1, solver="cholesky", **OPTIONS),
    "loo": KernelRidge("loo", **OPTIONS),
    "components": KernelPCA(4, eigen_solver="dense", **OPTIONS),
}

OTHERS: dict[str, Any] = {
    "pairs": SVC(**OPTIONS),
    "going on": SVC(warm_start=True, **OPTIONS),
    "a tube": SVR(**OPTIONS),
    "Newton": KernelMachine("huber", solver="newton", **OPTIONS),
    "another penalty": KernelMachine("huber", "norm", solver="newton", **OPTIONS),
    "quantiles": KernelQuantileRegression([0.1, 0.9], tol=0.01, **OPTIONS),
    "a process": GaussianProcessRegressor(RBF(1.0), alpha=0.1, mean="linear", optimizer=None),
}


def refusal(model: Any, budget: str = BUDGET) -> str:
    with config(memory=budget, n_jobs=1), pytest.raises(MemoryBudgetError) as caught:
        model.fit(X, Y > 0 if isinstance(model, SVC) else Y)
    return str(caught.value)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_named_works(name: str) -> None:
    model = LEARNERS[name]
    message = refusal(model)
    found = re.search(r'Or pass approximation="nystroem"(?: and n_landmarks=(\d+))?', message)
    assert found is not None, message
    model = type(model)(**model.get_params()).set_params(approximation="nystroem")
    if found[1]:
        model.set_params(n_landmarks=int(found[1]))
    if "with a number for alpha" in message:
        model.set_params(alpha=0.1)
    with config(memory=BUDGET, n_jobs=1):
        model.fit(X, Y)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_named_for_other_learners_works(name: str) -> None:
    model = OTHERS[name]
    message = refusal(model, LESS)
    found = re.search(r'Or pass approximation="nystroem"(?: and n_landmarks=(\d+))?(?: with (.*?))? \(', message)
    assert found is not None, message
    changes: dict[str, Any] = {"approximation": "nystroem", "n_landmarks": int(found[1])}
    for change in (found[2] or "").split(" and "):
        parameter, _, value = change.partition("=")
        if value:
            changes[parameter] = ast.literal_eval(value)
    model = type(model)(**{**model.get_params(deep=False), **changes})
    with config(memory=LESS, n_jobs=1):
        model.fit(X, Y > 0 if isinstance(model, SVC) else Y)
    assert "mercer.Blocks" in message


@pytest.mark.parametrize("labels", [Y > 0, np.digitize(Y, [-0.5, 0.5])])
@pytest.mark.parametrize("change", [{}, {"multi_class": "one_vs_rest", "approximation": "ep", "warm_start": True}])
def test_what_is_named_for_classes_of_a_process_works(labels: Any, change: dict[str, Any]) -> None:
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None, **change)
    with config(memory=BUDGET, n_jobs=1):
        with pytest.raises(MemoryBudgetError) as caught:
            model.fit(X, labels)
        (found,) = re.finditer(r'Or pass approximation="nystroem" and n_landmarks=(\d+)', str(caught.value))
        assert ("with warm_start=False" in str(caught.value)) == bool(change)
        model.set_params(approximation="nystroem", n_landmarks=int(found[1]), warm_start=False).fit(X, labels)


def test_blocks_are_named_with_their_cost() -> None:
    message = refusal(LEARNERS["Cholesky"])
    found = re.search(r"n_landmarks=(\d+) \(\S+ [KM]iB .*?; (\S+) ([KM])iB with X in mercer.Blocks", message)
    assert found is not None, message
    need = float(found[2]) * 2 ** (10 if found[3] == "K" else 20)
    model = KernelRidge(0.1, approximation="nystroem", n_landmarks=int(found[1]), **OPTIONS)
    with config(memory=BUDGET, n_jobs=1):
        whole = estimate(model, Blocks(X, Y))
        assert model.fit(Blocks(X, Y)).score(X, Y) > 0.9
    assert whole.nbytes == pytest.approx(need, rel=0.05)
    assert "mercer.Blocks" in refusal(LEARNERS["components"])


def test_products_are_named_where_a_factor_was_asked_for() -> None:
    message = refusal(LEARNERS["Cholesky"])
    assert re.search(r'or solver="cg" \(\d.* KiB and 810,000 kernel values a product\)\.', message)
    with config(memory=BUDGET, n_jobs=1):
        assert KernelRidge(0.1, solver="cg", **OPTIONS).fit(X, Y).factorization_ == "conjugate gradients"


def test_a_learner_without_such_parameters_names_none() -> None:
    assert "Or pass" not in refusal(OneClassSVM(**OPTIONS), LESS)
    assert "Or pass" not in refusal(KernelRidge(0.1, solver="cholesky", kernel="sigmoid", allow_indefinite=True))


def test_nothing_is_named_that_does_not_fit() -> None:
    with config(memory="6KiB", n_jobs=1), pytest.raises(MemoryBudgetError) as caught:
        LEARNERS["Cholesky"].fit(X, Y)
    assert "Or pass" not in str(caught.value)


def test_the_search_of_a_process_is_part_of_what_it_needs() -> None:
    model = GaussianProcessRegressor(RBF(1.0))
    assert "Or pass" not in refusal(model)
    message = refusal(model.set_params(optimizer=None))
    assert "n_landmarks=" in message, message
    # With some noise the search is short.
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.01)
    random = np.random.default_rng(0)
    rows = random.normal(size=(1500, 2))
    targets = np.sin(rows[:, 0]) + 0.1 * random.normal(size=1500)
    with config(memory="9MiB", n_jobs=1):
        with pytest.raises(MemoryBudgetError, match=r"Or pass approximation=\"nystroem\"") as caught:
            model.fit(rows, targets)
        found = re.search(r"n_landmarks=(\d+) \((\d\.\d) MiB", str(caught.value))
        assert found is not None and float(found[2]) >= 7.6, caught.value
        model = clone(model).set_params(approximation="nystroem", n_landmarks=int(found[1]))
        assert model.fit(rows, targets).score(rows, targets) > 0.9


def test_the_cost_of_what_is_named() -> None:
    message = refusal(LEARNERS["Cholesky"])
    found = re.search(r"n_landmarks=(\d+) \(\S+ [KM]iB and (\S+) kernel values a pass", message)
    assert found is not None, message
    model = KernelRidge(0.1, approximation="nystroem", n_landmarks=int(found[1]), **OPTIONS)
    assert int(found[2].replace(",", "")) == estimate(model, X, Y).values_of_pass
    assert "mercer.estimate(model, X) tells the seconds" in message
