"""Regions of clusters in feature space."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer._errors import ParameterError
from mercer._types import AnyArray, Vector
from mercer.plotting.drawing import axes_for, legend, shown_rows, shown_text, table, whole
from mercer.plotting.palette import INK, colour, marker
from mercer.plotting.regions import borders, fill
from mercer.plotting.rows import NamedRows, Points
from mercer.selection.layers import require_fitted


class ClustersDisplay:
    """The regions that kernel k-means puts into each cluster, and the rows by cluster.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : tuple of one or two ndarrays of shape (r,)
        Values of the features on the axes.
    codes : ndarray of int of shape (r, r), or (r,) for one feature
        The cluster; the first axis is that of the second feature.
    n_clusters : int
        Their number.
    points : Points
        The rows, with their clusters.
    names : tuple of str
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    regions_ : matplotlib AxesImage
    lines_ : list
        Between the regions.
    points_ : dict of int to matplotlib PathCollection
        By cluster; each has a marker of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelKMeans
    >>> from mercer.plotting import ClustersDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = KernelKMeans(3, random_state=0).fit(X)
    >>> len(ClustersDisplay.from_estimator(model, X, grid_resolution=20).plot().points_)
    3
    """

    def __init__(
        self, grid: tuple[Vector, ...], codes: AnyArray, n_clusters: int, points: Points, *, names: tuple[str, ...]
    ) -> None:
        self.grid = grid
        self.codes = codes
        self.n_clusters = n_clusters
        self.points = points
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Any = (0, 1),
        grid_resolution: int = 150,
        max_points: int = 1000,
        random_state: Any = 0,
    ) -> Self:
        """Assign a grid over one or two features, with the others at their median, and the rows.

        Parameters
        ----------
        estimator : KernelKMeans
            Fitted, or another clustering with ``predict`` and ``n_clusters``; also a pipeline.
        X : array-like or data frame of shape (n, d)
            Rows of numbers.
        features : pair of int or str, or one of them, default=(0, 1)
            The features on the axes. With one, the second axis shows the cluster.
        grid_resolution : int, default=150
            Values of each feature.
        max_points : int, default=1000
            The most rows that are drawn; if there are more, a sample is drawn, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        ClustersDisplay

        Raises
        ------
        DataError, ParameterError
            If X cannot be used, there is no such feature, or the estimator is not such a clustering.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        learner = require_fitted(estimator)
        if not hasattr(learner, "n_clusters") or not hasattr(estimator, "predict"):
            raise ParameterError(f"ClustersDisplay needs a KernelKMeans, but has {estimator!r}.")
        rows = NamedRows.of(X)
        chosen = rows.positions(features)
        resolution = whole("grid_resolution", grid_resolution, 2)
        grid = tuple(rows.grid(position, resolution) for position in chosen)
        at = rows.at_median(chosen, np.column_stack([axis.ravel() for axis in np.meshgrid(*grid)]))
        codes = np.asarray(estimator.predict(at)).reshape((resolution,) * len(grid))
        shown = shown_rows(len(rows.values), max_points, random_state)
        own = np.asarray(estimator.predict(rows.given))
        places = rows.values[:, list(chosen)]
        places = np.column_stack([places, own]) if len(chosen) == 1 else places
        names = tuple(rows.names[position] for position in chosen)
        names = (*names, "cluster") if len(chosen) == 1 else names
        points = Points(places[shown], own[shown], None, len(rows.values))
        return cls(grid, codes, int(learner.n_clusters), points, names=names)

    def plot(self, ax: Any = None) -> Self:
        """Draw the regions and the rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self.ax_ = axes_for(self, ax)
        self.figure_ = self.ax_.figure
        self.regions_ = fill(self.ax_, self.grid, self.codes, self.n_clusters, (-0.5, self.n_clusters - 0.5))
        self.lines_ = [] if len(self.grid) == 1 else borders(self.ax_, self.grid, self.codes, self.n_clusters)
        if len(self.grid) == 1:
            self.ax_.set_yticks(range(self.n_clusters))
        self.points_ = {}
        codes: Any = self.points.codes
        for number in range(self.n_clusters):
            own = codes == number
            if own.any():
                self.points_[number] = self.ax_.scatter(
                    *self.points.values[own].T,
                    s=30,
                    marker=marker(number),
                    color=colour(number),
                    edgecolors=INK,
                    linewidths=0.6,
                    zorder=2,
                    label=f"cluster {number}: {int(own.sum())} rows",
                )
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        legend(self.ax_, title=shown_text(len(self.points.values), self.points.total), outside=ax is None)
        return self

    def frame(self) -> Any:
        """Return the rows that are shown: their place and cluster.

        Returns
        -------
        pandas.DataFrame
        """
        columns = {name: self.points.values[:, axis] for axis, name in enumerate(self.names)}
        return table(self, {**columns, "cluster": self.points.codes})
