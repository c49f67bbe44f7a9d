"""The rows of a picture: checked numbers with names, grids over one or two features, labels and roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError, ParameterError
from mercer._optional import optional
from mercer._types import AnyArray, Matrix, Vector
from mercer.data.vectors import as_vectors, column_names
from mercer.plotting.drawing import whole
from mercer.selection.layers import learner_inside, rows_for_learner

_ROLES = {"outside": "zero", "free": "free", "bounded": "bounded"}
# Where the weight is zero inside, and the bound is reached outside.
_REVERSED_ROLES = {"inside": "zero", "on": "free", "outside": "bounded"}
_MARGIN = 0.08


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of numbers, and what an estimator should get in their place.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    names : tuple of str
        Of the columns; "feature 0", ... if X has none.
    frame_columns : index or None
        The columns of the data frame, if X is one.
    """

    values: Matrix
    names: tuple[str, ...]
    frame_columns: Any

    @classmethod
    def of(cls, X: Any) -> NamedRows:
        """Return checked rows.

        Raises
        ------
        DataError
            If X is not a table of finite numbers.
        """
        array: Any = as_vectors(X)
        values = np.asarray(array.toarray() if sp.issparse(array) else array, dtype=np.float64)
        names = column_names(X)
        known = tuple(f"feature {j}" for j in range(values.shape[1])) if names is None else names
        return cls(values, known, None if names is None else X.columns)

    def position(self, feature: Any) -> int:
        """Return the position of a column, given by position or name.

        Raises
        ------
        ParameterError
            If there is no such column.
        """
        d = len(self.names)
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool) and -d <= feature < d:
            return int(feature) % d
        raise ParameterError(
            f"there is no feature {feature!r}; the {d} features are {', '.join(self.names[:20])}. Pass a name, or a "
            f"position from 0 to {d - 1}."
        )

    def positions(self, features: Any) -> tuple[int, ...]:
        """Return the positions of one or two different columns; one alone if there is only one column.

        Raises
        ------
        ParameterError
            If they are none, more than two, or the same column twice.
        """
        if isinstance(features, (str, int, np.integer)):
            features = (features,)
        if len(self.names) == 1 and tuple(features) == (0, 1):
            # The default, for rows of one feature.
            features = (0,)
        chosen = tuple(self.position(feature) for feature in features)
        if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
            raise ParameterError(f"features must be one feature or two different ones, but is {features!r}.")
        return chosen

    def _axis(self, position: int, resolution: int) -> Vector:
        """Equally spaced values of a column, a little beyond its range; about a constant column, too."""
        column = self.values[:, position]
        low, high = float(column.min()), float(column.max())
        margin = _MARGIN * (high - low) if high > low else max(0.1 * abs(low), 0.5)
        return np.linspace(low - margin, high + margin, resolution)

    def over(self, features: Any, resolution: Any) -> Grid:
        """Return a grid over one or two features, with the others at their median.

        Raises
        ------
        ParameterError
            If the features or the resolution are not possible.
        """
        chosen = self.positions(features)
        axes = tuple(self._axis(position, whole("grid_resolution", resolution, 2)) for position in chosen)
        values = [axis.ravel() for axis in np.meshgrid(*axes)]
        rows = np.tile(np.median(self.values, axis=0), (len(values[0]), 1))
        rows[:, list(chosen)] = np.column_stack(values)
        return Grid(axes, self.like(rows), tuple(self.names[position] for position in chosen), self.values[:, chosen])

    @property
    def given(self) -> Any:
        """The rows themselves, as a data frame if X is one."""
        return self.like(self.values)

    def like(self, rows: Matrix) -> Any:
        """Return rows (m, d) as a data frame if X is one."""
        if self.frame_columns is None:
            return rows
        return optional("pandas", "rows with names").DataFrame(rows, columns=self.frame_columns)


