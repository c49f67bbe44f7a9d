"""Decision regions of classifiers and one-class machines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from mercer._errors import ParameterError
from mercer._types import AnyArray, Matrix, Vector
from mercer.plotting.drawing import Display, legend, line, mark, name_ticks, shown_rows, shown_text, table
from mercer.plotting.palette import INK, QUIET, ROLE_MARKERS, ROLE_SIZES, colour, marker
from mercer.plotting.regions import border, borders, fill
from mercer.plotting.rows import NamedRows, Points, codes_of, labels_of, roles_of
from mercer.selection.layers import require_fitted

_WORDS = {
    True: {"zero": "inside, weight 0", "free": "on the boundary", "bounded": "outside, at its bound"},
    False: {"zero": "outside the margin, weight 0", "free": "on the margin, free", "bounded": "bounded, at C"},
}


@dataclass(eq=False, repr=False)
class BoundaryDisplay(Display):
    """Decision regions, the boundary and the margins of a classifier, with the rows by class and by role.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : tuple of one or two ndarrays of shape (r,)
        Values of the features on the axes.
    codes : ndarray of int of shape (r, r), or (r,) for one feature
        The predicted class, as a position in ``classes``; the first axis is that of the second feature.
    classes : ndarray of shape (k,)
        The classes; -1 and 1 for one-class machines.
    response : ndarray shaped as ``codes``, optional
        Decision values, for two classes.
    levels : tuple of float, default=()
        Decision values that are drawn as lines: 0, and -1 and 1 for the margins of a support vector machine.
    points : Points, optional
        The rows to show.
    names : tuple of str, default=("", "")
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    regions_ : matplotlib AxesImage
        The regions, in the pale colours of the classes.
    lines_ : list
        Lines of the boundary and the margins.
    points_ : dict of (int, str) to matplotlib PathCollection
        Rows by position of the class (-1 without labels) and role ("" without roles).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.plotting import BoundaryDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "right", "left")
    >>> display = BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y, grid_resolution=20).plot()
    >>> display.ax_.get_xlabel(), sum(len(drawn.get_offsets()) for drawn in display.points_.values())
    ('feature 0', 60)
    """

    grid: tuple[Vector, ...]
    codes: AnyArray
    classes: AnyArray
    _: KW_ONLY
    response: Matrix | None = None
    levels: tuple[float, ...] = ()
    points: Points | None = None
    names: tuple[str, ...] = ("", "")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = (0, 1),
        grid_resolution: int = 150,
        max_points: int = 1000,
        random_state: Any = 0,
    ) -> Self:
        """Predict a grid over one or two features, with the others at their median.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier of two or more classes, also ordered ones, or a one-class machine; also a pipeline or a
            search.
        X : array-like or data frame of shape (n, d)
            Rows of numbers. If they are those of the fit of a support vector machine, they are marked by role.
        y : array-like of shape (n,), optional
            Their labels. Without them the rows are not coloured by class.
        features : pair of int or str, or one of them, default=(0, 1)
            The features on the axes. With one, the second axis shows decision values, or the class if there are more
            than two.
        grid_resolution : int, default=150
            Values of each feature.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        BoundaryDisplay

        Raises
        ------
        DataError, ParameterError
            If X or y cannot be used, there is no such feature, or the estimator is not a classifier.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        one_class = is_outlier_detector(estimator)
        if not one_class and not is_classifier(estimator):
            raise ParameterError(
                f"BoundaryDisplay needs a classifier or a one-class machine, but has {estimator!r}; for regressions "
                "there are ProcessDisplay and TubeDisplay."
            )
        rows = NamedRows.of(X)
        grid = rows.over(features, grid_resolution)
        classes = np.array([-1, 1]) if one_class else np.asarray(estimator.classes_)
        codes = codes_of(np.asarray(estimator.predict(grid.rows)), classes)
        response = _response(estimator, grid.rows) if len(classes) == 2 else None
        shown = shown_rows(len(rows.values), max_points, random_state)
        points = _points(estimator, rows, grid.places, y, classes, shown)
        height = () if len(grid.axes) > 1 else ("class" if response is None else "decision value",)
        return cls(
            grid.axes,
            grid.shaped(codes),
            classes,
            response=None if response is None else grid.shaped(response),
            levels=(-1.0, 0.0, 1.0) if hasattr(learner, "support_") and not one_class else (0.0,),
            points=points,
            names=(*grid.names, *height),
        )

    def plot(self, ax: Any = None, *, legend_title: str = "") -> Self:
        """Draw the regions, the lines and the rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        legend_title : str, default=""
            Goes above the legend.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        heights = self._heights() if len(self.grid) == 1 else (0.0, 1.0)
        self.regions_ = fill(self.ax_, self.grid, self.codes, len(self.classes), heights)
        self._draw_lines()
        self._draw_points()
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        shown = "" if self.points is None else shown_text(len(self.points.values), self.points.total)
        title = "\n".join(text for text in (legend_title, shown) if text)
        legend(self.ax_, self._keys(), title, outside=ax is None)
        return self

    def frame(self) -> Any:
        """Return the rows that are shown: their place, class and role.

        Returns
        -------
        pandas.DataFrame
            Without rows if the display has none.
        """
        points = self.points or Points(np.empty((0, 2)), None, None, 0)
        columns: dict[str, Any] = {name: points.values[:, axis] for axis, name in enumerate(self.names)}
        if points.codes is not None:
            columns[self._free_name("class")] = self.classes[points.codes]
        if points.roles is not None:
            columns[self._free_name("role")] = [self._role_words[role] for role in points.roles]
        return table(self, columns)

    def _free_name(self, name: str) -> str:
        """The name, longer where a feature has it."""
        while name in self.names:
            name += "_"
        return name

    @property
    def _role_words(self) -> dict[str, str]:
        # A one-class machine has one boundary and no margins.
        return _WORDS[self.classes.tolist() == [-1, 1] and len(self.levels) == 1]

    def _heights(self) -> tuple[float, float]:
        """The range of the second axis where there is one feature."""
        if self.response is None:
            return -0.5, len(self.classes) - 0.5
        values = [*self.levels, self.response.min(), self.response.max()]
        if self.points is not None:
            values += [self.points.values[:, 1].min(), self.points.values[:, 1].max()]
        low, high = float(min(values)), float(max(values))
        return low - 0.05 * (high - low), high + 0.05 * (high - low)

    def _draw_lines(self) -> None:
        self.lines_: list[Any] = []
        if len(self.grid) == 1:
            if self.response is None:
                name_ticks(self.ax_.yaxis, range(len(self.classes)), self.classes)
                return
            self.lines_ += self.ax_.plot(self.grid[0], self.response, color=INK)
            self.lines_ += [self.ax_.axhline(level, **_line(level)) for level in self.levels]
            return
        if self.response is None:
            self.lines_ = borders(self.ax_, self.grid, self.codes, len(self.classes))
            return
        for level in self.levels:
            self.lines_ += border(self.ax_, self.grid, self.response, level, dashed=level != 0)

    def _draw_points(self) -> None:
        self.points_: dict[tuple[int, str], Any] = {}
        if self.points is None:
            return
        n = len(self.points.values)
        codes = np.full(n, -1) if self.points.codes is None else self.points.codes
        roles = np.full(n, "") if self.points.roles is None else self.points.roles
        for code, role in sorted({*zip(codes.tolist(), roles.tolist())}):
            chosen = (codes == code) & (roles == role)
            self.points_[code, role] = self.ax_.scatter(
                *self.points.values[chosen].T,
                s=ROLE_SIZES.get(role, 32.0),
                marker=ROLE_MARKERS.get(role, marker(max(code, 0))),
                color=QUIET if code < 0 else colour(code),
                edgecolors=INK if role == "bounded" or not role else "white" if role == "zero" else INK,
                linewidths=0.0 if role == "zero" else 0.6,
                zorder=2,
            )

    def _keys(self) -> list[Any]:
        """Classes by colour, roles by shape, lines by style."""
        present = [] if self.points is None or self.points.roles is None else np.unique(self.points.roles).tolist()
        names = ["outside", "inside"] if self._role_words is _WORDS[True] else [str(name) for name in self.classes]
        shapes = ["s" if present else marker(number) for number in range(len(names))]
        keys = [mark(name, shape, colour(number)) for number, (name, shape) in enumerate(zip(names, shapes))]
        keys += [mark(self._role_words[role], ROLE_MARKERS[role], QUIET) for role in ROLE_MARKERS if role in present]
        if len(self.levels) > 1 and self.response is not None:
            keys += [line("boundary", "-"), line("margins", "--")]
        return keys


def _line(level: float) -> dict[str, Any]:
    return {"color": INK, "linewidth": 1.4 if level == 0 else 1.0, "linestyle": "-" if level == 0 else "--"}


def _response(estimator: Any, rows: Any) -> Vector | None:
    """Decision values above 0 for the second class, if there is one for each row."""
    if hasattr(estimator, "decision_function"):
        values = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        return values if values.ndim == 1 else None
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(rows))[:, 1] - 0.5
    return None


def _points(estimator: Any, rows: NamedRows, places: Matrix, y: Any, classes: AnyArray, shown: AnyArray) -> Points:
    n = len(rows.values)
    codes = None if y is None else codes_of(labels_of(y, n), classes)
    roles = roles_of(estimator, rows)
    if places.shape[1] == 1:
        heights = _response(estimator, rows.given) if len(classes) == 2 else None
        if heights is None:
            heights = codes_of(np.asarray(estimator.predict(rows.given)), classes) if codes is None else codes
        places = np.column_stack([places, heights])
    return Points(places[shown], None if codes is None else codes[shown], None if roles is None else roles[shown], n)
