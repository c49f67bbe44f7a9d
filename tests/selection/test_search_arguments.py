"""Arguments and data that a search without a grid cannot use raise before any candidate is evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, KernelRidge, KernelSearchCV
from mercer._errors import DataError, ParameterError
from mercer.kernels import RBF, Spectrum
from mercer.selection.evaluated import Evaluator
from search_cases import curve, two_classes

X, LABELS = two_classes(40)
NUMBERS = curve(40)[1]
LEARNERS = {"classes": (SVC(), LABELS), "numbers": (SVR(), NUMBERS), "ridge": (KernelRidge(kernel="rbf"), NUMBERS)}


@pytest.fixture(autouse=True)
def _no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test evaluates a candidate."""
    monkeypatch.setattr(Evaluator, "evaluate", lambda *_: pytest.fail("a candidate was evaluated"))


def without(value: Any) -> np.ndarray:
    weight = np.ones(40, dtype=object)
    weight[3] = value
    return weight if isinstance(value, str) else weight.astype(float)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (without(-1.0), "sample_weight has 1 negative values"),
        (without(np.nan), "sample_weight contains NaN"),
        (without(np.inf), "sample_weight contains infinity"),
        (np.array(["a"] * 40), "sample_weight must hold numbers, but holds 'a'"),
        (np.ones(39), "sample_weight has 39 values, and X has 40 rows"),
        (np.zeros(40), "sample_weight is zero for each of the 40 rows"),
        (np.ones((40, 1)), r"sample_weight must be one number for each row, but has the shape \(40, 1\)"),
        (np.r_[np.zeros(20), np.ones(20)], "the training part of fold 1 has 0 rows with a sample_weight above 0"),
    ],
    ids=["negative", "nan", "infinite", "text", "length", "zero", "columns", "zero in a fold"],
)
def test_weights(learner: str, weight: np.ndarray, message: str) -> None:
    estimator, y = LEARNERS[learner]
    with pytest.raises(DataError, match=message):
        KernelSearchCV(estimator, cv=KFold(2)).fit(X, y, sample_weight=weight)
    with pytest.raises(DataError, match=message):
        pipeline = make_pipeline(StandardScaler(), estimator)
        name = f"{pipeline.steps[-1][0]}__sample_weight"
        KernelSearchCV(pipeline, cv=KFold(2)).fit(X, y, **{name: weight})


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kernels", [None, ["rbf", "linear"]], ids=["one kernel", "two kernels"])
def test_rows(learner: str, kernels: Any, tmp_path: Any) -> None:
    estimator, y = LEARNERS[learner]
    gaps = X.copy()
    gaps[3, 0] = np.nan
    with pytest.raises(DataError, match="Input X contains NaN"):
        KernelSearchCV(estimator, kernels=kernels, log=tmp_path / "t.jsonl").fit(gaps, y)
    assert not (tmp_path / "t.jsonl").exists()
    with pytest.raises(DataError, match=r"requires X to be passed, but the rows X are None"):
        KernelSearchCV(estimator, kernels=kernels).fit(None, y)


@pytest.mark.parametrize(
    ("learner", "y", "message"),
    [
        ("numbers", np.array(["a"] * 40), "SVR learns numbers, but y holds 'a'"),
        ("ridge", pd.Series(["p", "n"] * 20, dtype="category"), "KernelRidge learns numbers, but y holds 'p'"),
        ("numbers", np.c_[NUMBERS, NUMBERS], "y should be a 1d array"),
        ("numbers", np.r_[NUMBERS[:39], np.nan], "y contains NaN"),
        ("ridge", NUMBERS[:30], "inconsistent numbers of samples"),
        ("classes", LABELS[:30], "X has 40 rows and y has 30 labels"),
        ("classes", np.c_[LABELS, LABELS], "y should be a 1d array"),
        ("classes", np.zeros(40), "one class only, 0.0"),
        ("classes", NUMBERS, "Unknown label type"),
        ("classes", [None, *LABELS[1:].tolist()], "1 labels are missing"),
    ],
    ids=["text", "categories", "columns", "nan", "few", "few labels", "labels", "one class", "quantities", "missing"],
)
def test_targets(learner: str, y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        KernelSearchCV(LEARNERS[learner][0], cv=2).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log": 3}, "log must be the name of a file, or None, but is 3"),
        ({"log": ""}, "log must be the name of a file, or None, but is ''"),
        ({"random_state": "a"}, "random_state must be a whole number of 0 or more, .* but is 'a'"),
        ({"random_state": -1}, "random_state must be .* but is -1"),
        ({"time_budget": "x"}, "time_budget must be a number of seconds above 0, but is 'x'"),
        ({"cv": 1}, "cv must be a whole number of folds from 2 on, .* but is 1"),
        ({"cv": True}, "cv must be .* but is True"),
        ({"cv": 2.5}, "cv must be .* but is 2.5"),
        ({"cv": "five"}, "cv must be .* but is 'five'"),
        ({"kernels": []}, r"kernels must be a list of at least one kernel, .* but is \[\]"),
        ({"kernels": 3}, "kernels must be a list .* but is 3"),
        ({"kernels": "rbf"}, "kernels must be a list .* but is 'rbf'"),
        ({"kernels": RBF(1.0)}, r"kernels must be a list .* but is RBF\(1.0\)"),
        ({"kernels": ["nonsense"]}, r"kernels\[0\]: there is no kernel 'nonsense'"),
        ({"kernels": ["rbf", "nonsense"]}, r"kernels\[1\]: there is no kernel 'nonsense'"),
        ({"kernels": ["rbf", RBF]}, r"kernels\[1\]: kernel is the class RBF; pass a kernel"),
        ({"kernels": [3]}, r"kernels\[0\]: kernel must be a name, .* but is 3"),
        ({"parameters": 3}, "parameters must be a list of some of C, gamma, kernel, but is 3"),
        ({"parameters": "C"}, "parameters must be a list of some of C, gamma, kernel, but is 'C'"),
        ({"parameters": []}, r"nothing to search for SVC\(\): parameters=\[\] leaves out all that could be searched"),
        ({"parameters": ["C", "kernel"]}, "parameters holds 'kernel', .* but kernel is 'rbf'. Pass 'gamma'"),
        ({"scoring": "acuracy"}, "there is no metric 'acuracy' for scoring; did you mean 'accuracy'"),
        ({"scoring": "nonsense"}, "there is no metric 'nonsense' for scoring"),
        ({"n_jobs": "x"}, "n_jobs='x' is not a number of threads"),
    ],
    ids=str,
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        KernelSearchCV(SVC(), **{"cv": 2, **arguments}).fit(X, LABELS)