class Grid(NamedTuple):
    """A grid over one or two features.

    Parameters
    ----------
    axes : tuple of one or two ndarrays of shape (r,)
        Values of the features.
    rows : ndarray or DataFrame of shape (r, d) or (r * r, d)
        What an estimator gets; the second feature changes last.
    names : tuple of str
        Of the features.
    places : ndarray of shape (n, 1) or (n, 2)
        The features of the rows themselves.
    """

    axes: tuple[Vector, ...]
    rows: Any
    names: tuple[str, ...]
    places: Matrix

    def shaped(self, values: AnyArray) -> AnyArray:
        """Return values (r,) or (r * r,) of the rows in the shape of the grid."""
        return values.reshape((len(self.axes[0]),) * len(self.axes))


class Points(NamedTuple):
    """Rows that a picture shows.

    Parameters
    ----------
    values : ndarray of shape (n, 2)
        Their places.
    codes : ndarray of int of shape (n,) or None
        Their classes, as positions among the classes of the display.
    roles : ndarray of str of shape (n,) or None
        ``"zero"``, ``"free"`` or ``"bounded"``, by their weight in the expansion.
    total : int
        How many rows there are, shown or not.
    """

    values: Matrix
    codes: AnyArray | None
    roles: AnyArray | None
    total: int


def labels_of(y: Any, n: int) -> AnyArray:
    """Return labels, one for each of n rows.

    Raises
    ------
    DataError
        If their number differs from n, or some are missing.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise DataError(f"y must have one entry for each of the {n} rows of X, but has the shape {labels.shape}.")
    missing = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"y contains NaN or None in {int(missing.sum())} places, first in row {int(missing.argmax())}; leave "
            "those rows out."
        )
    return labels


def numbers_of(y: Any, n: int) -> Vector:
    """Return finite targets, one for each of n rows.

    Raises
    ------
    DataError
        If they are not.
    """
    labels = labels_of(y, n)
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must be numbers, but is not: {error}.") from error
    if not np.isfinite(numbers).all():
        raise DataError(f"y contains infinity, first in row {int((~np.isfinite(numbers)).argmax())}.")
    return numbers


def codes_of(labels: AnyArray, classes: AnyArray) -> AnyArray:
    """Return the positions of labels among the classes.

    Raises
    ------
    DataError
        If one is not among them.

    Examples
    --------
    >>> codes_of(np.array(["b", "a"]), np.array(["a", "b"])).tolist()
    [1, 0]
    """
    place = {label: number for number, label in enumerate(classes.tolist())}
    unknown = sorted({str(label) for label in labels.tolist() if label not in place})
    if unknown:
        raise DataError(
            f"y has labels that are not among the classes of the fit: {', '.join(unknown[:5])}; the classes are "
            f"{classes.tolist()[:10]}."
        )
    return np.array([place[label] for label in labels.tolist()], dtype=np.intp)


def roles_of(estimator: Any, rows: NamedRows) -> AnyArray | None:
    """Return the role of each row, or None if the estimator has no roles or was fitted to other rows.

    With several pairs of classes a row is bounded if it is for one pair, else free if it is for one.
    """
    learner = learner_inside(estimator)
    roles = getattr(learner, "roles_", None)
    if roles is None or not _are_of_fit(estimator, learner, rows):
        return None
    names = _ROLES if "free" in roles or "bounded" in roles else _REVERSED_ROLES
    if not set(np.unique(roles)) <= names.keys():
        names = _ROLES
    layers = np.atleast_2d(roles)
    result = np.full(layers.shape[1], "zero", dtype="<U7")
    for name in ("free", "bounded"):
        result[np.isin(layers, [own for own, role in names.items() if role == name]).any(axis=0)] = name
    return result


def _are_of_fit(estimator: Any, learner: Any, rows: NamedRows) -> bool:
    """Whether the rows are those of the fit, judged by their number and the support vectors."""
    n = len(rows.values)
    if getattr(learner, "shape_fit_", (None,))[0] != n or np.shape(learner.roles_)[-1] != n:
        return False
    seen = rows_for_learner(estimator, rows.given)
    seen = seen.toarray() if sp.issparse(seen) else np.asarray(seen)
    vectors = learner.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)
    return bool(np.array_equal(seen[learner.support_].astype(vectors.dtype), vectors))
