"""The function ``f(x) = sum_i a_i k(z_i, x) + b`` whose value at a row decides, and the row as its kernel sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Positions, Vector
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects, short
from mercer.data.vectors import column_names
from mercer.data.words import listing
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.kernel_sgd import KernelSGDClassifier
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.svm.on_landmarks import LandmarkPairs
from mercer.estimators.svm.one_vs_one import PairExpansion, pair_values
from mercer.estimators.table import TableModel
from mercer.estimators.tabular.base import TabularModel
from mercer.explain.result import Part
from mercer.explain.split import Columns
from mercer.kernels import Linear
from mercer.selection.layers import require_fitted

Outputs = Literal["classes", "pairs", "values"]
"""A function for each class (one for two classes), for each pair of classes, or for each target."""


@dataclass(frozen=True, eq=False)
class Explained:
    """A model and one row: the functions of all outputs, and the one that is explained.

    Parameters
    ----------
    functions : KernelExpansion
        All functions, over the same rows.
    row : array, CSR, Objects or MixedRows of one row
    columns : Columns
        Of the rows, if they have any.
    origin : ndarray of int or None
        The rows of the fit that the rows of the functions are; None if these are coefficients of columns.
    number : int
        The function that is explained.
    sign : float
        -1 for a pair of classes that is requested in the other order.
    output : str
        What its value is for.
    trend : list of (Part, float)
        What a mean function of the row adds beside the intercept.
    places : list of ndarray or None
        The positions in the row of what each column was encoded as, if the row is an encoded one of a table.
    """

    functions: KernelExpansion
    row: Any
    columns: Columns
    origin: Any
    number: int = 0
    sign: float = 1.0
    output: str = ""
    trend: Sequence[tuple[Part, float]] = ()
    places: Sequence[Positions] | None = None

    @property
    def weights(self) -> Vector:
        """Coefficients of the rows."""
        return self.sign * np.asarray(self.functions.dual_coef[self.number], dtype=np.float64)

    @property
    def intercept(self) -> float:
        offsets = np.broadcast_to(self.functions.offsets, (len(self.functions.dual_coef),))
        return self.sign * float(offsets[self.number])

    def values(self, rows: Any) -> Vector:
        """Return the function at rows like ``row``, without the mean function."""
        return self.sign * self.functions.values(rows, np.float64)[:, self.number]


def explained(model: Any, row: Any, output: Any) -> Explained:
    """Return the function of a fitted model that decides about a row.

    Raises
    ------
    ParameterError
        If the model has no such function, or lacks the requested output.
    DataError
        If the row is not one row of what the model was fitted to.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    require_fitted(model, "model")
    if hasattr(model, "best_estimator_"):
        return explained(model.best_estimator_, row, output)
    if hasattr(model, "steps"):
        return _of_pipeline(model, row, output)
    if isinstance(model, TableModel):
        return _of_table(model, row, output)
    if isinstance(model, TabularModel):
        return _of_encoded(model, row, output)
    rows = _one_row(model._new_rows(_wrapped(model, row)) if hasattr(model, "_new_rows") else None, model)
    functions = _in_double(_functions(model))
    names = getattr(model, "feature_names_in_", None)
    problem = Explained(functions, _double(rows), _columns(rows, names), _origin(model, functions))
    return _with_trend(model, _chosen(model, problem, output))


