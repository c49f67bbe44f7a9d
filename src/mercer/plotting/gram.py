"""A kernel matrix, ordered so that its structure shows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mercer._errors import ParameterError
from mercer._types import AnyArray, Matrix, Positions
from mercer.data.vectors import column_names
from mercer.estimators.shared.base import bind_columns
from mercer.gram.precomputed import check_square
from mercer.kernels import as_kernel
from mercer.kernels.domain import checked_rows
from mercer.plotting.drawing import Display, colour_bar, name_ticks, shown_rows, shown_text, table
from mercer.plotting.palette import DIVERGING, INK, SEQUENTIAL
from mercer.plotting.rows import labels_of
from mercer.selection.layers import require_fitted

_ORDERS = ("class", "leaf", "given")


@dataclass(eq=False, repr=False)
class GramDisplay(Display):
    """The kernel matrix of some rows as a map, by class or by the order of leaves of a clustering.

    Make it with :meth:`from_kernel`, :meth:`from_estimator` or :meth:`from_matrix`.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        The matrix, in the order of the picture.
    order : ndarray of int of shape (m,)
        Which rows they are.
    labels : ndarray of shape (m,), optional
        Their classes, in the order of the picture; lines divide the classes.
    total : int, optional
        How many rows there are, shown or not.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib AxesImage
    colorbar_ : matplotlib Colorbar
    lines_ : list of matplotlib Line2D
        Between the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import GramDisplay
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1]])
    >>> GramDisplay.from_kernel(RBF(1.0), X, ["a", "b", "a", "b"]).plot().order.tolist()
    [0, 2, 1, 3]
    """

    values: Matrix
    order: Positions
    _: KW_ONLY
    labels: AnyArray | None = None
    total: Any = None

    def __post_init__(self) -> None:
        self.total = len(self.order) if self.total is None else self.total

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any = None, *, order: str | None = None, max_rows: int = 400, random_state: Any = 0
    ) -> Self:
        """Evaluate a kernel on rows.

        Parameters
        ----------
        kernel : str, Kernel, scikit-learn kernel or callable
            A kernel, or the name of one.
        X : array-like of shape (n, d), or other input of the kernel
            Rows.
        y : array-like of shape (n,), optional
            Their classes.
        order : {"class", "leaf", "given"}, optional
            ``"class"`` sorts by y, and within a class by leaves; ``"leaf"`` is the optimal order of leaves of a
            clustering by average linkage; ``"given"`` keeps the order. By default ``"class"`` with y, else ``"leaf"``.
        max_rows : int, default=400
            The most rows that are evaluated; if there are more, a sample is taken, and the title says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        GramDisplay

        Raises
        ------
        DataError, ParameterError
            If rows, classes or the order cannot be used.
        """
        K, shown, n = kernel_matrix(kernel, X, max_rows, random_state)
        return cls._ordered(K, shown, None if y is None else labels_of(y, n), order, n)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        order: str | None = None,
        max_rows: int = 400,
        random_state: Any = 0,
    ) -> Self:
        """Evaluate the kernel of a fitted estimator on rows.

        Parameters
        ----------
        estimator : estimator
            Fitted, with a ``kernel_``.
        X, y, order, max_rows, random_state
            As for :meth:`from_kernel`.

        Returns
        -------
        GramDisplay

        Raises
        ------
        DataError, ParameterError
            If rows, classes or the order cannot be used, or the estimator has no kernel.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        kernel = getattr(require_fitted(estimator), "kernel_", None)
        if kernel is None:
            raise ParameterError(
                f"{estimator!r} has no kernel of its own; pass its matrix to GramDisplay.from_matrix, or a kernel to "
                "GramDisplay.from_kernel."
            )
        return cls.from_kernel(kernel, X, y, order=order, max_rows=max_rows, random_state=random_state)

    @classmethod
    def from_matrix(
        cls, K: Any, y: Any = None, *, order: str | None = None, max_rows: int = 400, random_state: Any = 0
    ) -> Self:
        """Show a symmetric matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            The matrix.
        y, order, max_rows, random_state
            As for :meth:`from_kernel`.

        Returns
        -------
        GramDisplay

        Raises
        ------
        DataError, ParameterError
            If the matrix is not square, symmetric and finite, or the order cannot be used.
        """
        matrix = symmetric(K)
        shown = shown_rows(len(matrix), max_rows, random_state, "max_rows")
        labels = None if y is None else labels_of(y, len(matrix))
        return cls._ordered(matrix[np.ix_(shown, shown)], shown, labels, order, len(matrix))

    @classmethod
    def _ordered(cls, K: Matrix, shown: Positions, labels: AnyArray | None, order: str | None, total: int) -> Self:
        order = ("leaf" if labels is None else "class") if order is None else order
        if order not in _ORDERS or (order == "class" and labels is None):
            needs = "; 'class' needs y" if order == "class" else ""
            raise ParameterError(f"order must be 'class', 'leaf' or 'given', but is {order!r}{needs}.")
        places = np.arange(len(K)) if order == "given" else _leaves(K)
        own = None if labels is None else labels[shown]
        if order == "class" and own is not None:
            codes = np.unique(own, return_inverse=True)[1].ravel()
            places = places[np.argsort(codes[places], kind="stable")]
        values = K[np.ix_(places, places)]
        return cls(values, shown[places], labels=None if own is None else own[places], total=total)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.
        colorbar : bool, default=True
            Whether there is a scale of the values.

        Returns
        -------
        self

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._open(ax)
        # A map about 0 where there are values on both sides of it.
        both = self.values.min() < 0 < self.values.max()
        size = float(np.abs(self.values).max())
        limits = {"cmap": DIVERGING, "vmin": -size, "vmax": size} if both else {"cmap": SEQUENTIAL}
        self.image_ = self.ax_.imshow(self.values, interpolation="nearest", **limits)
        self.colorbar_ = colour_bar(self.ax_, self.image_, "k(x, z)") if colorbar else None
        self._draw_classes()
        self.ax_.set_title(shown_text(len(self.order), self.total), fontsize="small")
        return self

    def _draw_classes(self) -> None:
        self.lines_: list[Any] = []
        ordered = "row" if (np.diff(self.order) > 0).all() else "rows, similar ones side by side"
        self.ax_.set(xlabel=ordered, ylabel=ordered)
        if self.labels is None or (len(self.labels) > 1 and not _is_sorted(self.labels)):
            return
        starts = np.flatnonzero(np.r_[True, self.labels[1:] != self.labels[:-1]])
        middles = (starts + np.r_[starts[1:], len(self.labels)] - 1) / 2
        names = [str(self.labels[start]) for start in starts]
        name_ticks(self.ax_.xaxis, middles, names)
        name_ticks(self.ax_.yaxis, middles, names)
        self.ax_.set(xlabel="rows by class", ylabel="rows by class")
        for edge in starts[1:] - 0.5:
            for draw in (self.ax_.axhline, self.ax_.axvline):
                # Dark on white, to be seen on any colour of the map.
                draw(edge, color="white", linewidth=2.2)
                self.lines_.append(draw(edge, color=INK, linewidth=0.9))

    def frame(self) -> Any:
        """Return the matrix.

        Returns
        -------
        pandas.DataFrame
            Of shape (m, m); rows and columns have the positions of the rows of X.
        """
        values = table(self, {int(row): self.values[:, j] for j, row in enumerate(self.order)})
        return values.set_axis([int(row) for row in self.order], axis=0)


