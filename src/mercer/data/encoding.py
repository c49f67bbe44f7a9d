"""From a table to a matrix by scikit-learn's transformers, combined according to the schema of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError, SchemaError
from mercer._optional import optional
from mercer.data.column_entries import date_times, readable
from mercer.data.columns import MixedRows
from mercer.data.fitted import Fitted
from mercer.data.roles import ROLES, read_objects
from mercer.data.schema import Locate, Schema, infer_schema, note_unknown_categories
from mercer.data.statements import Flag, Is, Maybe
from mercer.data.table import LARGEST, MISSING, row_place
from mercer.data.typed_columns import as_kinds
from mercer.data.words import IMPUTE, check_choices
from mercer.engine.memory import require

# Below this share of entries that are not zero, a matrix stays sparse: products of dense tiles are that much
# faster.
_SPARSE_BELOW = 0.1
# Of a sparse matrix: mean, variance and scale of a feature while they are computed; and of a linear model to compare.
_BYTES_PER_FEATURE = 100
_FEWER_COLUMNS = "Use fewer columns, or raise the budget with mercer.config(memory=...)."


def transforms_its_schema(encoder: Any) -> bool:
    """Whether a row of zeros and first categories is transformed to the number of columns that the schema implies."""
    schema, attributes = encoder.schema_, vars(encoder)
    if "transformer_" not in attributes or ("dense_" in attributes) != (schema.width is not None):
        return False
    if attributes["transformer_"] is None:
        return not schema.encoded
    width = schema.encoded_columns - len(schema.roles) - len(schema.indicators)
    if schema.width is not None:
        row: Any = np.zeros((1, width)) if encoder.dense_ else sp.csr_matrix((1, width))
    else:
        firsts = {name: (schema.categories[name] or [""])[0] for name in schema.categories}
        row = optional("pandas", "encoding columns").DataFrame(
            {name: [firsts.get(name, 0.0)] for name in schema.encoded}
        )
        row = row.astype(dict.fromkeys(schema.categories, object))
    matrix = encoder.transformer_.transform(row)
    numbers = matrix.data if sp.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
    return bool(matrix.shape == (1, width) and np.isfinite(numbers).all())


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table into a matrix: scaled numbers, booleans as 0 and 1, one column for each value of a category.

    A table with columns that are compared without encoding, such as text, becomes
    :class:`~mercer.data.columns.MixedRows`: the columns of the matrix, followed by these.

    A category that was not seen in ``fit`` is encoded as zeros in the columns of all known values, and a
    :class:`~mercer.MercerWarning` names it.

    Parameters
    ----------
    normalize : {"standard", "minmax", "unit", "none"}, default="standard"
        For numbers: mean 0 and variance 1; the range [0, 1]; every row to length 1; or unchanged. A sparse matrix is
        scaled but not shifted, so that its zeros stay zeros.
    impute : {"mean", "median", "most_frequent"}, optional
        How missing numbers are filled in; missing booleans get the most frequent value. For each column with gaps there
        is a further one, 1 where an entry was missing, because that may be informative. By default both are an error.
        Missing categories always form a separate category, ``"(missing)"``.
    roles : dict of str to str, optional
        Columns whose entries are compared without encoding, and their roles: ``"text"`` or another key of
        :data:`mercer.data.roles.ROLES`. Their entries must not be missing.

    Attributes
    ----------
    schema_ : Schema
        Names and kinds of the columns.
    transformer_ : sklearn.compose.ColumnTransformer, sklearn.pipeline.Pipeline or None
        The fitted transformers (a pipeline for sparse matrices; None if no column is encoded).
    feature_names_ : list of str
        Names of the columns of the matrix: ``"age"``, ``"town=Ulm"``.
    sources_ : list of str
        The column of the table that each column of the matrix comes from.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, 40.0], "town": ["Ulm", "Zug"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.feature_names_
    ['age', 'town=Ulm', 'town=Zug']
    >>> encoder.transform(frame)
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.]])
    """

    _fitted = Fitted(
        {"schema_": Is(Schema)},
        {"transformer_": Maybe(Is(ColumnTransformer, Pipeline)), "dense_": Flag()},
        rules=(("the transformers do not make the columns of the schema", transforms_its_schema),),
    )

    def __init__(
        self, normalize: str = "standard", impute: str | None = None, roles: dict[str, str] | None = None
    ) -> None:
        self.normalize = normalize
        self.impute = impute
        self.roles = roles

    def check(self, X: Any, *, source: str = "the table", locate: Locate = row_place) -> Schema:
        """Check every value of a whole table and return its schema, which ``fit`` on some of its rows can then use.

        Raises
        ------
        DataError
            If values are missing and ``impute`` is None, infinite, or of a kind that cannot be encoded.
        MemoryBudgetError
            If the encoded matrix does not fit the memory budget.
        """
        self._check_parameters()
        X = as_table(X)
        if sp.issparse(X):
            _check_sparse(X, source, locate)
            require(_BYTES_PER_FEATURE * X.shape[1], f"the scales of {X.shape[1]} columns", _FEWER_COLUMNS)
            return Schema(width=X.shape[1])
        schema = infer_schema(X, source, locate, self.roles)
        _require_matrix(len(X), schema)
        frame = self._prepare(X, schema, source, locate)
        for name, role in schema.roles.items():
            read_objects(X[name], name, role, source, locate)
        return schema if self.impute is None else replace(schema, indicators=_with_gaps(frame, schema))

    def fit(self, X: Any, y: Any = None, *, schema: Schema | None = None) -> TableEncoder:
        """Learn the scales from a data frame or a sparse matrix, and its schema unless one is given.

        Raises
        ------
        DataError
            As ``check``.
        """
        X = as_table(X)
        self.schema_ = self.check(X) if schema is None else schema
        if sp.issparse(X):
            return self._fit_sparse(X)
        self.transformer_: Any = None
        if self.schema_.encoded:
            self.transformer_ = self._transformer().fit(self._prepare(X, self.schema_, "the table", row_place))
        return self

    @property
    def feature_names_(self) -> list[str]:
        """Names of the columns of the matrix."""
        check_is_fitted(self, "schema_")
        return self.schema_.encoded_names()

    @property
    def sources_(self) -> list[str]:
        """The column of the table that each column of the matrix comes from."""
        check_is_fitted(self, "schema_")
        return self.schema_.encoded_sources()

    def transform(
        self, X: Any, *, source: str = "the table", locate: Locate = row_place
    ) -> np.ndarray | sp.csr_matrix | MixedRows:
        """Return the matrix of a table, float64 of shape (n, number of encoded columns), or its ``MixedRows``.

        Raises
        ------
        SchemaError
            If columns are missing or renamed, or hold text where numbers are expected.

        Warns
        -----
        MercerWarning
            If categories or columns are unknown to the encoder.
        """
        check_is_fitted(self, "schema_")
        X = as_table(X)
        if sp.issparse(X):
            return self._transform_sparse(X, source, locate)
        if self.schema_.width is not None:
            raise SchemaError(
                f"the model was fitted on a libsvm file with {self.schema_.width} numbered columns, but {source} has "
                "named columns; pass a libsvm file."
            )
        self.schema_.check_columns(X, source)
        _require_matrix(len(X), self.schema_)
        roles = self.schema_.roles
        objects = [read_objects(X[name], name, role, source, locate) for name, role in roles.items()]
        if self.transformer_ is None:
            return MixedRows(objects, self.feature_names_)
        frame = self._prepare(X, self.schema_, source, locate)
        note_unknown_categories(self.schema_, frame, source, "they match none of the known categories")
        matrix = self.transformer_.transform(frame)
        if self.schema_.indicators:
            gaps = frame[self.schema_.indicators].isna().to_numpy(dtype=np.float64)
            matrix = sp.hstack([matrix, gaps]).tocsr() if sp.issparse(matrix) else np.hstack([matrix, gaps])
        if objects:
            numbers = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
            return MixedRows([*map(np.ascontiguousarray, numbers.T), *objects], self.feature_names_)
        return sp.csr_matrix(matrix) if sp.issparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the matrix, by scikit-learn's convention."""
        return np.array(self.feature_names_, dtype=object)

    def positions(self, column: str) -> list[int]:
        """Return the positions in the matrix of the encoded columns of a column of the table."""
        return [i for i, name in enumerate(self.sources_) if name == column]

    def _check_parameters(self) -> None:
        check_choices(self.normalize, self.impute)
        strange = next((role for role in (self.roles or {}).values() if role not in ROLES), None)
        if strange is not None:
            raise ParameterError(f"there is no role {strange!r}; choose one of {', '.join(ROLES)}.")

    def _prepare(self, X: Any, schema: Schema, source: str, locate: Locate) -> Any:
        """A frame with the columns of the schema alone, in its order: floats, and text as objects."""
        frame = as_kinds(X, schema.encoded, source, locate)
        if self.impute is None:
            _refuse_missing(frame, source, locate, fitted=hasattr(self, "transformer_"))
        return frame

    def _transformer(self) -> ColumnTransformer:
        schema = self.schema_
        frequent = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
        categories = [np.array(values, dtype=object) for values in schema.categories.values()]
        encode = OneHotEncoder(categories=categories, handle_unknown="ignore") if categories else "drop"
        truths = "passthrough" if self.impute is None else frequent
        # By position, which scikit-learn finds at once; a name it looks for along all the others.
        place = {name: position for position, name in enumerate(schema.encoded)}
        steps = [
            ("numbers", self._for_numbers(sparse=False), [place[name] for name in schema.of_kind("number")]),
            ("booleans", truths, [place[name] for name in schema.of_kind("boolean")]),
            ("categories", Pipeline([("encode", encode)]), [place[name] for name in schema.categories]),
        ]
        return ColumnTransformer([step for step in steps if step[2]], sparse_threshold=_SPARSE_BELOW)

    def _for_numbers(self, sparse: bool) -> Any:
        scaler = {
            "standard": StandardScaler(with_mean=not sparse),
            "minmax": MaxAbsScaler() if sparse else MinMaxScaler(),
            "unit": Normalizer(),
            "none": "passthrough",
        }[self.normalize]
        impute = (
            [] if self.impute is None else [("impute", SimpleImputer(strategy=self.impute, keep_empty_features=True))]
        )
        return Pipeline([*impute, ("scale", scaler)])

    def _fit_sparse(self, X: sp.csr_matrix) -> TableEncoder:
        density = X.nnz / max(1, X.shape[0] * X.shape[1])
        self.dense_ = density >= _SPARSE_BELOW
        self.transformer_ = self._for_numbers(sparse=not self.dense_)
        self.transformer_.fit(X.toarray() if self.dense_ else X)
        return self

    def _transform_sparse(self, X: sp.csr_matrix, source: str, locate: Locate) -> np.ndarray | sp.csr_matrix:
        if self.schema_.width is None:
            self.schema_.check_columns(X, source)
        width = self.schema_.encoded_columns
        _check_sparse(X, source, locate)
        if X.shape[1] > width:
            raise SchemaError(
                f"{source} has features up to number {X.shape[1] - 1}, and the model was fitted on features up to "
                f"number {width - 1}; this is a different data set, or its features are numbered differently."
            )
        # A file whose last features are all zero is read as narrower; the missing columns are zeros.
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
        matrix = self.transformer_.transform(X.toarray() if self.dense_ else X)
        return sp.csr_matrix(matrix) if sp.issparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float64)


