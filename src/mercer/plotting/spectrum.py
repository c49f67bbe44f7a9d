"""Eigenvalues of kernel matrices, and Mercer's eigenfunctions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg

from mercer._errors import ParameterError
from mercer._types import Matrix, Vector
from mercer.data.objects import short
from mercer.plotting.drawing import Display, curves, legend, shown_rows, shown_text, table
from mercer.plotting.gram import kernel_matrix, symmetric
from mercer.plotting.palette import ALARM, COLOURS, INK, QUIET
from mercer.plotting.rows import NamedRows
from mercer.spectrum import eigenfunctions


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    r"""Eigenvalues of a kernel matrix by size, on a logarithmic scale, with the negative ones marked.

    The effective dimension at a ridge :math:`\lambda` is :math:`\sum_i s_i / (s_i + \lambda)` over the eigenvalues
    above 0. Make the display with :meth:`from_kernel` or :meth:`from_matrix`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        Descending.
    ridge : float, default=1.0
        :math:`\lambda`, above 0.
    total : int, optional
        How many rows there are, in the matrix or not.

    Attributes
    ----------
    effective_dimension : float
    ax_, figure_ : matplotlib Axes and Figure
    positive_, negative_ : matplotlib Line2D
        Sizes of the eigenvalues above and below 0, by rank of size; those within rounding of 0 are left out.
    line_ : matplotlib Line2D
        At the effective dimension.

    Examples
    --------
    >>> from mercer.plotting import SpectrumDisplay
    >>> display = SpectrumDisplay.from_matrix([[2.0, 1.0], [1.0, 2.0]], ridge=1.0).plot()
    >>> display.eigenvalues.round(6).tolist(), display.effective_dimension
    ([3.0, 1.0], 1.25)
    """

    eigenvalues: Vector
    _: KW_ONLY
    ridge: float = 1.0
    total: Any = None

    def __post_init__(self) -> None:
        self.total = len(self.eigenvalues) if self.total is None else self.total

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, *, ridge: float = 1.0, max_rows: int = 800, random_state: Any = 0
    ) -> Self:
        """Decompose the kernel matrix of rows.

        Parameters
        ----------
        kernel : str, Kernel, scikit-learn kernel or callable
            A kernel, or the name of one; also an indefinite one.
        X : array-like of shape (n, d), or other input of the kernel
            Rows.
        ridge : float, default=1.0
            The ridge of the effective dimension, above 0.
        max_rows : int, default=800
            The most rows of the matrix; if there are more, a sample is taken, and the legend says so.
        random_state : int, RandomState or None, default=0
            Seed of the sample.

        Returns
        -------
        SpectrumDisplay

        Raises
        ------
        DataError, ParameterError
            If rows or the ridge cannot be used.
        """
        K, _, n = kernel_matrix(kernel, X, max_rows, random_state)
        return cls._of(K, ridge, n)

    @classmethod
    def from_matrix(cls, K: Any, *, ridge: float = 1.0) -> Self:
        """Decompose a symmetric matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            The matrix.
        ridge : float, default=1.0
            The ridge of the effective dimension, above 0.

        Returns
        -------
        SpectrumDisplay

        Raises
        ------
        DataError, ParameterError
            If the matrix is not square, symmetric and finite, or the ridge is not above 0.
        """
        matrix = symmetric(K)
        return cls._of(matrix, ridge, len(matrix))

    @classmethod
    def _of(cls, K: Matrix, ridge: float, total: int) -> Self:
        if not 0 < ridge < np.inf:
            raise ParameterError(f"ridge must be a number above 0, but is {short(ridge)}.")
        return cls(scipy.linalg.eigvalsh(K)[::-1].copy(), ridge=float(ridge), total=total)

    @property
    def effective_dimension(self) -> float:
        """The sum of s / (s + ridge) over the eigenvalues s above 0."""
        positive = np.maximum(self.eigenvalues, 0.0)
        return float((positive / (positive + self.ridge)).sum())

    def plot(self, ax: Any = None) -> Self:
        """Draw the sizes of the eigenvalues.

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
        self._open(ax)
        data = self._ranked()
        rank, values, seen = data["rank"], data["eigenvalue"], ~data["rounding"]
        drawn = []
        for sign, marker, ink, name in ((1, ".", COLOURS[0], "above 0"), (-1, "v", ALARM, "below 0")):
            own = seen & (sign * values > 0)
            label = f"{int(own.sum())} eigenvalues {name}"
            drawn += self.ax_.plot(
                rank[own], np.abs(values[own]), marker, color=ink, markersize=5, label=label if own.any() else ""
            )
        self.positive_, self.negative_ = drawn
        dimension = self.effective_dimension
        self.line_ = self.ax_.axvline(
            dimension,
            color=INK,
            linestyle="--",
            linewidth=1.0,
            label=f"effective dimension {dimension:.3g} at ridge {self.ridge:.3g}",
        )
        self.ax_.set(xlabel="rank by size", ylabel="|eigenvalue|", yscale="log")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        text = [shown_text(len(values), self.total)]
        if not seen.all():
            text.append(f"{int((~seen).sum())} within rounding of 0 left out")
        legend(self.ax_, title="\n".join(line for line in text if line))
        return self

    def frame(self) -> Any:
        """Return the eigenvalues by size.

        Returns
        -------
        pandas.DataFrame
            ``rank``, ``eigenvalue``, and ``rounding``: whether it is 0 to rounding.
        """
        return table(self, self._ranked())

    def _ranked(self) -> dict[str, Any]:
        values = self.eigenvalues[np.argsort(-np.abs(self.eigenvalues), kind="stable")]
        floor = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
        return {"rank": np.arange(1, len(values) + 1), "eigenvalue": values, "rounding": np.abs(values) <= floor}


