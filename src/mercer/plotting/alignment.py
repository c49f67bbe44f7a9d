"""The best alignment of two series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from mercer._errors import DataError
from mercer._types import AnyArray, Matrix
from mercer.data.series import Series
from mercer.plotting.drawing import Display, legend, table, whole
from mercer.plotting.palette import COLOURS, QUIET

_MOST_CELLS = 4_000_000


@dataclass(eq=False, repr=False)
class AlignmentDisplay(Display):
    """Two series, and which of their points the best alignment pairs; see :class:`mercer.kernels.DynamicTimeWarping`.

    Make it with :meth:`from_series`.

    Parameters
    ----------
    x, z : ndarray of shape (n, c) and (m, c)
        The series.
    path : ndarray of int of shape (p, 2)
        Pairs of times, in order.
    distance : float
        The root of the sum of squared distances along the path.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The series, the first one raised.
    pairs_ : list of matplotlib Line2D
        One for each pair that is drawn.
    path_ : matplotlib Line2D or None
        With ``as_path``.

    Examples
    --------
    >>> from mercer.plotting import AlignmentDisplay
    >>> display = AlignmentDisplay.from_series([1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]).plot()
    >>> display.path.tolist(), display.distance
    ([[0, 0], [1, 1], [1, 2], [2, 3]], 0.0)
    """

    x: Matrix
    z: Matrix
    path: AnyArray
    distance: float

    @classmethod
    def from_series(cls, x: Any, z: Any, *, window: int | None = None) -> Self:
        """Align two series.

        Parameters
        ----------
        x, z : array-like of shape (n,) or (n, c), and (m,) or (m, c)
            The series.
        window : int, optional
            As in :class:`mercer.kernels.DynamicTimeWarping`.

        Returns
        -------
        AlignmentDisplay

        Raises
        ------
        DataError, ParameterError
            If a series is empty or not finite, the channels differ, the table of both has more than 4 million cells,
            or the window is not a whole number of 0 or more.
        """
        rows = Series.of([x, z])
        one, other = np.asarray(rows[0]), np.asarray(rows[1])
        if len(one) * len(other) > _MOST_CELLS:
            raise DataError(
                f"series of {len(one)} and {len(other)} values have a table of {len(one) * len(other)} cells, but at "
                f"most {_MOST_CELLS} are possible here; pass parts of them, or every k-th value."
            )
        limit = None if window is None else whole("window", window, 0)
        path, squared = _best_path(one, other, limit)
        return cls(one, other, path, float(np.sqrt(squared)))

    def plot(self, ax: Any = None, *, as_path: bool = False, max_pairs: int = 60) -> Self:
        """Draw the series with the pairs, or the path in the plane of both times.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        as_path : bool, default=False
            Whether the path is drawn, beside the diagonal, instead of the series. If there are several channels,
            the first is drawn.
        max_pairs : int, default=60
            The most pairs that are drawn, equally spaced; the legend says how many.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If ``max_pairs`` is not a whole number of at least 1.
        MissingDependencyError
            If matplotlib is not installed.
        """
        count = whole("max_pairs", max_pairs, 1)
        self._open(ax)
        self.lines_: list[Any] = []
        self.pairs_: list[Any] = []
        self.path_ = None
        if as_path:
            (self.path_,) = self.ax_.plot(*self.path.T, color=COLOURS[0], label=f"path, distance {self.distance:.4g}")
            self.ax_.plot([0, len(self.x) - 1], [0, len(self.z) - 1], color=QUIET, linestyle=":", label="no warping")
            self.ax_.set(xlabel="time of x", ylabel="time of z")
        else:
            self._draw_series(count)
        legend(self.ax_)
        return self

    def frame(self) -> Any:
        """Return the pairs.

        Returns
        -------
        pandas.DataFrame
            ``time_x``, ``time_z``, and ``distance`` of the two points.
        """
        i, j = self.path.T
        return table(self, {"time_x": i, "time_z": j, "distance": np.linalg.norm(self.x[i] - self.z[j], axis=1)})

    def _draw_series(self, count: int) -> None:
        one, other = self.x[:, 0], self.z[:, 0]
        # So far up that the series do not cross.
        rise = float(other.max() - one.min()) + 0.35 * float(np.ptp(np.r_[one, other]) or 1.0)
        kept = np.unique(np.linspace(0, len(self.path) - 1, min(count, len(self.path))).round().astype(int))
        for number, (i, j) in enumerate(self.path[kept]):
            text = f"{len(kept)} of {len(self.path)} pairs, distance {self.distance:.4g}" if number == 0 else ""
            options = {"color": QUIET, "linewidth": 0.6, "label": text}
            self.pairs_ += self.ax_.plot([i, j], [one[i] + rise, other[j]], **options)
        for values, ink, style, name in ((one + rise, COLOURS[0], "-", "x, raised"), (other, COLOURS[5], "--", "z")):
            self.lines_ += self.ax_.plot(values, color=ink, linestyle=style, marker=".", markersize=4, label=name)
        self.ax_.set(xlabel="time", ylabel="value")


def _best_path(x: Matrix, z: Matrix, window: int | None) -> tuple[AnyArray, float]:
    """The pairs with the least sum of squared distances, and that sum: Sakoe and Chiba (1978)."""
    n, m = len(x), len(z)
    squares = cdist(x, z, "sqeuclidean")
    if window is not None:
        shift = np.arange(n)[:, None] - np.arange(m)[None, :]
        squares[(shift < min(0, n - m) - window) | (shift > max(0, n - m) + window)] = np.inf
    sums = np.full((n + 1, m + 1), np.inf)
    sums[0, 0] = 0.0
    # By anti-diagonals, whose cells do not depend on each other.
    for s in range(n + m - 1):
        i = np.arange(max(0, s - m + 1), min(n, s + 1))
        j = s - i
        least = np.minimum(np.minimum(sums[i, j], sums[i, j + 1]), sums[i + 1, j])
        sums[i + 1, j + 1] = squares[i, j] + least
    cell, pairs = (n, m), []
    while min(cell) > 0:
        row, column = cell[0] - 1, cell[1] - 1
        pairs.append((row, column))
        steps = ((row, column), (row, cell[1]), (cell[0], column))
        cell = min(steps, key=lambda step: float(sums[step]))
    return np.array(pairs[::-1], dtype=np.intp), float(sums[n, m])
