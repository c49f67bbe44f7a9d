"""The log likelihood of ordered classes with its derivatives by latent values and cut-points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import RowsLike, Vector
from mercer.data.vectors import refuse_unreal
from mercer.engine import memory
from mercer.estimators.ordinal.ordered import class_codes
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, without_noise
from mercer.estimators.shared.labels import check_labels
from mercer.estimators.shared.weights import check_sample_weight
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.risk.ordinal_problem import OrdinalLosses, QuadraticLoss


class OrdinalGradient(NamedTuple):
    """First derivatives of the log likelihood: by the latent values, (n,), and by the cut-points, (k - 1,)."""

    latent: Vector
    thresholds: Vector

    def vector(self) -> Vector:
        """Return both as one vector, (n + k - 1,), the latent values first."""
        return np.concatenate(self)


class OrdinalHessian(NamedTuple):
    """Second derivatives of the log likelihood.

    ``latent`` (n,) is the diagonal of the block of the latent values, which is 0 elsewhere: each row has its own.
    ``cross`` (n, k - 1) is by latent values and cut-points, ``thresholds`` (k - 1, k - 1), tridiagonal, by cut-points.
    """

    latent: Vector
    cross: Vector
    thresholds: Vector

    def matrix(self) -> Vector:
        """Return the symmetric matrix (n + k - 1, n + k - 1), in the order of :meth:`OrdinalGradient.vector`.

        Raises
        ------
        MemoryBudgetError
            If it does not fit.
        """
        n = len(self.latent)
        size = n + len(self.thresholds)
        way_out = "Use the parts latent, cross and thresholds, which need far less memory."
        with memory.reserve(8 * size * size, f"the Hessian ({size} x {size})", way_out):
            whole = np.zeros((size, size))
            np.fill_diagonal(whole[:n, :n], self.latent)
            whole[:n, n:], whole[n:, :n], whole[n:, n:] = self.cross, self.cross.T, self.thresholds
        return whole


@dataclass(frozen=True, eq=False)
class _Point:
    """Where derivatives are computed, in units of a slope of 1: the ``used`` ones of n rows have a weight.

    ``impossible`` (n,) marks the used rows whose class has no room between its cut-points.
    """

    losses: OrdinalLosses
    latent: Vector
    cuts: Vector
    slope: float
    used: NDArray[np.intp]
    impossible: NDArray[np.bool_]

    @property
    def movable(self) -> NDArray[np.bool_]:
        """Which cut-points (k - 1,) are finite. Derivatives by the others are 0, but some links leave about 1e-286."""
        return np.isfinite(self.cuts)


class OrdinalLikelihood(KernelEstimator):
    """The likelihood of an estimator of ordered classes."""

    link: str
    classes_: np.ndarray
    thresholds_: Vector
    slope_: float
    latent: Any
    X_fit_: Any
    dual_coef_: Vector

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    @property
    def _expansion(self) -> KernelExpansion:
        # White terms are the noise of a process, and not part of its function.
        return KernelExpansion(without_noise(self.kernel_), self.X_fit_, self.dual_coef_[None], n_jobs=self.n_jobs)

    def log_likelihood(
        self,
        X: RowsLike,
        y: ArrayLike,
        latent: Any = None,
        thresholds: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        r"""Return the log likelihood of labels at given latent values and cut-points, those of the fit by default.

        .. math:: \ell(f, \phi) = \sum_i s_i \log\bigl(F(a (\phi_{t_i} - f_i)) - F(a (\phi_{t_i - 1} - f_i))\bigr)

        with the weights s, the slope a (``slope_``) and the link F; :math:`\phi_0 = -\infty`, :math:`\phi_k = \infty`.
        There is no penalty in it, no C and no ``class_weight``.

        Parameters
        ----------
        X : array-like of shape (n, d), or (n, n_samples) for ``"precomputed"``
            Rows. With ``latent`` their number is checked, and no kernel is evaluated.
        y : array-like of shape (n,)
            Labels among ``classes_``.
        latent : array-like of shape (n,), optional
            f, finite; by default ``latent(X)``.
        thresholds : array-like of shape (k - 1,), optional
            Cut-points in units of f, none below the one before it; by default ``thresholds_``. Infinite ones are
            allowed, as in ``thresholds_``.
        sample_weight : array-like of shape (n,), optional
            s; by default ones. The labels of rows of weight 0 are ignored.

        Returns
        -------
        float
            ``-inf`` if a row has a class between equal cut-points, whose probability is 0.

        Raises
        ------
        DataError
            If X, y or the weights cannot be used: another number of rows, NaN, an unknown label.
        ParameterError
            If ``latent`` or ``thresholds`` has another shape or NaN, or the thresholds are out of order.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOrdinalRegression
        >>> X, y = np.linspace(0, 3, 31)[:, None], np.repeat([1, 2, 3], [10, 11, 10])
        >>> model = KernelOrdinalRegression().fit(X, y)
        >>> p = model.predict_proba(X)
        >>> bool(np.isclose(model.log_likelihood(X, y), np.log(p[np.arange(31), y - 1]).sum()))
        True
        """
        at = self._point(X, y, latent, thresholds, sample_weight)
        if at.impossible.any():
            return -np.inf
        with np.errstate(divide="ignore"):
            return 0.0 - at.losses.loss(at.latent, at.cuts)

    def gradient(
        self,
        X: RowsLike,
        y: ArrayLike,
        latent: Any = None,
        thresholds: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> OrdinalGradient:
        r"""Return the first derivatives of :meth:`log_likelihood`.

        They are by the latent values f_i themselves, not by a f_i, and by the cut-points in the same units:

        .. math:: \frac{\partial \ell}{\partial f_i} = -a s_i \frac{p(u_i) - p(l_i)}{F(u_i) - F(l_i)}, \qquad
                  \frac{\partial \ell}{\partial \phi_j} = a \sum_{t_i = j} \frac{s_i p(u_i)}{F(u_i) - F(l_i)}
                  - a \sum_{t_i = j + 1} \frac{s_i p(l_i)}{F(u_i) - F(l_i)}

        with :math:`u_i = a (\phi_{t_i} - f_i)`, :math:`l_i = a (\phi_{t_i - 1} - f_i)` and the density p of F. With the
        logistic link the first is :math:`a s_i (F(u_i) + F(l_i) - 1)`. The gradient by weights w of features,
        ``f = Phi w``, is ``Phi.T @ gradient.latent``.

        At the optimum of :class:`~mercer.KernelOrdinalRegression` ``C * gradient.latent`` (with the weights of the fit,
        ``class_weight`` among them) are coefficients of f: ``dual_coef_``, but that equal rows may share theirs
        differently. ``gradient.thresholds`` is 0 there; for a class that no row has, between two equal cut-points,
        the sum of their derivatives is.

        Parameters
        ----------
        X, y, latent, thresholds, sample_weight
            As for :meth:`log_likelihood`.

        Returns
        -------
        OrdinalGradient
            A named tuple of ``latent`` (n,) and ``thresholds`` (k - 1,), which is 0 for infinite cut-points;
            ``vector()`` is both as one vector, (n + k - 1,).

        Raises
        ------
        DataError, ParameterError
            As :meth:`log_likelihood` does; and DataError if the log likelihood is ``-inf``, or derivatives overflow.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOrdinalRegression
        >>> X, y = np.linspace(0, 3, 31)[:, None], np.repeat([1, 2, 3], [10, 11, 10])
        >>> model = KernelOrdinalRegression(C=2.0).fit(X, y)
        >>> slope = model.gradient(X, y)
        >>> np.allclose(2.0 * slope.latent, model.dual_coef_), np.allclose(slope.thresholds, 0.0, atol=1e-6)
        (True, True)
        """
        at, e = self._expanded_losses(X, y, latent, thresholds, sample_weight)
        by_latent = np.zeros(len(at.impossible))
        by_latent[at.used] = 0.0 - at.slope * e.slope
        return OrdinalGradient(by_latent, 0.0 - at.slope * e.cut_slope * at.movable)

    def hessian(
        self,
        X: RowsLike,
        y: ArrayLike,
        latent: Any = None,
        thresholds: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> OrdinalHessian:
        r"""Return the second derivatives of :meth:`log_likelihood`.

        They are by the latent values f_i and the cut-points, in the units of f, as in :meth:`gradient`. The block of
        the latent values is diagonal; with the logistic link its entries are

        .. math:: \frac{\partial^2 \ell}{\partial f_i^2}
                  = -a^2 s_i \bigl(F(u_i) (1 - F(u_i)) + F(l_i) (1 - F(l_i))\bigr).

        By weights w of features, ``f = Phi w``, the Hessian is ``Phi.T @ (hessian.latent[:, None] * Phi)``. As the log
        likelihood is concave in f and the cut-points together, the matrix is negative semi-definite.

        Parameters
        ----------
        X, y, latent, thresholds, sample_weight
            As for :meth:`log_likelihood`.

        Returns
        -------
        OrdinalHessian
            A named tuple of ``latent`` (n,), the diagonal, ``cross`` (n, k - 1) and ``thresholds`` (k - 1, k - 1);
            ``matrix()`` is the whole matrix, (n + k - 1, n + k - 1).

        Raises
        ------
        DataError, ParameterError
            As :meth:`gradient` does.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOrdinalRegression
        >>> X, y = np.linspace(0, 3, 31)[:, None], np.repeat([1, 2, 3], [10, 11, 10])
        >>> H = KernelOrdinalRegression().fit(X, y).hessian(X, y)
        >>> H.latent.shape, H.cross.shape, H.thresholds.shape, H.matrix().shape
        ((31,), (31, 2), (2, 2), (33, 33))
        """
        at, e = self._expanded_losses(X, y, latent, thresholds, sample_weight)
        n, square = len(at.impossible), at.slope**2
        by_latent, cross = np.zeros(n), np.zeros((n, len(at.cuts)))
        by_latent[at.used], cross[at.used] = 0.0 - square * e.curvature, 0.0 - square * e.cross * at.movable
        return OrdinalHessian(by_latent, cross, 0.0 - square * e.cut_curvature * np.outer(at.movable, at.movable))

    def _expanded_losses(self, X: RowsLike, y: ArrayLike, *arguments: Any) -> tuple[_Point, QuadraticLoss]:
        """The losses to second order, all finite."""
        at = self._point(X, y, *arguments)
        if at.impossible.any():
            row = int(at.impossible.argmax())
            raise DataError(
                f"row {row} has a class between two equal cut-points, so its probability is 0 and its log likelihood "
                "has no derivatives. Pass thresholds with room for this class, or give such rows the weight 0."
            )
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            e = at.losses.expand(at.latent, at.cuts)
            second = [at.slope**2 * part for part in (e.curvature, e.cross, e.cut_curvature)]
        if not all(np.isfinite(part).all() for part in (e.slope, e.cut_slope, *second)):
            row = int(at.used[np.argmax(np.nan_to_num(e.slopes.value, nan=np.inf, posinf=np.inf))])
            raise DataError(
                f"derivatives of the log likelihood overflow float64; row {row} is the least probable one. Pass latent "
                "values closer to the cut-points of their classes, or cut-points further apart."
            )
        return at, e

    def _point(
        self, X: RowsLike, y: ArrayLike, latent: Any, thresholds: Any, sample_weight: ArrayLike | None
    ) -> _Point:
        """The arguments of the public methods, checked."""
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        weight = check_sample_weight(sample_weight, rows)
        used, k = np.flatnonzero(weight), len(self.classes_)
        codes = class_codes(self.classes_, check_labels(type(self).__name__, y, rows.shape[0]), used)
        cuts = self.thresholds_ if thresholds is None else _as_cuts(thresholds, k)
        f = None if latent is None else _as_numbers(latent, "latent", rows.shape[0], "one for each row of X")
        if f is not None and not np.isfinite(f).all():
            bad = int(np.argmin(np.isfinite(f)))
            raise ParameterError(f"latent must be finite, but is {f[bad]} in row {bad}; pass numbers only.")
        f = self.latent(X) if f is None else f
        slope = float(self.slope_)
        with np.errstate(over="ignore"):
            scaled, cuts = slope * f[used], slope * cuts
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        impossible = np.zeros(len(codes), dtype=bool)
        impossible[used] = ~(ends[1:] > ends[:-1])[codes[used]]
        losses = OrdinalLosses(codes[used], weight[used], LINKS[self.link], n_classes=k)
        return _Point(losses, scaled, cuts, slope, used, impossible)


def _as_numbers(values: Any, name: str, length: int, meaning: str) -> Vector:
    """Return ``values`` as a vector of that length, in float64."""
    refuse_unreal(values, name)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be {length} numbers ({meaning}), but is {values!r:.80}.") from error
    if numbers.shape != (length,):
        raise ParameterError(
            f"{name} has the shape {numbers.shape}, and must be of shape ({length},): {meaning}. Pass a vector."
        )
    return numbers


def _as_cuts(thresholds: Any, k: int) -> Vector:
    """Return the cut-points between k classes."""
    cuts = _as_numbers(thresholds, "thresholds", k - 1, f"the cut-points between {k} classes")
    # Infinite neighbours have no difference.
    if np.isnan(cuts).any() or (cuts[1:] < cuts[:-1]).any():
        raise ParameterError(
            f"thresholds must be numbers in ascending order, but are {cuts[:20].tolist()}; sort them, and replace NaN."
        )
    return cuts
