"""The result of a check of a Gram matrix, as a value that prints readably."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np


class Verdict(Enum):
    """Whether a matrix can be the Gram matrix of a kernel. The values are the help texts."""

    definite = "positive definite: every eigenvalue is above the tolerance"
    semidefinite = "positive semi-definite, as far as tested: no eigenvalue was found below -tolerance"
    conditional = (
        "only conditionally positive: c'Kc >= 0 for all c that sum to 0, but not for others. It suits learners "
        "with an intercept, such as SVC; kernel.centered(X) makes it positive"
    )
    indefinite = (
        "indefinite: no inner product gives these values. Choose another kernel, repair the matrix "
        "with validity.nearest, or use a learner with allow_indefinite=True"
    )
    asymmetric = (
        "not symmetric, so it is not a Gram matrix. If this is only inaccuracy, pass (K + K.T) / 2; "
        "what follows describes this symmetric part"
    )


@dataclass(frozen=True, eq=False)
class ValidityReport:
    """The result of :func:`mercer.validity.check`; ``print`` it for a summary.

    Parameters
    ----------
    n : int
        Rows and columns of the matrix.
    dtype : str
        Precision in which its entries were computed.
    method : str
        How the eigenvalues were computed: ``"full spectrum"`` or ``"Lanczos"``.
    verdict : Verdict
        ``verdict.value`` is its description in words.
    symmetric : bool
        Whether ``asymmetry`` is within ``n * eps * largest |K_ij|``.
    asymmetry : float
        The largest ``|K_ij - K_ji|`` (among the entries compared, see ``notes``).
    asymmetry_at : (int, int) or None
        Its row and column; None if it is 0.
    smallest, largest : float
        The range of the eigenvalues of ``(K + K') / 2``.
    tolerance : float
        Eigenvalues within ``[-tolerance, tolerance]`` cannot be distinguished from 0.
    tolerance_reason : str
        Where the tolerance comes from.
    witness : (n,) ndarray or None
        A vector ``c`` of length 1 with ``c'Kc < -tolerance``, if there is one.
    witness_value : float or None
        ``c'Kc``, evaluated in float64.
    conditionally_positive : bool
        Whether no ``c`` that sums to 0 has ``c'Kc < -tolerance``.
    conditional_smallest : float or None
        The least ``c'Kc`` over ``c`` of length 1 that sum to 0; None if the matrix is positive semi-definite, which
        implies it.
    conditional_witness : (n,) ndarray or None
        The ``c`` that attains it, if it is below ``-tolerance``.
    rank : int or None
        Number of eigenvalues beyond the tolerance in absolute value; None if not computed.
    condition_number : float or None
        Largest over smallest absolute eigenvalue; infinite if the latter is within the tolerance, None if not
        computed.
    ridge : float
        The ``lambda`` of ``effective_dimension``.
    effective_dimension : float or None
        ``sum_i s_i / (s_i + lambda)`` over the eigenvalues, negative ones taken as 0: the degrees of freedom of
        ``KernelRidge(alpha=lambda)``. None if not computed.
    effective_dimension_error : float
        0 from a full spectrum; from Lanczos two standard errors of a random estimate.
    declared : str or None
        The declared definiteness of the kernel (``kernel.definiteness``); None for a matrix.
    notes : tuple of str
        Further remarks.
    """

    n: int
    dtype: str
    method: str
    verdict: Verdict
    symmetric: bool
    asymmetry: float
    asymmetry_at: tuple[int, int] | None
    smallest: float
    largest: float
    tolerance: float
    tolerance_reason: str
    witness: np.ndarray | None
    witness_value: float | None
    conditionally_positive: bool
    conditional_smallest: float | None
    conditional_witness: np.ndarray | None
    rank: int | None
    condition_number: float | None
    ridge: float
    effective_dimension: float | None
    effective_dimension_error: float
    declared: str | None
    notes: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether the matrix is symmetric and positive semi-definite within the tolerance."""
        return self.verdict in (Verdict.definite, Verdict.semidefinite)

    def __str__(self) -> str:
        n = self.n
        symmetric = f"{'yes' if self.symmetric else 'no'}, worst |K_ij - K_ji| = {self.asymmetry:.3g}"
        where = "" if self.asymmetry_at is None else f" at {list(self.asymmetry_at)}"
        rank = "not computed" if self.rank is None else f"{self.rank} of {n}"
        condition = "not computed" if self.condition_number is None else f"{self.condition_number:.3g}"
        dimension = "not computed"
        if self.effective_dimension is not None:
            error = f" +- {self.effective_dimension_error:.2g}" if self.effective_dimension_error else ""
            dimension = f"{self.effective_dimension:.5g}{error} at lambda = {self.ridge:g}"
        lines = [
            f"Gram matrix, {n} x {n}, {self.dtype}, by {self.method}",
            f"  verdict              {self.verdict.value}.",
            f"  symmetric            {symmetric}{where}",
            f"  eigenvalues          from {self.smallest:.6g} to {self.largest:.6g}",
            f"  tolerance            {self.tolerance:.3g} = {self.tolerance_reason}",
            *self._witness_lines(),
            f"  numerical rank       {rank}",
            f"  condition number     {condition}",
            f"  effective dimension  {dimension}",
        ]
        if self.declared is not None:
            lines.append(f"  the kernel declares  {self.declared}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _witness_lines(self) -> list[str]:
        lines = []
        if self.witness is not None:
            heaviest = np.argsort(-np.abs(self.witness), kind="stable")[:3]
            weights = ", ".join(f"c[{i}] = {self.witness[i]:.3g}" for i in heaviest)
            more = ", ..." if self.n > 3 else ""
            lines.append(f"  witness              c'Kc = {self.witness_value:.6g} with {weights}{more}")
        if self.conditional_smallest is not None:
            lines.append(f"  where c sums to 0    c'Kc >= {self.conditional_smallest:.6g}")
        return lines