EVERY = np.arange(40)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "cv has no folds"),
        ([(EVERY, [])], "the test part of fold 0 has no rows"),
        ([([], EVERY)], "the training part of fold 0 has no rows"),
        ([(np.arange(50), [1, 2])], "the training part of fold 0 must be row numbers below 40"),
        ([(EVERY, [0.5, 1.5])], "the test part of fold 0 must be row numbers below 40"),
        ([1, 2, 3], "cv must give pairs of training and test rows, but fold 0 is 1"),
        (41, "40 rows cannot be split by cv=41: .*Use fewer folds, or add rows"),
        (GroupKFold(2), r"cannot be split by cv=GroupKFold.*Pass groups to fit"),
    ],
    ids=["none", "no test", "no training", "beyond", "fractions", "no pairs", "many", "groups"],
)
def test_folds(cv: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        KernelSearchCV(SVC(), cv=cv).fit(X, LABELS)


@pytest.mark.parametrize(("rows", "cv"), [(3, 2), (5, 5), (12, LeaveOneOut())], ids=["3", "5", "each"])
def test_a_single_held_out_row_has_no_r2(rows: int, cv: Any) -> None:
    with pytest.raises(DataError, match=r"is R\^2, which needs two held-out rows, but the fold has one\. Use fewer"):
        KernelSearchCV(KernelRidge(kernel="rbf"), cv=cv).fit(X[:rows], NUMBERS[:rows])


@pytest.mark.parametrize("kernels", [None, ["rbf", "linear"]], ids=["one kernel", "two kernels"])
def test_a_table_with_text_names_what_takes_it(kernels: Any) -> None:
    table = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(t=["u", "v"] * 20)
    with pytest.raises(DataError, match=r"'u'.*TabularRegressor, TabularClassifier, kernels on columns, such as"):
        KernelSearchCV(SVC(), kernels=kernels).fit(table, LABELS)


@pytest.mark.parametrize(
    ("kernel", "size"), [("rbf", 1e-300), ("rbf", 1e-160), ("rbf", 1e160), (RBF(1.0), 1e-300), (RBF(1.0), 1e160)]
)
def test_rows_whose_distances_overflow(kernel: Any, size: float) -> None:
    with pytest.raises(DataError, match=r"distances between the rows of X leave the range of float64.*Scale the col"):
        KernelSearchCV(KernelRidge(kernel=kernel)).fit(X * size, NUMBERS)


@pytest.mark.parametrize(
    ("size", "message"), [(1e-300, "y differs by at most"), (1e300, "y reaches"), (1e200, "y reaches")]
)
@pytest.mark.parametrize("learner", ["numbers", "ridge"])
def test_targets_whose_squares_overflow(learner: str, size: float, message: str) -> None:
    with pytest.raises(DataError, match=f"{message} .*e.{abs(int(np.log10(size)))}"):
        KernelSearchCV(LEARNERS[learner][0]).fit(X, NUMBERS * size)


@pytest.mark.parametrize("kernel", [Spectrum(2), "precomputed"], ids=str)
def test_one_of_several_kernels_that_cannot_take_the_rows(kernel: Any) -> None:
    with pytest.raises(DataError, match=r"kernels\[1\], .* cannot be used with the rows: "):
        KernelSearchCV(SVC(), kernels=["rbf", kernel], cv=2).fit(X, LABELS)


@pytest.mark.parametrize("scoring", ["neg_log_loss", make_scorer(log_loss, response_method="predict_proba")])
def test_a_metric_of_probabilities_that_the_learner_lacks(scoring: Any) -> None:
    with pytest.raises(ParameterError, match="needs predict_proba, which SVC does not have with these parameters"):
        KernelSearchCV(make_pipeline(StandardScaler(), SVC()), scoring=scoring).fit(X, LABELS)
