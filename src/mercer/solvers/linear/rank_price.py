"""The rank of a preconditioner that pays: the time of the factor against that of the steps that it saves."""

from __future__ import annotations

import numpy as np

from mercer._types import Vector

# All costs are in operations of products of matrices. A step reads the factor twice, and from memory an entry takes as
# long as this many operations.
_APPLIED = 80.0
# The factor and its square, for each entry of the square.
_FACTORED = 3.0
# The bound of conjugate gradients on the number of steps has this factor before the logarithm.
_STEPS = 0.5
# This many blocks of pivots without a lower cost end the factorisation, since what each lowers the trace varies.
_PATIENCE = 2


class RankPrice:
    r"""Whether a low-rank factor of A has enough columns, after each block of pivots.

    With :math:`E = A - F F^\top`, conjugate gradients take about
    :math:`\tfrac12 \log(2 / \mathrm{tol}) \sqrt{1 + \|E\| / \mu}` steps.

    Parameters
    ----------
    n : int
        Rows.
    shifts : ndarray of shape (g,)
        The penalties mu, above 0, of systems that are solved one after the other.
    tol : float
        The residual to reach.
    product : float
        The cost of a product with A.

    Examples
    --------
    >>> price = RankPrice(1000, np.array([0.01]), 1e-8, 1e7)
    >>> [price(rank, fall) for rank, fall in ((50, 1.0), (100, 0.1), (200, 0.09), (300, 0.08))]
    [False, False, False, True]
    """

    def __init__(self, n: int, shifts: Vector, tol: float, product: float) -> None:
        self._n, self._shifts, self._product = n, shifts, product
        self._steps = _STEPS * max(float(np.log(2.0 / tol)), 1.0)
        self._least, self._worse = np.inf, 0

    def __call__(self, rank: int, fall: float) -> bool:
        """Whether ``rank`` columns are enough; the last one of them lowered the trace of E by ``fall``."""
        cost = self._cost(rank, fall)
        self._worse = 0 if cost < self._least else self._worse + 1
        self._least = min(self._least, cost)
        return self._worse >= _PATIENCE

    def _cost(self, rank: int, fall: float) -> float:
        with np.errstate(over="ignore"):
            steps = float((self._steps * np.sqrt(1.0 + max(fall, 0.0) / self._shifts)).sum())
        return _FACTORED * self._n * rank**2 + steps * (self._product + _APPLIED * self._n * rank)
