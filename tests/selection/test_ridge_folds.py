"""Kernel ridge regression in searches: all folds and penalties together, against fits of every candidate alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, GridSearchCV, KernelRidge, config, svm_path
from mercer._errors import ParameterError
from mercer.estimators import kernel_ridge
from mercer.kernels import RBF, White
from mercer.selection import ridge_folds
from search_cases import both, curve

THREE = KFold(3, shuffle=True, random_state=0)
GRID = {"alpha": [1.0, 1e-3, 0.1], "gamma": [0.1, 1.0]}


class Count:
    """Counts the systems that are solved one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alone, self._solve = 0, kernel_ridge.cholesky.solve
        monkeypatch.setattr(kernel_ridge.cholesky, "solve", self._counted)

    def _counted(self, *arguments: Any, **options: Any) -> Any:
        self.alone += 1
        return self._solve(*arguments, **options)


@pytest.fixture(autouse=True)
def from_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge_folds, "_FROM", 8)


def alone_in(search: GridSearchCV, X: Any, y: Any, monkeypatch: pytest.MonkeyPatch, **fit: Any) -> int:
    """The systems that a search solves one by one, without that of the best candidate."""
    count = Count(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.set_params(refit=False).fit(X, y, **fit)
    return count.alone


TOGETHER: list[tuple[str, Any, dict[str, Any], int]] = [
    ("kernels", KernelRidge(kernel="rbf"), GRID, 0),
    ("a kernel with noise", KernelRidge(kernel=RBF(1.0) + 0.1 * White()), {"alpha": [0.1, 1.0]}, 0),
    ("linear", KernelRidge(), {"alpha": [0.1, 1.0]}, 0),
    ("no penalty", KernelRidge(kernel="rbf"), {"alpha": [0.0, 1e-3, 0.1]}, 3),
    ("a criterion", KernelRidge(kernel="rbf"), {"alpha": ["loo", 1e-3, 0.1]}, 0),
    ("indefinite", KernelRidge(kernel="sigmoid"), {"alpha": [0.1, 1.0]}, 6),
    ("a function", KernelRidge(kernel=lambda A, B: (A @ B.T + 1.0) ** 2), {"alpha": [0.1, 1.0]}, 6),
]


@pytest.mark.parametrize(("estimator", "grid", "alone"), [case[1:] for case in TOGETHER], ids=[c[0] for c in TOGETHER])
def test_scores_are_those_of_fits_alone(
    estimator: Any, grid: dict[str, Any], alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = curve()
    # Without a penalty, the matrix is close to singular.
    both(
        GridSearchCV(estimator, grid, cv=THREE, return_train_score=True),
        X,
        y,
        atol=1e-6 if 0.0 in grid["alpha"] else 1e-9,
    )
    assert alone_in(GridSearchCV(estimator, grid, cv=THREE), X, y, monkeypatch) == alone


def test_several_targets_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve()
    weight = np.linspace(0.0, 2.0, len(y))
    weight[40:45] = 0.0
    Y = np.column_stack([y, X[:, 2]])
    both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE), X, Y, {"sample_weight": weight})
    search = GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE)
    assert alone_in(search, X, Y, monkeypatch, sample_weight=weight) == 0
    assert "6 paths along alpha, all values solved together" in search.sharing_


def test_one_penalty_for_each_target_is_fitted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve()
    Y = np.column_stack([y, X[:, 2]])
    grid = {"alpha": [0.1, 1.0, np.array([0.1, 1.0])]}
    assert alone_in(GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=THREE), X, Y, monkeypatch) == 3


def test_pipelines_solve_each_fold_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve()
    pipeline = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    grid = {f"kernelridge__{name}": values for name, values in GRID.items()}
    both(GridSearchCV(pipeline, grid, cv=THREE), X, y)
    assert alone_in(GridSearchCV(pipeline, grid, cv=THREE), X, y, monkeypatch) == 0


def test_given_matrices_and_float32() -> None:
    X, y = curve()
    both(GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": [0.1, 1.0]}, cv=THREE), RBF(1.0)(X), y)
    both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE), X.astype(np.float32), y, atol=1e-5)


def test_folds_that_share_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve()
    splits = ShuffleSplit(3, train_size=0.5, random_state=0)
    both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=splits), X, y)
    assert alone_in(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=splits), X, y, monkeypatch) == 0
    # A row that a fold has twice counts twice.
    bootstrap = [(np.r_[0:60, 0:20], np.arange(60, 120))]
    both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=bootstrap), X, y)


def test_a_small_budget_gives_the_same_scores() -> None:
    X, y = curve(400)
    free = GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE, refit=False).fit(X, y)
    with config(memory=2 * 2**20):
        tight = GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE, refit=False).fit(X, y)
    np.testing.assert_allclose(free.cv_results_["mean_test_score"], tight.cv_results_["mean_test_score"], atol=1e-9)


def test_the_certificate_is_as_good_as_that_of_a_fit_alone() -> None:
    X, y = curve()
    models = KernelRidge(kernel="rbf").fit_along("alpha", [1e-3, 0.1], X, y)
    for model, alpha in zip(models, (1e-3, 0.1), strict=True):
        alone = KernelRidge(alpha, kernel="rbf").fit(X, y)
        assert model.alpha == model.alpha_ == alpha and model.certificate_.kkt_violation < 1e-10
        np.testing.assert_array_equal(model.dual_coef_, alone.dual_coef_)


def test_only_alpha_is_a_path_of_ridge() -> None:
    X, y = curve()
    with pytest.raises(ParameterError, match="along alpha, and not along 'gamma'"):
        KernelRidge().fit_along("gamma", [1.0], X, y)
    with pytest.raises(ParameterError, match="must be an SVC"):
        svm_path(X, y, [1.0], estimator=KernelRidge())
    assert svm_path(X, y > 0, [1.0], estimator=SVC())[0].C == 1.0
