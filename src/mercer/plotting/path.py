"""Paths of solutions along a penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.plotting.drawing import Display, legend, sides, table
from mercer.plotting.palette import MARKERS
from mercer.selection.path import Path
from mercer.selection.ridge import RidgePath

# Counts and shares, of which 0 is the natural end.
_LINEAR = frozenset({"support vectors", "error rate"})


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """What changes along a path: support vectors, gap and error, or leave-one-out error, GCV and evidence.

    Quantities of different units have different axes, one on the left and one on the right. Make the display with
    :meth:`from_path`.

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    values : ndarray of shape (m,)
        Its values, ascending.
    quantities : dict of str to ndarray of shape (m,)
        By name.
    left, right : tuple of str
        Which of them are drawn on which axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    right_ax_ : matplotlib Axes or None
        The axis on the right.
    lines_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import svm_path
    >>> from mercer.plotting import PathDisplay
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> path = svm_path(X, X[:, 0] > 0.3, [0.1, 1.0, 10.0], kernel="linear")
    >>> PathDisplay.from_path(path).plot().quantities["support vectors"].tolist()
    [28.0, 16.0, 8.0]
    """

    parameter: str
    values: Vector
    quantities: dict[str, Vector]
    _: KW_ONLY
    left: tuple[str, ...]
    right: tuple[str, ...] = ()

    @classmethod
    def from_path(cls, path: Any, X: Any = None, y: Any = None) -> Self:
        """Read a path, and its errors on other rows if they are given.

        Parameters
        ----------
        path : Path or RidgePath
            From :func:`mercer.svm_path` or :func:`mercer.ridge_path`.
        X : array-like of shape (m, d), optional
            Rows on which errors are computed: held-out ones, not those of the fit.
        y : array-like of shape (m,), optional
            Their targets; with a path of one-class machines, labels -1 and 1.

        Returns
        -------
        PathDisplay

        Raises
        ------
        DataError, ParameterError
            If it is not a path, or one of X and y is missing.
        """
        if (X is None) != (y is None):
            raise DataError("errors need both X and y; pass both, or neither.")
        left: tuple[str, ...]
        right: tuple[str, ...]
        if isinstance(path, RidgePath):
            parameter, values = "alpha", path.alphas
            quantities = {
                "leave-one-out error": _sums(path.loo),
                "GCV": _sums(path.gcv),
                "log evidence": _sums(path.evidence),
            }
            left, right = ("leave-one-out error", "GCV"), ("log evidence",)
        elif isinstance(path, Path):
            parameter, values = path.parameter, path.values
            gaps = np.array([certificate.relative_gap for certificate in path.certificates])
            quantities = {"support vectors": np.array([_support(model) for model in path]), "relative gap": gaps}
            left, right = ("support vectors",), ("relative gap",)
        else:
            raise ParameterError(f"path must come from mercer.svm_path or mercer.ridge_path, but is {path!r}.")
        if X is not None:
            name, errors = _errors(path, X, y)
            quantities[name] = errors
            # Errors of a ridge path are squared errors, as the criteria on the left are.
            left, right = ((*left, name), right) if isinstance(path, RidgePath) else (left, (name,))
        order = np.argsort(values, kind="stable")
        ordered = {name: quantity[order] for name, quantity in quantities.items()}
        return cls(parameter, np.asarray(values, dtype=np.float64)[order], ordered, left=left, right=right)

    def plot(
        self, ax: Any = None, *, left: tuple[str, ...] | None = None, right: tuple[str, ...] | None = None
    ) -> Self:
        """Draw the quantities along the parameter.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        left, right : tuple of str, optional
            Names of quantities to draw on each axis, in place of those of the display.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If there is no such quantity.
        MissingDependencyError
            If matplotlib is not installed.
        """
        left, right = self.left if left is None else left, self.right if right is None else right
        for name in (*left, *right):
            if name not in self.quantities:
                raise ParameterError(f"there is no quantity {name!r}; there are {', '.join(self.quantities)}.")
        self._open(ax)
        self.right_ax_: Any = self.ax_.twinx() if right else None
        parts: list[tuple[Any, tuple[str, ...]]] = [(self.ax_, left), (self.right_ax_, right)]
        self.lines_ = sides(self.values, self.quantities, *parts, markers=MARKERS)
        for axis, names in parts:
            if names and all((self.quantities[name] > 0).all() for name in names) and not _LINEAR.intersection(names):
                axis.set_yscale("log")
        self.ax_.set_xlabel(self.parameter)
        if self.values[0] > 0:
            self.ax_.set_xscale("log")
        legend(self.ax_, list(self.lines_.values()))
        return self

    def frame(self) -> Any:
        """Return all quantities: a row for each value.

        Returns
        -------
        pandas.DataFrame
        """
        return table(self, {self.parameter: self.values, **self.quantities})


def _support(model: Any) -> float:
    """How many rows have a weight."""
    weights = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
    return float(np.count_nonzero(np.atleast_2d(weights).any(axis=0)))


def _sums(criterion: Vector) -> Vector:
    """Over the targets."""
    return np.asarray(criterion.reshape(len(criterion), -1).sum(axis=1))


def _errors(path: Any, X: Any, y: Any) -> tuple[str, Vector]:
    """Error rates of classifiers, mean squared errors of regressions."""
    targets = np.asarray(y)
    predictions = [np.asarray(model.predict(X)) for model in path]
    if predictions[0].shape != targets.shape:
        raise DataError(f"y must have the shape {predictions[0].shape} of the predictions, but has {targets.shape}.")
    if is_classifier(path[0]) or is_outlier_detector(path[0]):
        return "error rate", np.array([np.mean(predicted != targets) for predicted in predictions])
    errors = [np.square(predicted - targets).reshape(len(targets), -1).sum(axis=1).mean() for predicted in predictions]
    return "mean squared error", np.array(errors)