def _with_gaps(frame: Any, schema: Schema) -> list[str]:
    """Columns of numbers and booleans in which entries are missing."""
    names = [*schema.of_kind("number"), *schema.of_kind("boolean")]
    return [name for name in names if frame[name].isna().any()]


def as_table(X: Any) -> Any:
    """Return a data frame with names as text; a sparse matrix becomes CSR, an array a frame with columns x0, x1, ...

    Of a data frame, durations become seconds, decimals floats, times of day dates, and bytes text.
    """
    if sp.issparse(X):
        return sp.csr_matrix(X)
    if hasattr(X, "columns"):
        return _readable_frame(X if all(isinstance(name, str) for name in X.columns) else X.rename(columns=str))
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(f"a table has rows and columns, but this array has the shape {array.shape}.")
    names = [f"x{j}" for j in range(array.shape[1])]
    return optional("pandas", "encoding columns").DataFrame(array, columns=names)


def _readable_frame(frame: Any) -> Any:
    columns = {}
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        kind = dtype.kind if isinstance(dtype, np.dtype) else ""
        if kind == "m":
            columns[name] = frame[name].dt.total_seconds()
        elif kind == "O":
            entries = frame[name].to_numpy()
            read = date_times(readable(entries))
            if read is not entries:
                columns[name] = optional("pandas", "encoding columns").Series(read, frame.index).infer_objects()
    return frame.assign(**columns) if columns else frame


