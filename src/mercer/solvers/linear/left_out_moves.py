"""How much the predictions of a kernel system for new rows change when a training row is left out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix
from mercer.gram.hold import check_finite, reserve_square
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear.cholesky import factor_definite
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.linear.low_rank_solve import low_rank_form, regular_shift

Moves = Callable[[Matrix], Matrix]


def left_out_moves(system: LinearSystem, shift: float, stack: ExitStack, *, n_jobs: int | None = None) -> Moves:
    r"""A function from kernel values of new rows, (m, n), to the shares v, (m, n), of left-out errors.

    .. math:: f_{-i}(x) = f(x) - v_i(x)\, e_i, \qquad e_i = t_i - f_{-i}(x_i), \qquad
              v_i(x) = \frac{m_i}{\sqrt{w_i}} \left[(SKS + \mu I)^{-1} S\, k(x)\right]_i, \qquad m_i = \min(1, w_i)

    One observation of a row of weight w is left out, as in :func:`mercer.solvers.linear.leave_one_out.leave_one_out`.
    Without weights v is :math:`(K + \mu I)^{-1} k(x)`: a fit to :math:`t` with :math:`f_{-i}(x_i)` in the place of
    :math:`t_i` is the fit without row i.

    Parameters
    ----------
    system : LinearSystem
        With n rows.
    shift : float
        One of its penalties.
    stack : ExitStack
        Keeps the memory of the factor reserved until it is closed.
    n_jobs : int, optional
        As in :func:`mercer.solvers.linear.cholesky.solve`.

    Returns
    -------
    callable

    Raises
    ------
    MemoryBudgetError
        If the matrix in float64 does not fit the memory budget.
    NumericalError
        If the matrix is singular to working precision.

    Notes
    -----
    A float64 factor takes :math:`n^3 / 3` operations and :math:`8 n^2` bytes, and m new rows :math:`2 m n^2`
    operations. A matrix of low rank is never computed.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> system = LinearSystem(PrecomputedGram(np.array([[1.0, 0.5], [0.5, 1.0]])), [[2.0], [4.0]], [1.0])
    >>> with ExitStack() as stack:
    ...     left_out_moves(system, 1.0, stack)(np.array([[1.0, 0.5]])).round(4).tolist()
    [[0.4667, 0.1333]]
    """
    n, _ = system.shape
    gram = system.scaled()
    roots = np.ones(n) if gram.scale is None else gram.scale
    observations = np.minimum(roots**2, 1.0) / roots
    singular = NumericalError(
        f"the kernel matrix plus alpha = {shift:g} on its diagonal is singular to working precision, so that intervals "
        "from left-out rows are not defined. Raise alpha."
    )
    form = low_rank_form(gram, stack, n_jobs=n_jobs) if system.convex else None
    if form is not None:
        shifted = regular_shift(form, gram, shift)
        if shifted is None:
            raise singular
        return lambda block: form.back(shifted.solve(form.into((block * roots).T))).T * observations
    reserve_square(stack, n, 8, "the factor of the kernel matrix in float64")
    matrix = gram.dense(np.dtype(np.float64))
    check_finite(matrix)
    store = SymmetricStore(matrix)
    if not (factor_definite(store, shift) if system.convex else store.factor_ldl(shift)):
        raise singular
    return lambda block: np.asarray(store.solve((block * roots).T)).T * observations
