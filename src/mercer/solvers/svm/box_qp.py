"""The quadratic programme of every support vector machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.gram.protocol import GramMatrix


@dataclass(frozen=True, eq=False)
class BoxQP:
    r"""A quadratic programme with box constraints and a few sums, the dual of every support vector machine.

    .. math:: \min_\beta \tfrac12 \beta^\top K \beta - c^\top \beta + \varepsilon \sum_i |\beta_i|
              \quad\text{s.t.}\quad l \le \beta \le u,\; \sum_{i \in g} \beta_i = s_g \text{ for every group } g

    The weights :math:`\beta` are those of the expansion :math:`f(x) = \sum_i \beta_i k(x_i, x) + b`. It is the dual
    of :math:`\min_{w, b} \tfrac12 \|w\|^2 + \sum_i h_i(c_i - \langle w, \phi_i \rangle - b_{g(i)}) + \sum_g b_g s_g`
    with :math:`h_i(r) = \max(u_i (r - \varepsilon)_+, -l_i (-r - \varepsilon)_+)`.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n), in the precision that the certificate is to be computed from.
    linear : ndarray of shape (n,)
        The linear term c.
    lower, upper : ndarray of shape (n,)
        The box, finite, with ``lower <= 0 <= upper`` and ``lower < upper``.
    tube : float, default=0.0
        The width :math:`\varepsilon` of the tube in which a residual costs nothing.
    totals : tuple of float, default=(0.0,)
        The sums s_g: one for all rows, two for two groups of rows, none where there is no offset b.
    groups : ndarray of shape (n,), optional
        0 or 1 for each row; with two totals only.
    convex : bool, default=True
        Whether K is positive semi-definite on vectors that keep the sums. If not, a stationary point is sought.
    once : GramMatrix, optional
        The matrix of n / 2 rows, where the problem states these twice: first all in group 0 and then all in group 1,
        with one linear term for both.

    Raises
    ------
    DataError
        If lengths differ, or no weights in the box have the required sums.
    ParameterError
        If the box is not finite, or does not hold zero.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.array([10.0, 5.0]))
    >>> problem.lower, problem.upper
    (array([ 0., -5.]), array([10.,  0.]))
    """

    gram: GramMatrix
    linear: Vector
    lower: Vector
    upper: Vector
    tube: float = 0.0
    totals: tuple[float, ...] = (0.0,)
    groups: NDArray[np.int8] | None = None
    convex: bool = True
    once: GramMatrix | None = None

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        linear, lower, upper = (np.asarray(v, dtype=np.float64) for v in (self.linear, self.lower, self.upper))
        if not self.gram.shape == (n, n) or not linear.shape == lower.shape == upper.shape == (n,):
            raise DataError(
                f"a problem over {n} rows needs a linear term and bounds of shape ({n},) and a square matrix; the "
                f"shapes are linear {linear.shape}, lower {lower.shape}, upper {upper.shape}, K {self.gram.shape}."
            )
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise ParameterError(
                f"every bound must be finite; they reach from {lower.min()} to {upper.max()}. Choose a finite C."
            )
        if not ((lower <= 0) & (upper >= 0) & (lower < upper)).all():
            at = int(np.argmin((lower <= 0) & (upper >= 0) & (lower < upper)))
            raise ParameterError(
                f"every row needs lower <= 0 <= upper and lower < upper; row {at} has {lower[at]} and {upper[at]}. "
                "Leave out rows whose weight is zero."
            )
        for name, value in (("linear", linear), ("lower", lower), ("upper", upper)):
            object.__setattr__(self, name, value)
        groups = None if self.groups is None else np.asarray(self.groups, dtype=np.int8)
        if (groups is None) != (len(self.totals) < 2) or (groups is not None and groups.shape != (n,)):
            raise DataError(
                f"two totals need a group for each of {n} rows, but there are {len(self.totals)} totals and "
                f"{'no groups' if groups is None else f'groups of shape {groups.shape}'}."
            )
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "totals", tuple(self._total_in_reach(*pair) for pair in enumerate(self.totals)))

    def _total_in_reach(self, number: int, total: float) -> float:
        """The total of a group; if only rounding separates it from a sum that the weights can reach, that sum."""
        among = slice(None) if self.groups is None else self.groups == number
        lower, upper = self.lower[among], self.upper[among]
        with np.errstate(over="ignore"):
            low, high = float(lower.sum()), float(upper.sum())
            rounding = len(lower) * np.finfo(np.float64).eps * (high - low)
        if not low - rounding <= total <= high + rounding:
            raise DataError(f"weights in the box add up to between {low} and {high}, but {total} is required.")
        return min(max(total, low), high)

    @classmethod
    def classification(
        cls,
        gram: GramMatrix,
        y: Vector,
        upper: Vector,
        p: Vector | None = None,
        *,
        intercept: bool = True,
        convex: bool = True,
    ) -> BoxQP:
        """The dual of ``min |w|^2 / 2 + sum_i upper_i max(0, p_i - y_i (<w, phi_i> + b))``, ``beta = y alpha``.

        Parameters
        ----------
        gram : GramMatrix
            K, (n, n).
        y : ndarray of shape (n,)
            Signs, +1 or -1, both present.
        upper : ndarray of shape (n,)
            Bounds of the sizes of the weights.
        p : ndarray of shape (n,), optional
            Ones by default, which is the C-SVC.
        intercept : bool, default=True
            Whether there is an offset b, so that the weights sum to 0.
        convex : bool, default=True
            Whether K is positive semi-definite on vectors that keep the sum.

        Returns
        -------
        BoxQP
        """
        y, upper = np.asarray(y, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if not ((np.abs(y) == 1.0).all() and y.min(initial=0.0) < 0.0 < y.max(initial=0.0)):
            raise DataError(f"y must hold both signs, +1 and -1, but holds {np.unique(y)[:5]}.")
        if y.shape != upper.shape:
            raise DataError(f"y and upper must have one shape, but have {y.shape} and {upper.shape}.")
        linear = y if p is None else y * np.asarray(p, dtype=np.float64)
        lower, upper = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
        return cls(gram, linear, lower, upper, totals=(0.0,) if intercept else (), convex=convex)


@dataclass(frozen=True)
class BoxQPValue:
    """The answer of a :class:`BoxQP`.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        The weights of the expansion.
    offsets : tuple of float
        The multipliers of the sums, one for each of ``totals``: the offset b.
    gradient : ndarray of shape (n,)
        ``F = linear - K beta`` in float64, so that ``linear - F`` is the expansion without b at every row.
    """

    beta: Vector
    offsets: tuple[float, ...]
    gradient: Vector

    @property
    def alpha(self) -> Vector:
        """The absolute weights."""
        return np.abs(self.beta)

    @property
    def offset(self) -> float:
        """b if there is one sum, 0 if there is none."""
        return self.offsets[0] if self.offsets else 0.0
