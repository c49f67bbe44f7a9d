"""Kernel systems by factorisation: low rank, float32 with float64 refinement, float64, least squares, LDL^T; in that
order.

A matrix whose rank is a small share of its rows is never computed: its factor of that rank is used.
A float32 factor takes half the time and memory of a float64 one and is close enough to precondition conjugate
gradients on the float64 matrix. Where it fails, or refinement does not reach the residual of a float64 factor, the
float64 factor is computed. Where that fails, the matrix is singular to working precision, and the least-squares
solution of smallest norm is given; or it has a negative eigenvalue, which is an error.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import IndefiniteKernelError, MercerWarning
from mercer._types import Matrix, Vector
from mercer.engine import decompositions, memory, threads, tiles
from mercer.gram.features import FEATURES_STORAGE
from mercer.gram.hold import REMEDY, check_finite, reserve_square, reserve_whole
from mercer.solvers.algebra.conjugate_gradients import Map, Refined, lengths, refine
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState, ScaledGram
from mercer.solvers.linear.low_rank import LowRankForm
from mercer.solvers.linear.low_rank_solve import LOW_RANK_STORAGE, eigenpairs, low_rank_form, solve_shifted
from mercer.solvers.linear.primal import PRIMAL, NormalEquations
from mercer.solvers.solution import LARGE_GAP, Certificate, Solution, Status

# Below this many rows a float64 factor takes a few hundredths of a second, which float32 cannot better.
MIXED_FROM = 2048
# Refining k columns costs about 16 n^2 k operations more; a float32 factor saves n^3 / 6.
_COLUMNS_PER_ROW = 1 / 96
# Steps after a float64 factor: one or two reach the residual that rounding allows.
_POLISH = 4
_ILL_CONDITIONED = 1e-6

LOW_RANK = "low rank"
SINGLE, DOUBLE = "float32 Cholesky, refined", "float64 Cholesky"
LEAST_SQUARES, LDL = "least squares", "float64 LDL^T"

Group = tuple[float, NDArray[np.intp]]
"""A shift, and the columns that have it."""
Answer = tuple[Refined, str, Vector]
"""Of one method, with its name and the violation of each column, as :class:`_Progress` has it."""
Method = Callable[[float, Matrix], Answer | None]
"""From a shift and targets to the answer; None where it has none."""


@dataclass
class _Progress:
    """What is known of the solution so far, over all columns; ``z`` is that of the scaled system.

    ``violation`` is a column's relative residual or, for least squares, that of the normal equations.
    """

    z: Matrix
    residual: Matrix
    violation: Vector
    methods: list[str] = field(default_factory=list)
    steps: int = 0

    def solve(self, groups: list[Group], b: Matrix, method: Method) -> list[Group]:
        """Write the answers that a method has, until it has none; the groups that are left."""
        for number, (shift, columns) in enumerate(groups):
            answer = method(shift, b[:, columns])
            if answer is None:
                return groups[number:]
            refined, name, self.violation[columns] = answer
            self.z[:, columns], self.residual[:, columns] = refined.x, refined.residual
            self.steps += refined.steps
            if name not in self.methods:
                self.methods.append(name)
        return []


def solve(system: LinearSystem, *, n_jobs: int | None = None) -> Solution[Matrix, LinearSystemState]:
    r"""Solve :math:`(K + \mu W^{-1}) c = t` by a factorisation for every distinct shift.

    Parameters
    ----------
    system : LinearSystem
        With n rows and k targets.
    n_jobs : int, optional
        Threads, by default those of the settings. The bits are the same for any number of them, except for systems of
        more than 1024 rows that are singular to working precision, whose eigenvectors LAPACK computes on its own
        threads.

    Returns
    -------
    Solution
        ``value`` holds c, shape (n, k); ``state`` says which factorisation served and how small the residual is.
        The certificate's objectives are sums over the targets, its ``kkt_violation`` is the largest relative
        residual (for least squares: of its part in the range of the matrix), and its gap is the sum of
        :math:`\|St - (SKS + \mu I) z\|^2`.

    Raises
    ------
    MemoryBudgetError
        If the matrix and its factor do not fit the memory budget; raised before they are allocated.
    IndefiniteKernelError
        If the system is declared convex and K has an eigenvalue below zero by more than rounding.
    NumericalError
        If K has NaN or infinite entries.

    Warns
    -----
    MercerWarning
        If the matrix is singular to working precision, so that the least-squares solution is given, or if it is so
        ill-conditioned that the residual is large.

    Notes
    -----
    Where the rank r is at most n / 16: :math:`n r^2` operations, and r columns. Else memory, in units of :math:`n^2`
    bytes: 12 with a float32 factor beside the float64 matrix; 4 where the budget has
    no room for that and the matrix is evaluated lazily for every residual; 8 with a float64 factor; 32 for least
    squares.

    References
    ----------
    E. Carson and N. J. Higham, "Accelerating the solution of linear systems by iterative refinement in three
    precisions", SIAM J. Sci. Comput. 40 (2018), A817-A847.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> solution = solve(LinearSystem(PrecomputedGram(np.eye(2)), [[3.0], [6.0]], [0.5]))
    >>> solution.value.ravel().round(12).tolist(), solution.state.method
    ([2.0, 4.0], 'float64 Cholesky')
    """
    start_time = time.perf_counter()
    with memory.track() as account, threads.workers(n_jobs):
        unit, powers = system.in_unit_size()
        progress, sentence = _solve_groups(unit)
    state = _state(unit, progress)
    progress.z, progress.residual = np.ldexp(progress.z, powers), np.ldexp(progress.residual, powers)
    violation = float(progress.violation.max(initial=0.0))
    is_least = LEAST_SQUARES in progress.methods
    primal, dual = system.objectives(progress.z, progress.residual, least_squares=is_least)
    if violation > _ILL_CONDITIONED or (system.convex and not is_least and primal - dual > LARGE_GAP * primal):
        warnings.warn(
            f"the kernel matrix is so ill-conditioned that the linear system is solved only to a relative residual "
            f"of {violation:.1e}, and the objective to {primal - dual:.1e} of {primal:.6g}. Raise alpha, or scale the "
            "columns of X.",
            MercerWarning,
            stacklevel=2,
        )
    status = _status(system, state)
    certificate = Certificate(
        primal,
        dual,
        violation,
        progress.steps,
        time.perf_counter() - start_time,
        account.peak,
        status,
        convex=system.convex,
        storage=sentence,
    )
    return Solution(system.scaled().apply_scale(progress.z), status, certificate, state)


def is_mixed(n: int, k: int) -> bool:
    """Whether a float32 factor is tried first for n rows and k targets, with the float64 matrix beside it if it fits.

    >>> is_mixed(1000, 1), is_mixed(5000, 1)
    (False, True)
    """
    return n >= MIXED_FROM and k <= n * _COLUMNS_PER_ROW


def entry_bytes(n: int, k: int) -> tuple[int, ...]:
    """Memory for each pair of rows, the most first: what is used is the first that fits.

    >>> entry_bytes(1000, 1), entry_bytes(5000, 1)
    ((8,), (12, 4))
    """
    return (12, 4) if is_mixed(n, k) else (8,)


def _solve_groups(system: LinearSystem) -> tuple[_Progress, str]:
    """The answers, and where the matrix was."""
    n, k = system.shape
    gram = system.scaled()
    b = gram.apply_scale(np.asarray(system.targets))
    progress = _Progress(np.zeros_like(b), b.copy(), np.zeros(k))
    mixed = system.convex and is_mixed(n, k)
    left = _solve_primal(system, b, progress)
    sentence = FEATURES_STORAGE
    if left and system.convex:
        left, sentence = _solve_low_rank(system, b, left, progress), LOW_RANK_STORAGE
    with ExitStack() as stack:
        dense: NDArray[Any] | None = None
        if left:
            dense, sentence = _dense(gram, stack, optional=mixed)
        if mixed:
            # The shifts fall: what float32 could not do for one, it cannot do for the next.
            left = progress.solve(left, b, partial(_by_single, gram, dense))
        if left:
            if dense is None:
                why = f", since alpha = {left[0][0]:g} is too small for a float32 factor,"
                dense, sentence = _dense(gram, stack, why)
            assert dense is not None
            progress.solve(left, b, partial(_by_double, system, SymmetricStore(dense)))
    return progress, sentence


def _solve_primal(system: LinearSystem, b: Matrix, progress: _Progress) -> list[Group]:
    """Solve in the space of explicit features where these are fewer than the rows; the groups that are left."""
    with ExitStack() as stack:
        groups = system.groups()
        # With fewer features than rows K is singular, and its eigenpairs take tens of times as long as this factor.
        is_open = all(shift == 0 for shift, _ in groups)
        equations = NormalEquations.of(system, stack, most=system.shape[0] - 1 if is_open else None)
        return groups if equations is None else progress.solve(groups, b, partial(_by_features, system, equations))


def _by_features(system: LinearSystem, equations: NormalEquations, shift: float, b: Matrix) -> Answer | None:
    """By normal equations; without a penalty, or with one that rounding hides, the solution of least norm."""
    refined = equations.solve(shift, b)
    if refined is None and shift == 0:
        least = equations.least_norm(b)
        if least is not None:
            _warn_of_rank(shift, equations.used, system.shape[0], equations.noise)
            return least[0], LEAST_SQUARES, least[1]
    if not equations.is_usual:
        return None
    if refined is not None:
        return (refined, PRIMAL, relative(refined.residual, b)) if refined.converged else None
    pairs = equations.eigenpairs()
    return None if pairs is None else _least_squares(pairs[0] + shift, pairs[1], b, system, shift)


def _solve_low_rank(system: LinearSystem, b: Matrix, groups: list[Group], progress: _Progress) -> list[Group]:
    """What a matrix of low rank can be solved for, without making it; the groups of columns that are left."""
    with ExitStack() as stack:
        form = low_rank_form(system.scaled(), stack)
        return groups if form is None else progress.solve(groups, b, partial(_by_low_rank, system, form))


def _by_low_rank(system: LinearSystem, form: LowRankForm, shift: float, b: Matrix) -> Answer | None:
    refined = solve_shifted(form, system.scaled(), shift, b)
    if refined is None:
        values, vectors = eigenpairs(form)
        return _least_squares(values + shift, vectors, b, system, shift)
    return (refined, LOW_RANK, relative(refined.residual, b)) if refined.converged else None


def _dense(
    gram: ScaledGram, stack: ExitStack, why: str = "", *, optional: bool = False
) -> tuple[NDArray[Any] | None, str]:
    """The matrix in float64, and where it is; None if it is optional and a float32 factor beside it would not fit."""
    n = gram.gram.shape[0]
    dtype, sentence = reserve_whole(
        (n, n),
        stack,
        {np.float64: 4 * n * n if optional else 0},
        required="" if optional else REMEDY,
        what=f"the kernel matrix in float64{why} ({n} x {n})",
    )
    if dtype is None:
        return None, sentence
    matrix = gram.dense(dtype)
    check_finite(matrix)
    return matrix, sentence


def _by_single(gram: ScaledGram, dense: NDArray[Any] | None, shift: float, b: Matrix) -> Answer | None:
    """By a float32 factor; None if it does not serve. Without the dense matrix, residuals are evaluated lazily."""
    with ExitStack() as stack:
        reserve_square(stack, len(b), 4, "the float32 factor of the kernel matrix")
        if dense is None:
            single = gram.dense(np.dtype(np.float32))
        else:
            single = tiles.converted(dense, np.dtype(np.float32))
        factor = SymmetricStore(single)
        if not factor.factor_cholesky(shift):
            return None
        product: Map = gram.__matmul__ if dense is None else SymmetricStore(dense).product
        refined = refine(_shifted(product, shift), _in_single(factor), b)
        return (refined, SINGLE, relative(refined.residual, b)) if refined.converged else None


def _in_single(factor: SymmetricStore) -> Map:
    """The inverse by a float32 factor, on columns scaled to length 1 so that nothing under- or overflows."""

    def apply(V: Matrix) -> Matrix:
        size = lengths(V)
        size[size == 0] = 1.0
        return factor.solve((V / size).astype(np.float32)).astype(np.float64) * size

    return apply


def _by_double(system: LinearSystem, store: SymmetricStore, shift: float, b: Matrix) -> Answer:
    """By a float64 factor in the store, or eigenpairs."""
    refined = (_definite if system.convex else _indefinite)(store, shift, b)
    if refined is not None:
        return refined, DOUBLE if system.convex else LDL, relative(refined.residual, b)
    with ExitStack() as more:
        reserve_square(more, len(b), 24, "the eigenvectors of the singular kernel matrix")
        with threads.blas_threads_for(len(b)):
            values, vectors = decompositions.all_eigenpairs(np.array(store.restore(), order="C"))
        return _least_squares(values + shift, vectors.T, b, system, shift)


def _shifted(product: Map, shift: float) -> Map:
    return lambda V: product(V) + shift * V


def _definite(store: SymmetricStore, shift: float, b: Matrix) -> Refined | None:
    """By a float64 Cholesky factor; None if the matrix is not positive definite to working precision."""
    if not factor_definite(store, shift):
        return None
    return refine(_shifted(store.product, shift), store.solve, b, limit=_POLISH)


def factor_definite(store: SymmetricStore, shift: float) -> bool:
    """Factor ``A + shift I``; False if it is not positive definite to working precision."""
    if not store.factor_cholesky(shift):
        return False
    # Pivots of the size of the rounding errors are noise: they make a factor, and no answer.
    n = len(store.diagonal)
    noise = np.sqrt(n) * np.finfo(store.diagonal.dtype).eps * (float(store.diagonal.max()) + shift)
    return store.smallest_pivot > noise


def _indefinite(store: SymmetricStore, shift: float, b: Matrix) -> Refined | None:
    """By ``L D L^T`` and plain refinement; None if the residual shows that the matrix is singular."""
    if not store.factor_ldl(shift):
        return None
    apply, inverse = _shifted(store.product, shift), store.solve
    x = inverse(b)
    r = b - apply(x)
    steps = 1
    while steps < _POLISH:
        better = x + inverse(r)
        residual = b - apply(better)
        steps += 1
        if not (lengths(residual) < lengths(r)).any():
            break
        x, r = better, residual
    small = (lengths(r) <= _ILL_CONDITIONED * lengths(b)).all()
    return Refined(x, r, steps, True) if small else None


def _least_squares(values: Vector, vectors: Matrix, b: Matrix, system: LinearSystem, shift: float) -> Answer:
    """The solution of smallest norm among those of smallest residual, by the eigenpairs of ``A + shift I``, ascending.

    Also the relative length of what is left of each column in the range of the matrix, which should be nothing.
    """
    n = len(b)
    # A matrix that came in float32 has rounding errors of that size, whatever the precision of the work here.
    tolerance = n * np.finfo(system.gram.dtype).eps * max(abs(values[0]), abs(values[-1]))
    if system.convex and values[0] < -tolerance:
        raise IndefiniteKernelError(
            f"the kernel matrix is not positive semi-definite: with alpha = {shift:g} its eigenvalues reach from "
            f"{values[0]:.3g} to {values[-1]:.3g}. Use alpha > {shift - values[0]:.3g}, another kernel, or "
            "mercer.validity.nearest(K); or pass allow_indefinite=True to get a stationary point without a guarantee."
        )
    large = np.abs(values) > tolerance
    basis = vectors[:, large]
    part = basis.T @ b
    _warn_of_rank(shift, int(large.sum()), n, tolerance)
    residual = b - basis @ part
    refined = Refined(basis @ (part / values[large, None]), residual, 0, True)
    return refined, LEAST_SQUARES, relative(basis.T @ residual, b)


def _warn_of_rank(shift: float, rank: int, n: int, noise: float) -> None:
    way_out = "Raise alpha for a unique solution."
    if shift > 0:
        way_out = (
            f"Rounding hides alpha: scale the columns of X (sklearn.preprocessing.StandardScaler), "
            f"or raise alpha above {2.0 * noise:.2g}."
        )
    warnings.warn(
        f"the kernel matrix plus alpha = {shift:g} on its diagonal is singular to working precision: its rank is "
        f"{rank} of {n}. The least-squares solution of smallest norm is returned. {way_out}",
        MercerWarning,
        stacklevel=3,
    )


def _state(system: LinearSystem, progress: _Progress) -> LinearSystemState:
    b = system.scaled().apply_scale(np.asarray(system.targets))
    return LinearSystemState("; ".join(progress.methods), float(relative(progress.residual, b).max(initial=0.0)))


def _status(system: LinearSystem, state: LinearSystemState) -> Status:
    if not system.convex:
        return Status.stationary
    return Status.least_squares if "least squares" in state.method else Status.direct


def relative(residual: Matrix, b: Matrix) -> Vector:
    """``||residual|| / ||b||`` for every column; nothing for a column of zeros, which is solved by zeros."""
    size = lengths(b)
    return np.divide(lengths(residual), size, out=np.zeros_like(size), where=size > 0)
