"""Kernel ridge regression in searches: all folds and penalties together, against fits of every candidate alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
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


ALPHAS = np.logspace(-12, 3, 6)
KERNELS: list[Any] = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "laplacian", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0},
    {"kernel": "linear"},
]


@pytest.mark.parametrize("kernel", KERNELS, ids=[one["kernel"] for one in KERNELS])
@pytest.mark.parametrize("case", ["plain", "weights", "targets"])
def test_scores_over_all_penalties_are_those_of_the_peer(kernel: dict[str, Any], case: str) -> None:
    X, y = curve(240)
    targets = np.column_stack([y, X[:, 2] + 10.0]) if case == "targets" else y + 10.0
    fit = {"sample_weight": np.linspace(0.1, 3.0, len(y))} if case == "weights" else {}
    ours = GridSearchCV(KernelRidge(**kernel), {"alpha": ALPHAS}, cv=THREE, return_train_score=True)
    peer = model_selection.GridSearchCV(PeerRidge(**kernel), {"alpha": ALPHAS}, cv=THREE, return_train_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.fit(X, targets, **fit)
        peer.fit(X, targets, **fit)
    # Without a penalty to speak of, scores rest on the rounding of the matrix where it is singular.
    sure = (1e-8 if kernel["kernel"] in ("poly", "linear") else 1e-13) < ALPHAS
    for part in ("test", "train"):
        for name in ("mean", *(f"split{fold}" for fold in range(3))):
            key = f"{name}_{part}_score"
            expected = peer.cv_results_[key]
            np.testing.assert_allclose(ours.cv_results_[key][sure], expected[sure], rtol=1e-6)
            np.testing.assert_allclose(ours.cv_results_[key][~sure], expected[~sure], rtol=1e-2)
    assert ours.best_params_ == peer.best_params_


def test_each_fold_makes_one_model_for_all_penalties(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = curve()
    models: list[int] = []
    fit = KernelRidge.fit_side_by_side

    def noted(model: KernelRidge, values: Any, *arguments: Any) -> KernelRidge:
        models.append(len(values))
        return fit(model, values, *arguments)

    monkeypatch.setattr(KernelRidge, "fit_side_by_side", noted)
    monkeypatch.setattr(KernelRidge, "fit_along", None)
    options: list[dict[str, Any]] = [
        {},
        {"scoring": "neg_mean_absolute_error"},
        {"scoring": ["r2", "neg_max_error"], "refit": "r2"},
        {"scoring": make_scorer(lambda y, f: -float(np.abs(y - f).max()))},
    ]
    for some in options:
        models.clear()
        both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=THREE, return_train_score=True, **some), X, y)
        assert models == [3] * 6
    both(GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=GroupKFold(3)), X, y, {"groups": np.arange(120) // 10})


def test_targets_keep_their_shape_and_equal_penalties_their_place() -> None:
    X, y = curve()
    grid = [{"alpha": [1.0, 0.1]}, {"alpha": [0.1, 1.0, 1e-3]}]
    both(GridSearchCV(KernelRidge(kernel="rbf", gamma=1.0), grid, cv=THREE), X, y[:, None])
    # A fold of one row has no score.
    single = [(np.arange(99), [99]), (np.arange(99), [7])]
    both(GridSearchCV(KernelRidge(kernel="rbf", gamma=1.0), grid, cv=single), X, y)
    both(GridSearchCV(KernelRidge(kernel="rbf", gamma=1.0), grid, cv=THREE), X, np.ones(len(y)))


def test_a_grid_does_not_depend_on_the_threads() -> None:
    X, y = curve(200)
    grid = {"alpha": np.logspace(-6, 1, 5), "gamma": [0.01, 0.1, 1.0]}
    one, *others = (
        GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5, n_jobs=jobs).fit(X, y).cv_results_ for jobs in (1, 2, 3, 8)
    )
    for other in others:
        for key in (f"split{fold}_test_score" for fold in range(5)):
            np.testing.assert_array_equal(one[key], other[key])


def test_a_candidate_that_fails_takes_no_other_with_it() -> None:
    X, y = curve()
    grid = {"alpha": [1.0, 0.1], "gamma": [-1.0, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=THREE, error_score=-7.0).fit(X, y).cv_results_
    failed = np.array([parameters["gamma"] < 0 for parameters in results["params"]])
    assert (results["mean_test_score"][failed] == -7.0).all() and (results["mean_test_score"][~failed] > 0).all()
    assert (results["mean_fit_time"][~failed] > 0).all()
