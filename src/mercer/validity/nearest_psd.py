"""Replacement of an indefinite matrix by a positive semi-definite one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import eigh

from mercer._errors import ParameterError
from mercer.engine.memory import require
from mercer.validity.operand import Operand

Method = Literal["clip", "flip", "shift"]


@dataclass(frozen=True, eq=False)
class NearestMatrix:
    """The result of :func:`nearest`; ``print`` it for a summary of the change.

    Parameters
    ----------
    matrix : (n, n) ndarray
        Symmetric and, up to rounding, positive semi-definite.
    method : {"clip", "flip", "shift"}
        How the eigenvalues were changed.
    changed : int
        How many eigenvalues changed.
    smallest : float
        The smallest eigenvalue of ``K``.
    shift : float
        The number added to every eigenvalue, that is, to the diagonal; 0 unless ``method`` is ``"shift"``.
    distance : float
        ``|matrix - K|`` in the Frobenius norm.
    relative_distance : float
        ``distance`` divided by ``|K|``.
    """

    matrix: np.ndarray
    method: Method
    changed: int
    smallest: float
    shift: float
    distance: float
    relative_distance: float

    def __str__(self) -> str:
        n = len(self.matrix)
        if not self.changed:
            did = f"the {n} eigenvalues were left as they are: none is below 0"
        elif self.method == "clip":
            did = (
                f"{self.changed} of {n} eigenvalues (the smallest {self.smallest:.6g}) were set to 0, which gives "
                "the nearest positive semi-definite matrix in the Frobenius norm"
            )
        elif self.method == "flip":
            did = f"{self.changed} of {n} eigenvalues (the smallest {self.smallest:.6g}) had their sign turned"
        else:
            did = (
                f"{self.shift:.6g} was added to the diagonal, and so to all {n} eigenvalues, of which the smallest "
                f"was {self.smallest:.6g}; values between different rows are as they were"
            )
        return (
            f"{self.method}: {did}. The matrix moved by {self.distance:.6g} in the Frobenius norm, "
            f"{100 * self.relative_distance:.3g} % of its size."
        )


def nearest(K: Any, method: Method = "clip") -> NearestMatrix:
    """Return a positive semi-definite matrix near ``K``, made by changing its eigenvalues ``s_i``.

    ``"clip"`` replaces them by ``max(s_i, 0)``, which gives the nearest positive semi-definite matrix in the Frobenius
    norm. ``"flip"`` replaces them by ``|s_i|``, which keeps the size of negative components. ``"shift"`` replaces them
    by ``s_i - min(s, 0)``, which changes the diagonal only. An asymmetric ``K`` is first replaced by ``(K + K') / 2``.

    The result is a matrix for these rows only. Clipped or flipped, it no longer agrees with the kernel's values
    for new rows; shifted, it still does.

    Parameters
    ----------
    K : (n, n) array, Gram or PrecomputedGram
    method : {"clip", "flip", "shift"}, default "clip"

    Returns
    -------
    NearestMatrix
        The matrix (of the dtype of ``K``, float64 for integers), and how it was changed.

    Raises
    ------
    DataError
        If ``K`` is not a square, non-empty matrix of finite numbers.
    ParameterError
        If ``method`` is not one of these.
    MemoryBudgetError
        If the eigenvectors do not fit the memory budget.

    References
    ----------
    Higham (1988), *Computing a nearest symmetric positive semidefinite matrix*, theorem 2.1; Chen et al. (2009),
    *Similarity-based classification*, JMLR 10, 747-776.

    Examples
    --------
    >>> result = nearest([[1.0, 2.0], [2.0, 1.0]])
    >>> result.matrix.round(6).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> print(nearest([[1.0, 2.0], [2.0, 1.0]], "shift"))
    shift: 1 was added to the diagonal, and so to all 2 eigenvalues, of which the smallest was -1; values between \
different rows are as they were. The matrix moved by 1.41421 in the Frobenius norm, 44.7 % of its size.
    """
    if method not in get_args(Method):
        raise ParameterError(f"method must be one of {', '.join(map(repr, get_args(Method)))}, but is {method!r}.")
    operand = Operand.of(K)
    require(5 * 8 * operand.n**2, f"the eigenvectors of a {operand.n} x {operand.n} matrix")
    before = operand.dense()
    S = (before + before.T) / 2
    values, vectors = eigh(S)
    smallest = float(values[0])
    if smallest >= 0:
        after, changed, shift = S, 0, 0.0
    elif method == "shift":
        after, changed, shift = S - smallest * np.eye(operand.n), operand.n, -smallest
    else:
        magnitudes = np.maximum(values, 0.0) if method == "clip" else np.abs(values)
        # As a matrix times its transpose, which is positive to the rounding of its own size.
        factor = vectors * np.sqrt(magnitudes)
        after, changed, shift = factor @ factor.T, int((values < 0).sum()), 0.0
    distance, size = float(np.linalg.norm(after - before)), float(np.linalg.norm(before))
    matrix = after.astype(operand.dtype, copy=False)
    return NearestMatrix(matrix, method, changed, smallest, shift, distance, distance / size if size else 0.0)
