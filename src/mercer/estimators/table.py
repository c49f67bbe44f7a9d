"""A learner together with the encoding of its table: what ``mercer fit`` makes and a model file holds."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer._registered import command_line_of
from mercer._types import Matrix, RowsLike, Vector
from mercer.data.encoding import TableEncoder
from mercer.data.feature_table import FeatureTable
from mercer.data.fitted import Fitted
from mercer.data.raw_table import RawTable
from mercer.data.schema import Locate, Schema
from mercer.data.squares import r_squared
from mercer.data.statements import Is, Labels, Number
from mercer.data.table import row_place
from mercer.estimators.shared.cross_fit import CrossFitClasses, CrossFitNumbers
from mercer.estimators.shared.intervals import Intervals, PredictionSets, check_coverage
from mercer.estimators.shared.splits import splits_of
from mercer.estimators.table_kernels import by_name, by_position, place
from mercer.kernels.kernel import Kernel


class Together(NamedTuple):
    """Predictions for rows, and what else one pass over the rows gave; None for what was not asked for, or needs more.

    Attributes
    ----------
    predicted : ndarray of shape (n,)
    deviations : ndarray of shape (n,) or None
    intervals : Intervals or None
    probabilities : ndarray of shape (n, k) or None
    """

    predicted: np.ndarray
    deviations: Vector | None = None
    intervals: Intervals | None = None
    probabilities: Matrix | None = None


@dataclass(frozen=True)
class Prepared:
    """A fitted encoding, an estimator whose kernel knows the encoded columns, the encoded rows, the target.

    The target of a regression is ``(y - mean) / scale``.
    """

    encoder: TableEncoder | RawTable
    estimator: Any
    rows: Any
    target: np.ndarray
    mean: float = 0.0
    scale: float = 1.0


def _fits_its_estimator(model: Any) -> bool:
    attributes, inner = vars(model), vars(model.estimator_)
    columns = inner.get("n_features_in_")
    counted = columns is None or columns == len(model.encoder_.feature_names_)
    if is_classifier(model.estimator_):
        return (
            counted and "classes_" in attributes and np.array_equal(attributes["classes_"], inner.get("classes_", []))
        )
    return counted and "classes_" not in attributes and {"target_mean_", "target_scale_"} <= attributes.keys()


def _gives_probabilities(model: Any) -> bool:
    own = hasattr(vars(model).get("estimator_", model.estimator), "predict_proba")
    return own or isinstance(vars(model).get("calibration_"), CrossFitClasses)


def _gives_sets(model: Any) -> bool:
    return isinstance(vars(model).get("calibration_"), CrossFitClasses)


def _calibration_fits(model: Any) -> bool:
    calibration = vars(model).get("calibration_")
    if calibration is None:
        return True
    if is_classifier(model.estimator_):
        return isinstance(calibration, CrossFitClasses) and calibration.fits(model.estimator_, model.classes_)
    return isinstance(calibration, CrossFitNumbers)


def _gives_quantiles(model: Any) -> bool:
    estimator = vars(model).get("estimator_", model.estimator)
    return hasattr(estimator, "predict_quantiles") or "observation" in inspect.signature(estimator.predict).parameters


def _gives_deviations(model: Any) -> bool:
    estimator = vars(model).get("estimator_", model.estimator)
    return not is_classifier(estimator) and "return_std" in inspect.signature(estimator.predict).parameters


def _gives_decisions(model: Any) -> bool:
    return hasattr(vars(model).get("estimator_", model.estimator), "decision_function")


def _has_own_intervals(estimator: Any) -> bool:
    """Whether the estimator knows the rows of its fit, each of which it can leave out."""
    return hasattr(estimator, "interval") and getattr(estimator, "approximation", None) is None


def _gives_intervals(model: Any) -> bool:
    estimator = vars(model).get("estimator_", model.estimator)
    if is_classifier(estimator):
        return False
    return "calibration_" in vars(model) or _has_own_intervals(estimator) or _gives_quantiles(model)


class TableModel(BaseEstimator):
    """Fit any estimator to the columns of a table, and predict for tables with the same columns.

    Numbers are scaled and categories encoded by :class:`~mercer.data.encoding.TableEncoder`. In a regression the target
    is standardised for learning, so that a penalty such as ``alpha`` means the same in any unit, and predictions are in
    the unit of the target. A kernel may name columns of the table, as in ``RBF(2.0).on(["age", "town"])``.
    :class:`~mercer.TabularRegressor` and :class:`~mercer.TabularClassifier` get the columns as they are, by
    :class:`~mercer.data.raw_table.RawTable`.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor of Mercer or scikit-learn; a copy of it is fitted.
    normalize : {"standard", "minmax", "unit", "none"}, default="standard"
        Scaling of numbers.
    impute : {"mean", "median", "most_frequent"}, optional
        How missing values are filled in; by default they are an error.
    target : str, default="y"
        Name of the target.
    roles : dict of str to str, optional
        Columns whose entries are compared as objects, and their kind, as in ``{"message": "text"}``. A kernel on such
        objects that names no column uses the column that contains them.

    Attributes
    ----------
    estimator_ : estimator
        The fitted copy.
    encoder_ : TableEncoder, RawTable or FeatureTable
        The fitted encoding; new tables are checked against ``encoder_.schema_``.
    classes_ : ndarray
        For a classifier: the labels.
    target_mean_, target_scale_ : float
        For a regressor: mean and standard deviation of the target.
    calibration_ : CrossFitNumbers or CrossFitClasses
        After :meth:`calibrate`: what probabilities, intervals and prediction sets are computed from.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.svm import SVC
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 8.0, 9.0], "town": ["Ulm", "Zug", "Ulm", "Zug"]})
    >>> model = TableModel(SVC(), target="price").fit(frame, ["low", "low", "high", "high"])
    >>> model.predict(frame).tolist()
    ['low', 'low', 'high', 'high']
    """

    _fitted = Fitted(
        {"estimator_": Is(BaseEstimator), "encoder_": Is(TableEncoder, RawTable, FeatureTable)},
        {
            "report_": Is(dict),
            "classes_": Labels("k", least=2),
            "target_mean_": Number(),
            "target_scale_": Number(least=float(np.finfo(np.float64).tiny)),
            "calibration_": Is(CrossFitNumbers, CrossFitClasses),
        },
        # What the model can do is read from it.
        parameters={"estimator": Is(BaseEstimator)},
        rules=(
            ("the estimator does not match the encoded columns and the target", _fits_its_estimator),
            ("the calibration does not match the estimator", _calibration_fits),
        ),
    )

    def __init__(
        self,
        estimator: Any,
        normalize: str = "standard",
        impute: str | None = None,
        target: str = "y",
        roles: dict[str, str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.normalize = normalize
        self.impute = impute
        self.target = target
        self.roles = roles

    def fit(self, X: RowsLike, y: ArrayLike, *, schema: Schema | None = None) -> TableModel:
        """Learn the encoding and fit the estimator.

        Parameters
        ----------
        X : pandas.DataFrame, scipy.sparse matrix or array, shape (n, d)
            The columns of an array are called x0, x1, ...
        y : array-like of shape (n,)
            Labels, or numbers for a regressor.
        schema : Schema, optional
            The schema of the table that these rows are a part of; by default that of the rows.

        Raises
        ------
        DataError
            If columns cannot be encoded, or values are missing and ``impute`` is None.
        ParameterError
            If no column contains what the kernel compares, or the estimator encodes tables itself and a column has
            another role than text.
        """
        prepared = self.prepared(X, y, schema=schema)
        estimator = prepared.estimator.fit(prepared.rows, prepared.target)
        return self.take(prepared.encoder, estimator, prepared.mean, prepared.scale)

    def take(self, encoder: TableEncoder | RawTable, estimator: Any, mean: float, scale: float) -> TableModel:
        """Keep an encoding and an estimator that are fitted, the latter to ``(y - mean) / scale`` if that is a number.

        Parameters
        ----------
        encoder : TableEncoder, RawTable or FeatureTable
        estimator : estimator
        mean, scale : float

        Returns
        -------
        self
        """
        self.encoder_, self.estimator_ = encoder, estimator
        if hasattr(self, "calibration_"):
            del self.calibration_
        if is_classifier(estimator):
            self.classes_ = estimator.classes_
        else:
            self.target_mean_, self.target_scale_ = mean, scale
        return self

    def prepared(self, X: RowsLike, y: ArrayLike, *, schema: Schema | None = None) -> Prepared:
        """What ``fit`` with these arguments fits to what; nothing is fitted but the encoding.

        Raises
        ------
        DataError, ParameterError
            As ``fit``.
        """
        encoder = self.encoder().fit(X, schema=schema)
        y = np.asarray(y)
        estimator = self._unfitted()
        if isinstance(encoder, RawTable):
            estimator.set_params(kinds=encoder.kinds_)
        else:
            kernel = place(getattr(estimator, "kernel", None), encoder.schema_)
            if isinstance(kernel, Kernel):
                estimator.set_params(kernel=by_position(kernel, encoder.sources_))
        rows = encoder.transform(X)
        if is_classifier(estimator):
            return Prepared(encoder, estimator, rows, y)
        y = y.astype(np.float64)
        mean, scale = float(y.mean()), float(y.std()) or 1.0
        return Prepared(encoder, estimator, rows, (y - mean) / scale, mean, scale)

    def encoder(self) -> TableEncoder | RawTable:
        """The unfitted encoding that the estimator needs.

        Raises
        ------
        ParameterError
            If the estimator encodes tables itself and a column has another role than text.
        """
        if not command_line_of(type(self.estimator)).raw:
            return TableEncoder(self.normalize, self.impute, self.roles)
        for name, role in (self.roles or {}).items():
            if role != "text":
                raise ParameterError(
                    f"{type(self.estimator).__name__} compares numbers, categories, dates and text, and the column "
                    f"{name!r} holds a {role}; leave it out, or choose another model."
                )
        kinds = self.estimator.kinds
        if kinds is not None and not isinstance(kinds, Mapping):
            return RawTable(kinds)
        return RawTable({**(kinds or {}), **(self.roles or {})} or None)

    def _unfitted(self) -> Any:
        """A copy of the estimator; with ``warm_start`` the one of the previous fit, if it reads tables."""
        estimator: Any = vars(self).get("estimator_")
        raw = command_line_of(type(self.estimator)).raw
        if not raw or not self.estimator.warm_start or type(estimator) is not type(self.estimator):
            return clone(self.estimator)
        given: Any = self.estimator
        return estimator.set_params(**given.get_params(deep=False))

    def calibrate(self, X: RowsLike, y: ArrayLike, *, folds: int | None = 5, random_state: Any = 0) -> TableModel:
        """Learn from rows that a fit has not seen how sure predictions are.

        Parameters
        ----------
        X : pandas.DataFrame, scipy.sparse matrix or array, shape (n, d)
        y : array-like of shape (n,)
            Labels, or numbers in the target's own unit.
        folds : int or None, default=5
            The rows are those of the fit, and so many copies of the estimator are fitted, each without a part of them;
            None for rows that the fit has not seen, as :meth:`calibrate_on` takes them.
        random_state : int, RandomState or None, default=0
            Seed of the parts.

        Raises
        ------
        ParameterError
            If the estimator does not compare rows, because its kernel is precomputed.
        DataError
            If there are fewer rows than folds.
        """
        check_is_fitted(self, "estimator_")
        rows, y = self.encoder_.transform(X), np.asarray(y)
        if folds is None:
            return self.calibrate_on([(rows, y)])
        if is_classifier(self.estimator_):
            splits = splits_of(folds, random_state, len(y), y)
            self.calibration_: Any = CrossFitClasses.of(self.estimator_, rows, y, self.classes_, splits)
        else:
            splits = splits_of(folds, random_state, len(y), None)
            self.calibration_ = CrossFitNumbers.of(self.estimator_, rows, self._standardised(y), splits)
        return self

    def calibrate_on(self, parts: Iterable[tuple[Any, np.ndarray]]) -> TableModel:
        """Learn how sure predictions are from parts of rows that the fit has not seen.

        Parameters
        ----------
        parts : iterable of (rows, y), at least one
            Rows as ``encoder_.transform`` returns them, and labels, or numbers in the target's own unit.
        """
        check_is_fitted(self, "estimator_")
        if is_classifier(self.estimator_):
            self.calibration_ = CrossFitClasses.held_out(self.estimator_, parts, self.classes_)
        else:
            numbers = ((rows, self._standardised(y)) for rows, y in parts)
            self.calibration_ = CrossFitNumbers.held_out(self.estimator_, numbers)
        return self

    def _standardised(self, y: np.ndarray) -> Vector:
        return np.asarray((y.astype(np.float64) - self.target_mean_) / self.target_scale_)

    @property
    def schema_(self) -> Schema:
        """What new tables are checked against."""
        check_is_fitted(self, "encoder_")
        return self.encoder_.schema_

    def predict(self, X: RowsLike, *, source: str = "the table", locate: Locate = row_place) -> np.ndarray:
        """Labels, or numbers in the target's own unit, shape (n,).

        Raises
        ------
        SchemaError
            If columns are missing or renamed, or hold text where numbers are expected.
        """
        check_is_fitted(self, "estimator_")
        return self.predict_encoded(self.encoder_.transform(X, source=source, locate=locate))

    def predict_together(
        self, rows: Any, *, deviations: bool = False, coverage: float | None = None, probabilities: bool = False
    ) -> Together:
        """Predictions, and of what else is asked for all that the estimator gives in the same pass over the rows.

        Parameters
        ----------
        rows : rows
            As ``encoder_.transform`` returns them.
        deviations, probabilities : bool, default=False
        coverage : float, optional
            Of intervals.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1.
        """
        check_is_fitted(self, "estimator_")
        estimator = self.estimator_
        if probabilities and hasattr(estimator, "predict_with_proba"):
            labels, shares = estimator.predict_with_proba(rows)
            return Together(labels, probabilities=shares)
        own = coverage if "calibration_" not in vars(self) else None
        if not hasattr(estimator, "predict_with_quantiles") or not (deviations or own is not None):
            return Together(self.predict_encoded(rows))
        levels = [] if own is None else [(1.0 - check_coverage(own)) / 2.0, (1.0 + own) / 2.0]
        mean, std, ends = estimator.predict_with_quantiles(rows, levels)
        mean, *both = (part * self.target_scale_ + self.target_mean_ for part in (mean, *ends.T))
        intervals = None if own is None else Intervals(both[0], both[1], own, "quantiles of left-out errors", 0.0)
        return Together(mean, std * self.target_scale_, intervals)

    def predict_encoded(self, rows: Any) -> np.ndarray:
        """What ``predict`` returns, for rows as ``encoder_.transform`` returns them, shape (n,)."""
        check_is_fitted(self, "estimator_")
        predicted = self.estimator_.predict(rows)
        if is_classifier(self.estimator_):
            return np.asarray(predicted)
        return np.asarray(predicted) * self.target_scale_ + self.target_mean_

    @available_if(_gives_probabilities)
    def predict_proba(self, X: RowsLike, *, source: str = "the table", locate: Locate = row_place) -> Matrix:
        """Probabilities of the classes, shape (n, k): those of the estimator, or else of its calibration."""
        check_is_fitted(self, "estimator_")
        return self.predict_proba_encoded(self.encoder_.transform(X, source=source, locate=locate))

    @available_if(_gives_probabilities)
    def predict_proba_encoded(self, rows: Any) -> Matrix:
        """What ``predict_proba`` returns, for rows as ``encoder_.transform`` returns them, shape (n, k)."""
        check_is_fitted(self, "estimator_")
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(rows))
        return np.asarray(self.calibration_.probabilities(self.estimator_, rows, self.classes_))

    @available_if(_gives_sets)
    def predict_set(
        self, X: RowsLike, coverage: float = 0.9, *, source: str = "the table", locate: Locate = row_place
    ) -> PredictionSets:
        """Sets of classes that contain those of new rows; only after :meth:`calibrate`.

        Their coverage is guaranteed if the model was calibrated on rows that the fit has not seen.
        """
        rows = self.encoder_.transform(X, source=source, locate=locate)
        sets: PredictionSets = self.calibration_.sets(rows, self.classes_, self.estimator_.predict(rows), coverage)
        return replace(sets, guaranteed=self._guaranteed(coverage))

    def _guaranteed(self, coverage: float) -> float:
        """Folds have seen scales of columns and choices of parameters that all rows had a part in."""
        return coverage if len(self.calibration_.models) == 1 else 0.0

    @available_if(_gives_quantiles)
    def predict_quantiles(
        self, X: RowsLike, quantiles: ArrayLike, *, source: str = "the table", locate: Locate = row_place
    ) -> Matrix:
        """Quantiles of new observations in the target's own unit, shape (n, number of quantiles).

        Only if the estimator has quantiles, or deviations of observations.
        """
        check_is_fitted(self, "estimator_")
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        rows = self.encoder_.transform(X, source=source, locate=locate)
        if hasattr(self.estimator_, "predict_quantiles"):
            values = self.estimator_.predict_quantiles(rows, levels)
        else:
            mean, deviation = self.estimator_.predict(rows, return_std=True, observation=True)
            values = mean[:, None] + deviation[:, None] * ndtri(levels)
        return np.asarray(values) * self.target_scale_ + self.target_mean_

    @available_if(_gives_deviations)
    def predict_std(self, X: RowsLike, *, source: str = "the table", locate: Locate = row_place) -> Vector:
        """Standard deviations of new observations in the target's own unit, shape (n,), if the estimator has them."""
        check_is_fitted(self, "estimator_")
        rows = self.encoder_.transform(X, source=source, locate=locate)
        observed = "observation" in inspect.signature(self.estimator_.predict).parameters
        options = {"observation": True} if observed else {}
        return np.asarray(self.estimator_.predict(rows, return_std=True, **options)[1]) * self.target_scale_

    @available_if(_gives_decisions)
    def decision_function(self, X: RowsLike, *, source: str = "the table", locate: Locate = row_place) -> Matrix:
        """Decision values of the classes, in the shape that the estimator gives them."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.decision_function(self.encoder_.transform(X, source=source, locate=locate)))

    @available_if(_gives_intervals)
    def interval(
        self, X: RowsLike, coverage: float = 0.9, *, source: str = "the table", locate: Locate = row_place
    ) -> Intervals:
        """Intervals of new observations in the target's own unit.

        They are those of the calibration, or else of the estimator, or else its quantiles. Coverage is guaranteed only
        after a calibration on rows that the fit has not seen: scales of columns and of the target, and choices of
        parameters, are those of all rows of the fit.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1.
        """
        check_is_fitted(self, "estimator_")
        coverage = check_coverage(coverage)
        calibrated = "calibration_" in vars(self)
        if calibrated or _has_own_intervals(self.estimator_):
            rows = self.encoder_.transform(X, source=source, locate=locate)
            intervals: Intervals = (self.calibration_ if calibrated else self.estimator_).interval(rows, coverage)
            lower, upper = (
                ends * self.target_scale_ + self.target_mean_ for ends in (intervals.lower, intervals.upper)
            )
            guaranteed = self._guaranteed(coverage) if calibrated else 0.0
            return Intervals(lower, upper, coverage, intervals.method, guaranteed)
        levels = [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0]
        lower, upper = self.predict_quantiles(X, levels, source=source, locate=locate).T
        return Intervals(lower, upper, coverage, "quantiles of the predictive distribution", 0.0)

    @property
    def kernel_(self) -> Any:
        """The fitted kernel, with the names of the table's columns where it is on whole ones."""
        check_is_fitted(self, "estimator_")
        kernel = self.estimator_.kernel_
        if kernel is None or self.schema_.width is not None or isinstance(self.encoder_, RawTable):
            return kernel
        if isinstance(kernel, tuple):
            # One for each class, or each pair of classes.
            return tuple(by_name(one, self.encoder_.sources_) for one in kernel)
        return by_name(kernel, self.encoder_.sources_)

    def score(self, X: RowsLike, y: ArrayLike) -> float:
        """Accuracy of a classifier; ``R^2 = 1 - sum (y - f)^2 / sum (y - mean(y))^2`` of a regressor."""
        y, predicted = np.asarray(y), self.predict(X)
        if is_classifier(self.estimator_):
            return float(np.mean(predicted == y))
        return r_squared(y, predicted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags
