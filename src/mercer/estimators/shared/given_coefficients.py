"""Coefficients from a user or another library, checked and laid out over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mercer._errors import DataError, ParameterError
from mercer._types import RowsLike, Vector
from mercer.data.objects import short
from mercer.solvers.solution import Certificate


@dataclass(frozen=True, eq=False)
class GivenCoefficients:
    """The given ``dual_coef``, ``support`` and ``intercept``; each None if it was not given."""

    dual_coef: Any
    support: Any
    intercept: Any

    def weights(self, outputs: int, n: int, weight: Vector) -> Vector:
        """Coefficients (outputs, n) of all rows.

        Raises
        ------
        DataError
            If their number is wrong, one is not finite, or a row of zero weight has one.
        """
        A = self.dual_coef.toarray() if sp.issparse(self.dual_coef) else self.dual_coef
        try:
            A = np.atleast_2d(np.asarray(A, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"dual_coef must be numbers, but is not: {error}.") from error
        support = np.arange(n) if self.support is None else _positions(self.support, n)
        if A.shape != (outputs, len(support)):
            rows = f"the {n} rows of X" if self.support is None else f"the {len(support)} positions in support"
            raise DataError(
                f"dual_coef must have the shape ({outputs}, {len(support)}), a column for each of {rows}, but has the "
                f"shape {A.shape}." + (" Pass support for coefficients of some rows." if self.support is None else "")
            )
        if not np.isfinite(A).all():
            i, j = np.argwhere(~np.isfinite(A))[0]
            raise DataError(f"dual_coef must be finite; the entry in row {i}, column {j} is {A[i, j]}.")
        whole = np.zeros((outputs, n))
        whole[:, support] = A
        idle = np.flatnonzero((weight == 0) & whole.any(axis=0))
        if len(idle):
            raise DataError(
                f"row {idle[0]} has the sample weight 0 and a coefficient of {np.abs(whole[:, idle[0]]).max():g}; rows "
                "of weight 0 have no part in the optimal function. Set their coefficients to 0."
            )
        return whole

    def offsets(self, count: int, *, allowed: bool) -> Vector | None:
        """Offsets (count,); None for the best ones.

        Raises
        ------
        DataError
            If their number is wrong, or one is not finite.
        ParameterError
            If the problem has no offset, and one that is not 0 was given.
        """
        if self.intercept is None:
            return None if allowed else np.zeros(count)
        try:
            b = np.atleast_1d(np.asarray(self.intercept, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"intercept must be a number, or several, but is {short(self.intercept)}.") from error
        if b.shape == (1,) and not allowed:
            b = np.repeat(b, count)
        if b.shape != (count,) or not np.isfinite(b).all():
            raise DataError(f"intercept must be {count} finite number(s), but is {short(self.intercept)}.")
        if b.any() and not allowed:
            raise ParameterError(
                f"the problem has no offset, and intercept is {short(self.intercept)}; leave it out, or set "
                "fit_intercept=True where the model has that parameter."
            )
        return b


@runtime_checkable
class CertifiesCoefficients(Protocol):
    """An estimator that evaluates its optimisation problem at coefficients from any source, for ``mercer.certify``."""

    n_jobs: Any

    def certificate_of(
        self, coefficients: GivenCoefficients, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Certificate:
        """State the problem of a fit to these rows, and return the certificate of the coefficients for it."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


def _positions(support: Any, n: int) -> np.ndarray:
    positions = np.asarray(support)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise DataError(
            f"support must be the positions of rows, whole numbers, but is an array of {positions.dtype} with the "
            f"shape {positions.shape}."
        )
    positions = positions.astype(np.intp)
    wrong = positions[(positions < 0) | (positions >= n)]
    if len(wrong):
        raise DataError(f"support names row {wrong[0]}, but X has only the rows 0 to {n - 1}; pass the X of the fit.")
    if len(np.unique(positions)) < len(positions):
        raise DataError("support names a row twice; add its coefficients.")
    return positions