def kernel_matrix(kernel: Any, X: Any, most: Any, random_state: Any) -> tuple[Matrix, Positions, int]:
    """Return the kernel matrix of at most ``most`` rows, their positions, and the number of all rows."""
    rows = checked_rows(kernel, X, "X")
    shown = shown_rows(rows.shape[0], most, random_state, "max_rows")
    bound = bind_columns(as_kernel(kernel, X=rows), column_names(X)).with_data(rows)
    return np.asarray(bound(rows[shown]), dtype=np.float64), shown, rows.shape[0]


def symmetric(K: Any) -> Matrix:
    """Return a given matrix, checked."""
    return np.asarray(check_square(np.asarray(K, dtype=np.float64)), dtype=np.float64)


def _leaves(K: Matrix) -> Positions:
    """The optimal order of leaves by the distances in feature space."""
    if len(K) < 3:
        return np.arange(len(K))
    diagonal = np.diag(K)
    squares = np.maximum(diagonal[:, None] + diagonal - K - K.T, 0.0)
    np.fill_diagonal(squares, 0.0)
    tree = linkage(squareform(np.sqrt(squares), checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.intp)


def _is_sorted(labels: AnyArray) -> bool:
    """Whether equal labels stand together."""
    return int((labels[1:] != labels[:-1]).sum()) == len(set(labels.tolist())) - 1
