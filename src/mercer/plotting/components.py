"""The map of kernel principal components."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray, Matrix, Vector
from mercer.data.objects import short
from mercer.estimators.kernel_pca import KernelPCA
from mercer.plotting.drawing import Display, colour_bar, groups, legend, shown_rows, shown_text, table
from mercer.plotting.palette import DIVERGING, INK, QUIET
from mercer.plotting.rows import NamedRows, codes_of, labels_of
from mercer.selection.layers import require_fitted

_RESOLUTION = 80
_LEVELS = 9


class MapRows(NamedTuple):
    """Rows on a map of components.

    Parameters
    ----------
    coordinates : ndarray of shape (n, 2)
        On the two components.
    features : ndarray of shape (n, 2)
        The two features of the contours.
    labels : ndarray of shape (n,) or None
        Classes.
    total : int
        How many rows there are, shown or not.
    """

    coordinates: Matrix
    features: Matrix
    labels: AnyArray | None
    total: int


@dataclass(eq=False, repr=False)
class ComponentsDisplay(Display):
    """Rows on two kernel principal components, or contours of a component over two features.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    points : MapRows
        The rows.
    names : tuple of str
        What the axes of the map show.
    grid : tuple of two ndarrays of shape (r,)
        Values of the two features.
    surfaces : ndarray of shape (2, r, r)
        The two components over them; the second axis is that of the second feature.
    feature_names : tuple of str
        The two features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : dict of int to matplotlib PathCollection
        By class; 0 without labels.
    contours_ : matplotlib QuadContourSet or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.plotting import ComponentsDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> display = ComponentsDisplay.from_estimator(KernelPCA(2, kernel="rbf").fit(X), X).plot()
    >>> display.points.coordinates.shape, display.plot(component=0).contours_ is None
    ((40, 2), False)
    """

    points: MapRows
    names: tuple[str, str]
    _: KW_ONLY
    grid: tuple[Vector, ...]
    surfaces: Matrix
    feature_names: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        components: tuple[int, int] = (0, 1),
        features: Any = (0, 1),
        max_points: int = 1000,
        random_state: Any = 0,
    ) -> Self:
        """Transform rows, and a grid over two features with the others at their median.

        Parameters
        ----------
        estimator : KernelPCA
            Fitted; also a pipeline that ends with one.
        X : array-like or data frame of shape (n, d)
            Rows of numbers.
        y : array-like of shape (n,), optional
            Classes, for the colours.
        components : pair of int, default=(0, 1)
            The components on the axes, from 0 on.
        features : pair of int or str, default=(0, 1)
            The features of the contours; with one feature there are curves of components along it.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        ComponentsDisplay

        Raises
        ------
        DataError, ParameterError
            If X or y cannot be used, or there is no such component or feature.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not isinstance(learner, KernelPCA):
            raise ParameterError(f"ComponentsDisplay needs a KernelPCA, but has {estimator!r}.")
        count = len(learner.eigenvalues_)
        pair = tuple(components)
        if len(pair) != 2 or not all(isinstance(c, (int, np.integer)) and 0 <= c < count for c in pair):
            raise ParameterError(
                f"components must be two of the {count} components of the fit, from 0 to {count - 1}, but are "
                f"{components!r}."
            )
        rows = NamedRows.of(X)
        grid = rows.over(features, _RESOLUTION)
        heights = np.asarray(estimator.transform(grid.rows))
        surfaces = np.stack([grid.shaped(heights[:, number]) for number in pair])
        n = len(rows.values)
        shown = shown_rows(n, max_points, random_state)
        labels = None if y is None else labels_of(y, n)[shown]
        coordinates = np.asarray(estimator.transform(rows.given), dtype=np.float64)[:, list(pair)]
        points = MapRows(coordinates[shown], grid.places[shown], labels, n)
        names = (f"component {pair[0]}", f"component {pair[1]}")
        return cls(points, names, grid=grid.axes, surfaces=surfaces, feature_names=grid.names)

    def plot(self, ax: Any = None, *, component: int | None = None) -> Self:
        """Draw the map of the rows, or the contours of one component.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        component : {0, 1}, optional
            Draw contours of the first or the second of the two components over the features instead of the map.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If there is no such component.
        MissingDependencyError
            If matplotlib is not installed.
        """
        if component not in (None, 0, 1):
            raise ParameterError(
                f"component must be 0 or 1, the first or second of the map, but is {short(component)}."
            )
        self._open(ax)
        self.contours_ = None
        if component is None:
            self._draw_rows(self.points.coordinates)
            self.ax_.axhline(0.0, color=QUIET, linewidth=0.6, zorder=0)
            self.ax_.axvline(0.0, color=QUIET, linewidth=0.6, zorder=0)
            self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        elif len(self.grid) == 1:
            self._draw_rows(np.column_stack([self.points.features[:, 0], self.points.coordinates[:, component]]))
            self.ax_.plot(self.grid[0], self.surfaces[component], color=INK, zorder=0)
            self.ax_.set(xlabel=self.feature_names[0], ylabel=self.names[component])
        else:
            self._draw_contours(component)
        return self

    def frame(self) -> Any:
        """Return the rows that are shown: their coordinates, features and class.

        Returns
        -------
        pandas.DataFrame
        """
        columns: dict[str, Any] = dict(zip(self.names, self.points.coordinates.T))
        columns |= dict(zip(self.feature_names, self.points.features.T))
        return table(self, columns if self.points.labels is None else {**columns, "class": self.points.labels})

    def _draw_contours(self, component: int) -> None:
        surface = self.surfaces[component]
        size = float(np.abs(surface).max()) or 1.0
        options = {"levels": np.linspace(-size, size, _LEVELS), "zorder": 0}
        filled = self.ax_.contourf(*self.grid, surface, cmap=DIVERGING, alpha=0.55, **options)
        self.contours_ = self.ax_.contour(*self.grid, surface, colors=[INK], linewidths=0.6, **options)
        colour_bar(self.ax_, filled, self.names[component])
        self._draw_rows(self.points.features)
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])

    def _draw_rows(self, places: Matrix) -> None:
        labels = self.points.labels
        classes = np.array([""]) if labels is None else np.unique(labels)
        codes = np.zeros(len(places), dtype=int) if labels is None else codes_of(labels, classes)
        self.points_ = groups(self.ax_, places, codes, classes, s=26, linewidths=0.5)
        title = shown_text(len(places), self.points.total)
        if labels is not None or title:
            legend(self.ax_, None if labels is not None else [], title)