@dataclass(eq=False, repr=False)
class EigenfunctionsDisplay(Display):
    """Mercer's leading eigenfunctions along one feature, with their eigenvalues; see :mod:`mercer.spectrum`.

    Make it with :meth:`from_kernel`.

    Parameters
    ----------
    grid : ndarray of shape (m,)
        Values of the feature.
    functions : ndarray of shape (m, k)
        The eigenfunctions there.
    eigenvalues : ndarray of shape (k,)
        Descending.
    trace : float
        The sum of all eigenvalues.
    rows : ndarray of shape (n,), optional
        The values of the feature in the sample.
    name : str, default=""
        The name of the feature.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The eigenfunctions.
    rows_ : matplotlib Line2D or None
        Ticks at the rows of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import EigenfunctionsDisplay
    >>> x = np.linspace(-1, 1, 100)[:, None]
    >>> EigenfunctionsDisplay.from_kernel(RBF(0.5), x, n_components=3).plot().eigenvalues.round(2).tolist()
    [0.52, 0.3, 0.13]
    """

    grid: Vector
    functions: Matrix
    eigenvalues: Vector
    _: KW_ONLY
    trace: float
    rows: Vector | None = None
    name: str = ""

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        X: Any,
        *,
        n_components: int = 4,
        feature: int | str = 0,
        grid_resolution: int = 300,
        max_rows: int = 1000,
        random_state: Any = 0,
    ) -> Self:
        """Estimate eigenfunctions from a sample, and evaluate them along one feature, with the others at their median.

        Parameters
        ----------
        kernel : str, Kernel, scikit-learn kernel or callable
            Positive semi-definite.
        X : array-like or data frame of shape (n, d)
            The sample.
        n_components : int, default=4
            How many eigenfunctions.
        feature : int or str, default=0
            The feature on the axis.
        grid_resolution : int, default=300
            Values of the feature.
        max_rows : int, default=1000
            The most rows of the sample that are used.
        random_state : int, RandomState or None, default=0
            Seed of the choice of rows and of the solver.

        Returns
        -------
        EigenfunctionsDisplay

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError
            If X or a parameter cannot be used, or the kernel is not positive.
        """
        rows = NamedRows.of(X)
        shown = shown_rows(len(rows.values), max_rows, random_state, "max_rows")
        psi = eigenfunctions(kernel, rows.like(rows.values[shown]), n_components, random_state=random_state)
        grid = rows.over((feature,), grid_resolution)
        places = grid.places[shown, 0]
        return cls(grid.axes[0], psi(grid.rows), psi.eigenvalues, trace=psi.trace, rows=places, name=grid.names[0])

    def plot(self, ax: Any = None) -> Self:
        """Draw the eigenfunctions.

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
        self._open(ax)
        self.ax_.axhline(0.0, color=QUIET, linewidth=0.7)
        labels = [f"{i + 1}: {eigenvalue:.3g}" for i, eigenvalue in enumerate(self.eigenvalues)]
        self.lines_ = curves(self.ax_, self.grid, self.functions, labels)
        self.rows_ = None
        if self.rows is not None:
            transform = self.ax_.get_xaxis_transform()
            (self.rows_,) = self.ax_.plot(
                self.rows, np.full(len(self.rows), 0.012), "|", color=QUIET, markersize=7, transform=transform
            )
        self.ax_.set(xlabel=self.name, ylabel="eigenfunction")
        share = self.eigenvalues.sum() / self.trace
        legend(self.ax_, self.lines_, f"eigenvalues ({share:.0%} of all)", outside=ax is None)
        return self

    def frame(self) -> Any:
        """Return the eigenfunctions: a row for each value of the feature.

        Returns
        -------
        pandas.DataFrame
            The feature, and ``psi_1``, ``psi_2``, ...
        """
        return table(self, {self.name: self.grid, **{f"psi_{i + 1}": f for i, f in enumerate(self.functions.T)}})