def _of_pipeline(model: Any, row: Any, output: Any) -> Explained:
    steps = [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
    seen = row if _is_table(row) or not steps else [row]
    for step in steps:
        seen = step.transform(seen)
    problem = explained(model.steps[-1][1], seen, output)
    if not steps or column_names(seen) is not None:
        return problem
    try:
        names = tuple(str(name) for name in model[:-1].get_feature_names_out())
    except (AttributeError, ValueError, TypeError):
        # Not all transformers name what they return.
        return problem
    return replace(problem, columns=Columns.numbered(names)) if len(names) == len(problem.columns.names) else problem


def _of_table(model: TableModel, row: Any, output: Any) -> Explained:
    """In the units of the target; columns are named as those of the table."""
    encoded = model.encoder_.transform(row)
    problem = explained(model.estimator_, encoded, output)
    names = tuple(str(name) for name in getattr(model.encoder_, "feature_names_", ()))
    if len(names) == len(problem.columns.names):
        problem = replace(problem, columns=Columns.numbered(names))
    if is_classifier(model.estimator_):
        return problem
    scale, functions = float(model.target_scale_), problem.functions
    scaled = replace(
        functions, dual_coef=scale * functions.dual_coef, offsets=scale * functions.offsets + model.target_mean_
    )
    trend = [(part, scale * value) for part, value in problem.trend]
    return replace(problem, functions=scaled, trend=trend)


def _of_encoded(model: TabularModel, row: Any, output: Any) -> Explained:
    """Columns are those of the table, each of which may be several of the encoded row."""
    features, gaps = model._encoded(_as_table(row))
    _one_row(features, model)
    names = tuple(map(str, model.encoder_.names_))
    if gaps is not None:
        new = listing([name for name, at in zip(names, model._places, strict=True) if gaps.missing[0, at].any()])
        raise DataError(
            f"the row has no entry in {new}, where every row of the fit has one: the prediction is an average over "
            "what it may be. Fill it in to explain what the others contribute."
        )
    problem = Explained(
        _in_double(_functions(model)), _double(features), Columns.numbered(names), None, places=model._places
    )
    return _chosen(model, problem, output)


def _is_table(row: Any) -> bool:
    """Whether it is rows already, and not the entries of one."""
    array = isinstance(row, np.ndarray) and row.ndim == 2
    frame = hasattr(row, "iloc") and len(row.shape) == 2
    return array or frame or sp.issparse(row) or isinstance(row, (Objects, MixedRows))


def _wrapped(model: Any, row: Any) -> Any:
    """The row as rows: a table of one row as it is, and anything else in a list."""
    kernel: Any = getattr(model, "kernel_", None)
    if isinstance(row, (Objects, MixedRows)) or sp.issparse(row):
        return row
    kind = "vectors" if kernel is None or isinstance(kernel, tuple) else kernel.kind_of_rows()
    if isinstance(kind, type):
        # An array of two axes may be a series, an image or a bag.
        return [row]
    return _as_table(row)


def _as_table(row: Any) -> Any:
    if hasattr(row, "to_frame") and hasattr(row, "index"):
        # A row of a data frame.
        return row.to_frame().T.infer_objects()
    return row if _is_table(row) else [row]


def _one_row(rows: Any, model: Any) -> Any:
    if rows is None:
        _raise_no_decision_value(model)
    if rows.shape[0] != 1:
        raise DataError(f"row must be one row, but there are {rows.shape[0]}; pass one of them, such as X[:1].")
    return rows


def _double(rows: Any) -> Any:
    return rows.astype(np.float64) if isinstance(rows, np.ndarray) or sp.issparse(rows) else rows


def _in_double(functions: KernelExpansion) -> KernelExpansion:
    return replace(functions, rows=_double(functions.rows))


def _columns(rows: Any, names: Any) -> Columns:
    if isinstance(rows, Objects):
        return Columns((), ())
    if names is None and isinstance(rows, MixedRows):
        names = rows.names
    count = rows.shape[1]
    return Columns.numbered(tuple(f"x{j}" for j in range(count)) if names is None else tuple(map(str, names)))


def _raise_no_decision_value(model: Any) -> Any:
    raise ParameterError(
        f"{type(model).__name__} has no decision value that is a sum over rows, f(x) = sum_i a_i k(x_i, x) + b, to be "
        "shared among parts. Use a learner with one kernel that decides by such a value (SVC, SVR, OneClassSVM, "
        "KernelRidge, KernelLogisticRegression, GaussianProcessRegressor, ...), or "
        "sklearn.inspection.permutation_importance."
    )


def has_decision_value(learner: Any) -> bool:
    """Whether a learner decides by values that are sums over rows, as one with a single kernel does.

    >>> from mercer import SVC, KernelNeighborsClassifier
    >>> has_decision_value(SVC()), has_decision_value(KernelNeighborsClassifier())
    (True, False)
    """
    decides = is_classifier(learner) or is_regressor(learner) or is_outlier_detector(learner)
    return decides and hasattr(type(learner), "_expansion")


def _functions(model: Any) -> KernelExpansion:
    if not has_decision_value(model):
        _raise_no_decision_value(model)
    if _is_primal(model):
        # One row for each function: its coefficients.
        w = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        return KernelExpansion(Linear(), w, np.eye(len(w)), np.ravel(model.intercept_))
    try:
        functions = model._expansion
    except AttributeError as error:
        raise ParameterError(f"{type(model).__name__} has no single function to explain: {error}") from error
    if isinstance(functions, PairExpansion) and len(model.classes_) > 2:
        return _pairs(functions)
    offsets = np.broadcast_to(np.asarray(functions.offsets, dtype=np.float64), (len(functions.dual_coef),))
    # Pairs add methods that need all of them.
    return KernelExpansion(
        functions.kernel, functions.rows, functions.dual_coef, offsets, functions.columns, functions.n_jobs
    )


def _is_primal(model: Any) -> bool:
    return isinstance(model, KernelSGDClassifier) and model._primal


def _pairs(functions: PairExpansion) -> KernelExpansion:
    """The coefficients of all support vectors in the function of each pair of classes."""
    count = functions.dual_coef.shape[1]

    def placed(part: slice, V: Matrix) -> Matrix:
        out = np.zeros((count, V.shape[1]))
        out[part] = V
        return out

    linear = replace(functions.pairs, intercept=np.zeros(len(functions.pairs.intercept)))
    coefficients = np.ascontiguousarray(pair_values(placed, linear, count).T)
    return KernelExpansion(
        functions.kernel, functions.rows, coefficients, functions.pairs.intercept, functions.columns, functions.n_jobs
    )


def _origin(model: Any, functions: KernelExpansion) -> Any:
    if _is_primal(model):
        return None
    count = functions.dual_coef.shape[1]
    for name in ("landmark_indices_", "support_"):
        positions = vars(model).get(name)
        if positions is not None and len(positions) == count:
            return np.asarray(positions)
    return np.arange(count)


def _chosen(model: Any, problem: Explained, output: Any) -> Explained:
    """The function of the requested output, or of the one that the model decides for."""
    count = len(problem.functions.dual_coef)
    outputs = _outputs(model, count)
    if outputs == "pairs":
        return _pair(model, problem, model.classes_.tolist(), output)
    if outputs == "classes":
        return (_of_two if count == 1 else _class)(problem, model.classes_.tolist(), output)
    if count == 1 and output in (None, 0):
        return problem
    return replace(problem, number=_target(count, output), output=f"output {_target(count, output)}")


def outputs_of(learner: Any) -> Outputs:
    """Return what the functions of a fitted learner with a decision value are for, and ``output`` names.

    Raises
    ------
    ParameterError
        If the learner has no such functions.

    Examples
    --------
    >>> from mercer import SVC
    >>> X = [[0.0], [1.0], [2.0]]
    >>> outputs_of(SVC().fit(X, ["a", "b", "b"])), outputs_of(SVC().fit(X, ["a", "b", "c"]))
    ('classes', 'pairs')
    """
    return _outputs(learner, len(_functions(learner).dual_coef))


def _outputs(learner: Any, count: int) -> Outputs:
    classes = getattr(learner, "classes_", None) if is_classifier(learner) else None
    if classes is None:
        return "values"
    if len(classes) > 2 and _is_paired(learner):
        return "pairs"
    return "classes" if count == len(classes) or (count == 1 and len(classes) == 2) else "values"


def _is_paired(model: Any) -> bool:
    return isinstance(model._expansion, (PairExpansion, LandmarkPairs))


def _target(count: int, output: Any) -> int:
    whole = isinstance(output, (int, np.integer)) and not isinstance(output, bool)
    if not whole or not 0 <= output < count:
        there = "0" if count == 1 else f"a whole number from 0 to {count - 1}"
        raise ParameterError(f"output must be {there}, the number of a target, but is {short(output)}.")
    return int(output)


def _of_two(problem: Explained, classes: list[Any], output: Any) -> Explained:
    """Positive for the second class; with the sign changed, for the first."""
    if output is None:
        output = classes[1]
    place = _place(classes, output)
    text = f"{classes[place]} against {classes[1 - place]}"
    return replace(problem, sign=1.0 if place == 1 else -1.0, output=text)


def _class(problem: Explained, classes: list[Any], output: Any) -> Explained:
    if output is None:
        number = int(np.argmax(problem.functions.values(problem.row, np.float64)[0]))
    else:
        number = _place(classes, output)
    return replace(problem, number=number, output=str(classes[number]))


def _place(classes: list[Any], label: Any) -> int:
    known = [number for number, own in enumerate(classes) if type(label) is not bool or type(own) is bool]
    match = next((number for number in known if _same(classes[number], label)), None)
    if match is None:
        raise ParameterError(f"output must be one of the classes, {listing(map(str, classes))}, but is {short(label)}.")
    return match


def _same(one: Any, other: Any) -> bool:
    return isinstance(other, (str, int, float, np.generic)) and bool(one == other)


def _pair(model: Any, problem: Explained, classes: list[Any], output: Any) -> Explained:
    """Of a pair of classes; by default the predicted one against its closest rival."""
    pairs = list(combinations(range(len(classes)), 2))
    if output is None:
        values = problem.functions.values(problem.row, np.float64)[0]
        first = _place(classes, _predicted(model, problem))
        against = {i + j - first: (v if i == first else -v) for (i, j), v in zip(pairs, values) if first in (i, j)}
        second = min(against, key=lambda other: float(against[other]))
    else:
        if not isinstance(output, (tuple, list)) or len(output) != 2:
            raise ParameterError(
                f"{type(model).__name__} decides between pairs of classes; output must be a pair such as "
                f"{short(tuple(classes[:2]))}, but is {short(output)}."
            )
        first, second = (_place(classes, label) for label in output)
        if first == second:
            raise ParameterError(f"output must be a pair of two different classes, but is {short(output)}.")
    number = pairs.index((min(first, second), max(first, second)))
    sign = 1.0 if first < second else -1.0
    return replace(problem, number=number, sign=sign, output=f"{classes[first]} against {classes[second]}")


def _predicted(model: Any, problem: Explained) -> Any:
    predict: Callable[[Any], Any] = model.predict
    return predict(problem.row).tolist()[0]


def _with_trend(model: Any, problem: Explained) -> Explained:
    """A Gaussian process adds its mean function, in the units of y."""
    if not isinstance(model, GaussianProcessRegressor):
        return problem
    mean = model.mean_coef_
    count = len(problem.functions.dual_coef)
    if mean is None:
        return replace(problem, functions=replace(problem.functions, offsets=np.ravel(model._y_mean)))
    mean = np.asarray(mean).reshape(len(mean), count)
    functions = replace(problem.functions, offsets=mean[0])
    slopes = mean[1:, problem.number]
    trend = [
        (Part("column", name, (j,), "mean function"), float(slopes[j] * problem.row[0, j]))
        for j, name in enumerate(problem.columns.names[: len(slopes)])
    ]
    return replace(problem, functions=functions, trend=trend)
