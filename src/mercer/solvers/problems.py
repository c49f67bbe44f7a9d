"""The problems that solvers take, each stated by a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError

Vector = NDArray[np.float64]
Array = NDArray[np.floating]
Index = slice | NDArray[np.integer] | None


class GramMatrix(Protocol):
    """What a solver needs of a kernel matrix; it never sees the kernel or the data."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> Any: ...
    def __matmul__(self, V: Any) -> Any: ...
    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array: ...
    def diagonal(self) -> Array: ...
    def restrict(self, rows: Any = None, columns: Any = None) -> GramMatrix: ...
    def astype(self, dtype: Any) -> GramMatrix: ...


@dataclass(frozen=True, eq=False)
class BoxQP:
    r"""A quadratic programme with a box and one equality, the dual of most support vector machines.

    .. math:: \min_a \tfrac12 a^\top Q a - p^\top a \quad\text{s.t.}\quad y^\top a = y^\top a_0,\;
              0 \le a_i \le C_i, \qquad Q_{ij} = y_i y_j K_{ij}

    It is the dual of :math:`\min_{w,b} \tfrac12 \|w\|^2 + \sum_i C_i \max(0, p_i - y_i(\langle w, \phi_i\rangle
    + b)) + b\, y^\top a_0`.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n), in the precision that the certificate is to be computed from.
    y : ndarray of shape (n,)
        Signs, +1 or -1.
    upper : ndarray of shape (n,)
        The bounds C_i, positive and finite.
    p : ndarray of shape (n,), optional
        The linear term; ones by default, which is the C-SVC.
    convex : bool, default=True
        Whether K is positive semi-definite on vectors that sum to zero. If not, a stationary point is sought.

    Raises
    ------
    DataError
        If lengths differ, a sign is not +1 or -1, or one of the signs is missing.
    ParameterError
        If a bound is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> problem.p
    array([1., 1.])
    """

    gram: GramMatrix
    y: Vector
    upper: Vector
    p: Vector | None = None
    convex: bool = True

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        y = np.asarray(self.y, dtype=np.float64)
        upper = np.asarray(self.upper, dtype=np.float64)
        p = np.ones(n) if self.p is None else np.asarray(self.p, dtype=np.float64)
        if not self.gram.shape == (n, n) or not y.shape == upper.shape == p.shape == (n,):
            raise DataError(
                f"a problem over {n} rows needs y, upper and p of shape ({n},) and a square matrix; "
                f"the shapes are y {y.shape}, upper {upper.shape}, p {p.shape}, K {self.gram.shape}."
            )
        if set(np.unique(y)) != {-1.0, 1.0}:
            raise DataError(f"y must hold both signs, +1 and -1, and holds {np.unique(y)[:5]}.")
        if not (np.isfinite(upper).all() and (upper > 0).all()):
            raise ParameterError(
                f"every bound must be positive and finite; the smallest is {upper.min()}, the largest "
                f"{upper.max()}. Leave out rows whose weight is zero."
            )
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "p", p)


@dataclass(frozen=True)
class BoxQPValue:
    """The answer of a :class:`BoxQP`: ``alpha`` (n,) and the multiplier ``offset`` of the equality, which is b."""

    alpha: Vector
    offset: float
