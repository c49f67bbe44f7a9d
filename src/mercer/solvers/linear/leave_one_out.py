"""Exact leave-one-out predictions of a kernel system, from one inverse instead of n fits."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import threads
from mercer.gram.hold import check_finite, reserve_square
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear.cholesky import factor_definite
from mercer.solvers.linear.linear_system import LinearSystem, ScaledGram
from mercer.solvers.linear.low_rank import LowRankForm
from mercer.solvers.linear.low_rank_solve import low_rank_form, regular_shift


def leave_one_out(system: LinearSystem, coefficients: Matrix, *, n_jobs: int | None = None) -> Matrix:
    r"""The prediction for every row by the fit to all other observations.

    .. math:: f_{-i}(x_i) = t_i - \frac{c_i}{(w_i - m_i) / \mu + m_i\, [(SKS + \mu I)^{-1}]_{ii}},
              \qquad m_i = \min(1, w_i)

    A row of weight w stands for w observations, of which one is left out; what weighs less than one is left out as a
    whole. So integer weights are the same as repeated rows. Without weights, this is the formula of the reference.

    Parameters
    ----------
    system : LinearSystem
        With n rows and k targets.
    coefficients : ndarray of shape (n, k)
        Its solution c.
    n_jobs : int, optional
        As in :func:`mercer.solvers.linear.cholesky.solve`.

    Returns
    -------
    ndarray of shape (n, k)

    Raises
    ------
    MemoryBudgetError
        If the matrix in float64 does not fit the memory budget.
    NumericalError
        If the matrix is singular to working precision, so that it has no inverse.

    Notes
    -----
    Takes a float64 factor and its inverse for every distinct shift, :math:`2 n^3 / 3` operations and
    :math:`8 n^2` bytes, whichever way the coefficients were computed: the diagonal of an inverse cannot be refined.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), equation 5.12, with
    the matrix of the weighted problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> K = PrecomputedGram(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> system = LinearSystem(K, [[2.0], [4.0]], [1.0])
    >>> c = np.linalg.solve(K.matrix + np.eye(2), [[2.0], [4.0]])
    >>> leave_one_out(system, c).ravel().round(12).tolist()
    [1.0, 0.5]
    """
    n, _ = system.shape
    targets = np.asarray(system.targets)
    weights = np.ones(n) if system.weights is None else np.asarray(system.weights)
    out = np.empty_like(targets)
    gram = system.scaled()
    with ExitStack() as stack, threads.workers(n_jobs):
        form = low_rank_form(gram, stack, n_jobs=n_jobs) if system.convex else None
        if form is None:
            reserve_square(stack, n, 8, "the inverse of the kernel matrix in float64")
        for shift, columns in system.groups():
            inverse = _by_factor(gram, shift, system.convex) if form is None else _by_form(gram, shift, form)
            if inverse is None:
                raise NumericalError(
                    f"the kernel matrix plus alpha = {shift:g} on its diagonal is singular to working precision, so "
                    "leave-one-out predictions are not defined by its inverse. Raise alpha."
                )
            share = left_out_share(weights, inverse, shift)
            out[:, columns] = targets[:, columns] - coefficients[:, columns] / share[:, None]
    return out


def _by_form(gram: ScaledGram, shift: float, form: LowRankForm) -> Vector | None:
    """The diagonal of ``(A + shift I)^-1`` for A of low rank; None if that is singular to working precision."""
    shifted = regular_shift(form, gram, shift)
    return None if shifted is None else shifted.inverse_diagonal(form.Q)


def _by_factor(gram: ScaledGram, shift: float, convex: bool) -> Vector | None:
    """The same by a factor of the whole matrix."""
    matrix = gram.dense(np.dtype(np.float64))
    check_finite(matrix)
    store = SymmetricStore(matrix)
    regular = factor_definite(store, shift) if convex else store.factor_ldl(shift)
    return store.inverse_diagonal() if regular else None


def left_out_share(weights: Vector, inverse_diagonal: Vector, shift: float) -> Vector:
    """What a coefficient ``c_i`` is divided by to get the error of row i without one of its observations, (n,).

    Parameters
    ----------
    weights : ndarray of shape (n,)
    inverse_diagonal : ndarray of shape (n,)
        Of ``(SKS + mu I)^-1``.
    shift : float
        mu.

    Examples
    --------
    >>> import numpy as np
    >>> left_out_share(np.array([0.5, 1.0, 3.0]), np.array([0.2, 0.2, 0.2]), 4.0).round(9).tolist()
    [0.1, 0.2, 0.7]
    """
    observations = np.minimum(weights, 1.0)
    share: Vector = observations * inverse_diagonal
    several = weights > 1.0
    with np.errstate(divide="ignore"):
        share[several] += (weights[several] - 1.0) / np.float64(shift)
    return share
