"""The certificate of a function over landmarks for the problem of all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from mercer._types import Matrix, RowsLike
from mercer.solvers.solution import Certificate, Status


@dataclass(frozen=True)
class LandmarkCertificate(Certificate):
    r"""How far a function over landmarks is from the one that solves the problem of all rows.

    ``primal`` is the objective of the function, and the least objective of all functions is between ``dual`` and
    ``primal``: ``gap`` bounds what more landmarks could gain. ``violations["distance"]`` bounds the distance of both
    functions in the space of the kernel.

    Parameters
    ----------
    primal, dual, kkt_violation, iterations, seconds, peak_bytes, status, violations, convex, storage
        As for :class:`mercer.solvers.solution.Certificate`.
    gap_interval : tuple of two floats
        Of the gap of this dual solution. The ends are equal if all pairs of rows were evaluated; from a sample of the
        rows it is a confidence interval, and ``gap`` is its upper end.
    confidence : float
        With which all bounds hold together, those of every target, function and pair of classes: 1 if all pairs of
        rows were evaluated, else that of the intervals from a sample.
    rows_error : float
        A bound of the root mean square, weighted as in the fit, of the differences of both functions at the training
        rows, the largest one of several targets; infinite where none is known.
    _at : callable
        From new rows to bounds of predictions.
    """

    gap_interval: tuple[float, float] = field(kw_only=True)
    confidence: float = field(kw_only=True)
    rows_error: float = field(kw_only=True)
    _at: Callable[[Any], Matrix] = field(kw_only=True, repr=False, compare=False)

    def prediction_bound(self, X: RowsLike) -> Matrix:
        r"""Bound how far predictions are from those of the learner without landmarks.

        For least squares :math:`|f(x) - f^*(x)| \le \sqrt{g\, v(x) / \alpha}`, with the gap g of a target and a bound
        v(x) of the posterior variance, which is small near rows of the fit. For other losses
        :math:`|f(x) - f^*(x)| \le \sqrt{2 g\, k(x, x)}`, and what the best offset may change is added.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d), or other rows

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            Of what ``predict`` of a regression returns, and ``decision_function`` of a classifier; of several
            classes of an ``SVC``, a column for each pair; before predictions of a row are sorted, for quantiles.

        Raises
        ------
        ParameterError
            If no bound is known: for several classes of kernel logistic regression with offsets.
        """
        return self._at(X)

    def as_dict(self) -> dict[str, Any]:
        """Every figure, JSON-ready; the status by its name, and None for a ``rows_error`` that is not known."""
        # JSON has no number for infinity.
        rows_error = self.rows_error if math.isfinite(self.rows_error) else None
        own = {"confidence": self.confidence, "rows_error": rows_error}
        plain = Certificate(**{one.name: getattr(self, one.name) for one in fields(Certificate)})
        return {**plain.as_dict(), **own, "gap_interval": list(self.gap_interval)}

    def _advice(self) -> str:
        text = "nothing, if the gap is small enough. Otherwise raise n_landmarks, or lower tol where the fit has a gap."
        if self.status is Status.probable:
            text += " For a proof, certify with n_rows=None."
        return text