def _require_matrix(n: int, schema: Schema) -> None:
    """Raise if the matrix of n rows does not fit the budget: one-hot columns are many, and mostly zeros."""
    width, filled = schema.encoded_columns, len(schema.kinds)
    nbytes = 12 * n * filled if filled < _SPARSE_BELOW * width else 8 * n * width
    require(nbytes, f"the encoded table ({n} rows, {width} columns)", _FEWER_COLUMNS)


def _check_sparse(X: sp.csr_matrix, source: str, locate: Locate) -> None:
    # The largest number does not fit into float32.
    bad = np.flatnonzero(~(np.abs(X.data.astype(np.float64, copy=False)) <= LARGEST))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"{source}, {locate(row)}, feature {int(X.indices[bad[0]])}: the value is {X.data[bad[0]]}; "
            f"every value must be a finite number of size at most {LARGEST:g}."
        )


def _refuse_missing(frame: Any, source: str, locate: Locate, fitted: bool) -> None:
    gaps = frame.isna()
    counts = gaps.sum()
    counts = counts[counts > 0]
    if counts.empty:
        return
    name = counts.index[0]
    first = int(np.flatnonzero(gaps[name].to_numpy())[0])
    columns = ", ".join(f"{column!r} ({count})" for column, count in list(counts.items())[:6])
    way_out = (
        "The model was fitted without --impute: fit it again with --impute median, or remove those rows."
        if fitted
        else f"Fill them in with --impute median (or {' or '.join(IMPUTE[::2])}), which adds a column that tells where "
        "they were, remove those rows, or use mercer fit --model auto, which takes them as they are."
    )
    more = f" and {len(counts) - 6} more columns" if len(counts) > 6 else ""
    raise DataError(
        f"{source} has missing values ({MISSING}) in {len(counts)} of {frame.shape[1]} columns: {columns}{more}; "
        f"the first is in {locate(first)}, column {name!r}. {way_out}"
    )
