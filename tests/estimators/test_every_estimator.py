"""What holds for every estimator that learns from rows: scikit-learn's contract, threads, processes, bad input."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
import threading
import time
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from estimator_table import (
    ALL,
    CLASSES,
    NUMBERS,
    X,
    assert_same_bits,
    bits,
    every_estimator,
    every_learner,
    every_solver,
    every_worker,
    many_rows,
    refitted,
    supervised,
)
from mercer import (
    SVC,
    GaussianProcessOrdinalRegression,
    KernelLMS,
    KernelLocalOutlierFactor,
    KernelNeighborsClassifier,
    KernelNeighborsRegressor,
    KernelOrdinalRegression,
    KernelPerceptron,
    KernelRidge,
    KernelSGDClassifier,
    MultipleKernelSVC,
    MultipleKernelSVR,
    NuSVC,
    OnlineKernelLogisticRegression,
    OnlineKernelRegressor,
)
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, MercerError, ParameterError
from mercer.engine import memory
from mercer.kernels import RBF, Linear, Matern, NegativeDistance
from mercer.solvers.online.mistakes import MistakeBound
from sklearn_checks import Checks, in_turn, name_of, not_passed


def test_the_list_is_complete() -> None:
    public = {name for name in mercer.__all__ if hasattr(getattr(mercer, name), "fit")}
    # Without a kernel to choose; the checks that need none are in the files of their own tests.
    public -= {"BayesianLinearRegression", "TabularClassifier", "TabularRegressor"}
    # They fit other estimators.
    public -= {name for name in public if name.endswith("SearchCV") or name.startswith("Conformal")}
    assert public == {type(case.values[0]).__name__ for case in ALL}


# The sum has no free parameter: the searches of Gaussian processes are those of the default, which has one.
CHECKED_KERNELS = (None, "linear", (2.0 * RBF(2.0)).fixed() + Linear())


def _checked(model: Any, kernel: Any) -> Any:
    checked = clone(model) if kernel is None else clone(model).set_params(kernel=kernel)
    if isinstance(model, KernelOrdinalRegression | GaussianProcessOrdinalRegression):
        # One check has three classes of text, whose order has to be said.
        checked.set_params(classes="sorted")
    if isinstance(model, MultipleKernelSVC | MultipleKernelSVR):
        # That of the table is for comparisons of solutions; no check needs more than the default.
        checked.set_params(tol=type(model)().tol)
    return checked


def _check(model: Any, checks: Checks) -> None:
    others = not_passed(checks)
    if isinstance(model, KernelNeighborsClassifier):
        # Left out, too, for a classifier of several outputs that has shares of votes and no decision function.
        assert "decision_function" in others.pop("check_classifiers_multilabel_output_format_decision_function")
    of_weights = [checked for checked, check in checks if name_of(check) == "check_class_weight_classifiers"]
    if isinstance(model, NuSVC) and of_weights[0].kernel == "linear":
        # Classes that overlap by far and a nu below what they need: the best margin is zero, as a warning says.
        assert others.pop("check_class_weight_classifiers") == ""
    # There are fewer checks of transformers and of detectors of outliers without weights.
    fewer = hasattr(model, "transform") or isinstance(model, KernelLocalOutlierFactor)
    assert len(checks) > (44 if fewer else 49) and others == {}


# The settings of a class are one learner here, where they have the same checks.
CLASSES_OF_LEARNERS: dict[tuple[type, bool], list[Any]] = {}
for case in ALL:
    CLASSES_OF_LEARNERS.setdefault((type(case.values[0]), is_classifier(case.values[0])), []).append(case.values[0])


@pytest.mark.parametrize(
    ("first", "models"),
    [pytest.param(*each, id=type(each[1][0]).__name__) for each in enumerate(CLASSES_OF_LEARNERS.values())],
)
def test_scikit_learns_own_checks(first: int, models: list[Any]) -> None:
    """Each check of each class, and by turns each kernel and each setting with each check."""
    checks = in_turn([_checked(model, kernel) for model in models for kernel in CHECKED_KERNELS], first)
    # They are one check, of matrices and of arrays, and the form of the input has a test of its own below.
    left = ("check_estimator_sparse_matrix", "check_estimator_sparse_array")[first % 2]
    _check(models[0], [(model, check) for model, check in checks if name_of(check) != left])


@pytest.mark.slow
@every_learner
@pytest.mark.parametrize("turn", range(1, len(CHECKED_KERNELS)))
def test_scikit_learns_own_checks_with_the_other_kernels(model: Any, y: np.ndarray, turn: int) -> None:
    """Each check of each learner with the kernels that it has not above."""
    first = [case.values[0] for case in ALL].index(model) + turn
    _check(model, in_turn([_checked(model, kernel) for kernel in CHECKED_KERNELS], first))


@every_solver
def test_certificates(model: Any, y: np.ndarray) -> None:
    if isinstance(model, KernelPerceptron | OnlineKernelLogisticRegression | OnlineKernelRegressor):
        # It minimises nothing. Of a perceptron's mistakes there is a bound.
        report = getattr(clone(model).fit(X, y), "certificate_", None)
        assert isinstance(report, MistakeBound) if isinstance(model, KernelPerceptron) else report is None
        return
    certificate = clone(model).fit(X, y).certificate_
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.primal = 0.0
    assert certificate.gap == certificate.primal - certificate.dual
    if isinstance(model, KernelLMS):
        # Its steps are few on purpose.
        assert 0 <= certificate.gap == certificate.primal and certificate.kkt_violation <= model.tol
    else:
        stochastic = isinstance(model, KernelSGDClassifier)
        assert certificate.gap >= 0 and certificate.relative_gap < (model.tol if stochastic else 1e-6)
        assert stochastic or (certificate.gap < 1e-6 and certificate.kkt_violation < 1e-6)
    assert certificate.iterations >= 0 and certificate.seconds > 0
    assert certificate.peak_bytes >= 8 * len(X) ** 2
    assert certificate.status.name in ("converged", "direct")


@pytest.mark.slow
@supervised
def test_a_grid_over_the_kernels_parameters(model: Any, y: np.ndarray) -> None:
    scales = [0.5, 2.0]
    if hasattr(model, "optimizer"):
        # Else the values of the grid are no more than where a search begins.
        model = clone(model).set_params(optimizer=None)
    search = GridSearchCV(clone(model).set_params(kernel=RBF(1.0)), {"kernel__length_scale": scales}, cv=2)
    search.fit(X, y)
    best = search.best_params_["kernel__length_scale"]
    assert search.best_estimator_.kernel_ == RBF(best)
    alone = GridSearchCV(clone(model), {"kernel": [RBF(s) for s in scales]}, cv=2, refit=False).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    name = type(model).__name__.lower()
    steps = make_pipeline(StandardScaler(), clone(model).set_params(kernel=2.0 * RBF(1.0) + Linear()))
    grid = {f"{name}__kernel__left__kernel__length_scale": scales, f"{name}__kernel__left__factor": [3.0]}
    grid_search = GridSearchCV(steps, grid, cv=2).fit(X, y)
    assert len(grid_search.cv_results_["params"]) == 2
    # Some learn a factor of each term, which may be zero.
    if not name.startswith("multiplekernelsv"):
        assert grid_search.best_estimator_[-1].kernel_.terms[1] == Linear()


@every_learner
def test_named_columns_reach_the_kernel(model: Any, y: np.ndarray) -> None:
    table = pd.DataFrame(X, columns=["age", "size", "mass"])
    named = clone(model).set_params(kernel=RBF().on("size") * Linear().on(["mass", "age"]) + 1.0).fit(table, y)
    placed = clone(model).set_params(kernel=RBF().on(1) * Linear().on([2, 0]) + 1.0).fit(X, y)
    np.testing.assert_array_equal(bits(named, table)[1], bits(placed)[1])
    with pytest.raises(ParameterError, match="no column 'hight'; the columns are age, size, mass"):
        clone(model).set_params(kernel=RBF().on("hight")).fit(table, y)


@every_learner
def test_the_form_of_the_input_does_not_matter(model: Any, y: np.ndarray) -> None:
    fitted = clone(model).fit(X, y)
    fixed, targets = np.asfortranarray(X), y.copy()
    fixed.setflags(write=False)
    targets.setflags(write=False)
    # A list and an array of objects become the same array before any learner sees them.
    number = [case.values[0] for case in ALL].index(model)
    for rows in (fixed, np.repeat(X, 2, axis=0)[::2], X.tolist() if number % 2 else X.astype(object)):
        assert_same_bits(clone(model).fit(rows, targets), fitted)
    for form in ((sp.csr_matrix, sp.coo_array), (sp.csr_array, sp.csc_matrix))[number // 2 % 2]:
        sparse = clone(model).fit(form(X), y)
        np.testing.assert_allclose(bits(sparse, form(X))[1], bits(fitted)[1], rtol=1e-8, atol=1e-8)


@every_learner
@pytest.mark.parametrize("survive", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(model: Any, y: np.ndarray, survive: Any) -> None:
    fitted = clone(model).set_params(kernel=Matern(nu=1.5) + Linear()).fit(X, y)
    assert_same_bits(survive(fitted), fitted)


@every_learner
def test_joblib_files(model: Any, y: np.ndarray, tmp_path: Any) -> None:
    fitted = clone(model).fit(X, y)
    joblib.dump(fitted, tmp_path / "model.joblib")
    assert_same_bits(joblib.load(tmp_path / "model.joblib", mmap_mode="r"), fitted)


@every_learner
def test_fits_at_the_same_time_do_not_disturb_each_other(model: Any, y: np.ndarray) -> None:
    expected = clone(model).fit(X, y)
    fitted: list[Any] = [clone(model) for _ in range(3)]
    threads = [threading.Thread(target=lambda m=m: m.fit(X, y)) for m in fitted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for other in fitted:
        assert_same_bits(other, expected)


@pytest.mark.slow
def test_other_processes_after_fits_in_this_one() -> None:
    cases = [case.values for case in ALL]
    expected = []
    for model, y in cases:
        rows = np.tile(X, (6, 1))
        bits(clone(model).fit(rows, np.tile(y, 6)), rows)
        expected.append(refitted(model, y))
    results = [joblib.Parallel(n_jobs=2)(joblib.delayed(refitted)(*case) for case in cases)]
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results.append(pool.starmap_async(refitted, cases, chunksize=1).get(100))
    for result in results:
        for case, fitted, other in zip(ALL, expected, result, strict=True):
            for a, b in zip(fitted, other, strict=True):
                np.testing.assert_array_equal(a, b, str(case.id))


@every_learner
def test_a_function_is_called_on_blocks_and_by_one_job_in_the_thread_of_the_caller(model: Any, y: np.ndarray) -> None:
    sizes: list[tuple[int, int]] = []
    threads_used: set[int] = set()
    patience = 0.0

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sizes.append((len(A), len(B)))
        threads_used.add(threading.get_ident())
        until = time.monotonic() + patience
        # Nobody else comes for single pairs and for the small blocks with which a fit begins.
        while min(len(A), len(B)) > 50 and len(threads_used) < 2 and time.monotonic() < until:
            time.sleep(0.001)
        return np.exp(0.25 * (A @ B.T))

    rows, targets = many_rows(model), np.tile(y, 6)

    def assert_blocks() -> None:
        # Once or twice all pairs, by the block; row by row it would be hundreds of calls.
        assert len(sizes) < 60
        if isinstance(model, SVC):
            # The blocks of the two classes, whose corner is a tile's at the most.
            counts = [int((targets == label).sum()) for label in np.unique(targets)]
            assert {(min(a, 512), min(b, 512)) for a in counts for b in counts} <= set(sizes)
        else:
            assert (512, 512) in sizes
        sizes.clear()

    one = clone(model).set_params(kernel=kernel, n_jobs=1).fit(rows, targets)
    weights, _ = bits(one, rows)
    assert_blocks()
    assert threads_used == {threading.get_ident()}
    threads_used.clear()
    # Whoever comes first waits for another to wake.
    patience = 0.05
    several = clone(one).set_params(n_jobs=3).fit(rows, targets)
    if not isinstance(model, KernelNeighborsClassifier | KernelNeighborsRegressor):
        assert len(threads_used) > 1
    np.testing.assert_allclose(bits(several, rows)[0], weights, rtol=1e-6, atol=1e-8)
    assert_blocks()


@every_worker
def test_a_hook_hears_of_the_work_and_may_cancel_it(model: Any, y: np.ndarray) -> None:
    rows, targets = np.tile(X, (6, 1)) + np.linspace(0, 1, 540)[:, None], np.tile(y, 6)
    heard = []
    with mercer.on_progress(lambda *what: heard.append(what)):
        fitted = clone(model).fit(rows, targets)
    # Of a search nobody can say how long it takes.
    assert heard and all(total is None or done <= total for _, done, total in heard)

    class Cancelled(Exception):
        pass

    def cancel(*what: Any) -> None:
        raise Cancelled

    before = memory._process.reserved
    with mercer.on_progress(cancel), pytest.raises(Cancelled):
        clone(model).fit(rows, targets)
    assert memory._process.reserved == before
    assert_same_bits(clone(model).fit(rows, targets), fitted)


def _broken(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.where(A @ B.T > 2, np.nan, 1.0)


def _with(value: Any, dtype: Any = float) -> np.ndarray:
    rows = X.astype(dtype)
    rows[4, 1] = value
    return rows


@every_learner
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (_with(np.nan), r"Input X contains NaN.*SimpleImputer"),
        (sp.csr_matrix(_with(np.nan)), "Input X contains NaN"),
        (_with(np.inf), r"Input X contains infinity.*Drop those rows or replace"),
        (_with("tall", object), r"could not convert string to float: 'tall'.*OneHotEncoder"),
        (pd.DataFrame({"a": ["tall"] * 90}), r"could not convert string to float.*OneHotEncoder"),
        (np.empty((0, 3)), r"0 sample\(s\).*needs rows and columns"),
        (np.empty((90, 0)), r"0 feature\(s\).*needs rows and columns"),
        (X[:, 0], r"Expected 2D array.*reshape"),
        (X + 1j, "Complex data not supported"),
    ],
)
def test_rows_that_cannot_be_used(model: Any, y: np.ndarray, rows: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"(?s){words}"):
        clone(model).fit(rows, [] if rows.shape[0] == 0 else y)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@supervised
def test_targets_that_cannot_be_used(model: Any, y: np.ndarray) -> None:
    with pytest.raises(DataError, match="requires y to be passed, but the target y is None"):
        clone(model).fit(X, None)
    with pytest.raises(DataError, match="Input y contains NaN"):
        clone(model).fit(X, np.where(NUMBERS > 0.5, np.nan, 1.0))
    with pytest.raises(DataError, match=r"(40.*90.*)?(one target for each row|one label for each row)"):
        clone(model).fit(X[:40], y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@every_estimator
def test_other_columns_at_predict(model: Any, y: np.ndarray) -> None:
    table = pd.DataFrame(X, columns=["age", "size", "mass"])
    fitted = clone(model).fit(table, y)
    with pytest.raises(DataError, match=r"X has 2 features.*expecting 3.*that the model was fitted on"):
        fitted.predict(table[["age", "size"]].to_numpy())
    with pytest.raises(DataError, match=r"(?s)names should match.*unseen at fit time.*- weight.*feature_names_in_"):
        fitted.predict(table.rename(columns={"mass": "weight"}))
    with pytest.raises(DataError, match=r"(?s)same order.*feature_names_in_"):
        fitted.predict(table[["mass", "size", "age"]])
    np.testing.assert_array_equal(
        fitted.predict(table[["mass", "size", "age"]][list(fitted.feature_names_in_)]), fitted.predict(table)
    )


@every_estimator
@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"kernel": "rbff"}, ParameterError, "there is no kernel 'rbff'; did you mean 'rbf'"),
        ({"kernel": 3}, ParameterError, "but is 3; names are linear"),
        ({"kernel": RBF}, ParameterError, r"the class RBF; pass a kernel, such as RBF\(\)"),
        ({"kernel": _broken}, KernelValueError, r"_broken\) returned nan"),
        ({"kernel": lambda A, B: A[:, 0]}, KernelValueError, "one value for every pair"),
        ({"kernel": RBF([1.0, 2.0])}, DataError, "2 length scales, but X has 3 columns"),
        ({"gamma": -1.0, "kernel": "rbf"}, ParameterError, "gamma must be a finite number above 0.*is -1.0"),
        ({"gamma": -1.0, "kernel": "linear"}, ParameterError, "gamma must be a finite number above 0.*is -1.0"),
        ({"gamma": "big", "kernel": RBF(1.0)}, ParameterError, "gamma must be a number, 'scale' or 'auto'.*is 'big'"),
        ({"gamma": np.nan, "kernel": "precomputed"}, ParameterError, "gamma must be a finite number above 0.*is nan"),
        ({"degree": -3, "kernel": "linear"}, ParameterError, "degree must be a finite number of 0 or more, but is -3"),
        ({"coef0": np.inf, "kernel": "linear"}, ParameterError, "coef0 must be a finite number, but is inf"),
        ({"n_jobs": 0}, ParameterError, "n_jobs=0 is not a number of threads"),
        ({"kernel": "precomputed"}, DataError, r"must be square.*shape \(90, 3\)"),
    ],
)
def test_kernels_and_parameters_that_are_refused(
    model: Any, y: np.ndarray, parameters: dict, error: type[MercerError], words: str
) -> None:
    with pytest.raises(error, match=words):
        clone(model).set_params(**parameters).fit(X, y)


@every_estimator
def test_a_precomputed_matrix_that_is_no_kernel_matrix(model: Any, y: np.ndarray) -> None:
    K = RBF(1.0)(X)
    K[3, 8] += 0.5
    given = clone(model).set_params(kernel="precomputed")
    with pytest.raises(DataError, match=r"not symmetric: K\[(3, 8|8, 3)\] = .*K \+ K.T"):
        given.fit(K, y)


@every_learner
def test_a_budget_that_is_too_small(model: Any, y: np.ndarray) -> None:
    evaluated: list[int] = []

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        evaluated.append(len(A) * len(B))
        return A @ B.T

    with mercer.config(memory="10KiB"), pytest.raises(MemoryBudgetError, match=r"10\.0 KiB .*left.*mercer\.config"):
        clone(model).set_params(kernel=kernel).fit(X, y)
    # Single entries, to see that kernel and rows go together, are all that comes before the refusal.
    assert max(evaluated, default=0) <= 1 and len(evaluated) <= 2


def test_conditionally_positive_kernels_where_the_constraint_makes_them_valid() -> None:
    plain = SVC(kernel=NegativeDistance()).fit(X, CLASSES)
    centred = SVC(kernel=NegativeDistance().centered(X)).fit(X, CLASSES)
    np.testing.assert_allclose(plain.decision_function(X), centred.decision_function(X), atol=1e-8)
    assert plain.certificate_.status.name == "converged"
    assert plain.certificate_.primal == pytest.approx(centred.certificate_.primal, rel=1e-9)
    given = SVC(kernel="precomputed").fit(NegativeDistance()(X), CLASSES)
    np.testing.assert_array_equal(given.support_, plain.support_)
    with pytest.raises(ParameterError, match=r"only conditionally positive.*kernel\.centered\(X\)"):
        KernelRidge(kernel=NegativeDistance(), allow_indefinite=False).fit(X, NUMBERS)
    assert KernelRidge(kernel=NegativeDistance().centered(X)).fit(X, NUMBERS).score(X, NUMBERS) > 0.5
