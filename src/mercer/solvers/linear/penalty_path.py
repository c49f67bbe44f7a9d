"""A kernel system for all penalties at once: solutions and what they are judged by, from one band reduction."""

from __future__ import annotations

import copy
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.linalg

from mercer._errors import IndefiniteKernelError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads
from mercer.gram.hold import check_finite, fits, reserve_square
from mercer.solvers.algebra.conjugate_gradients import lengths
from mercer.solvers.algebra.symmetric_store import SymmetricStore
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.band import SINGLE_WIDTH, WIDTH, BandForm, reduce_to_band
from mercer.solvers.linear.leave_one_out import left_out_share
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState, ScaledGram
from mercer.solvers.linear.low_rank import LowRankForm, ShiftedLowRank
from mercer.solvers.linear.low_rank_solve import LOW_RANK_STORAGE, low_rank_form
from mercer.solvers.linear.shifted_band import ShiftedBand
from mercer.solvers.solution import Certificate, Solution, Status

BAND, SINGLE_BAND = "float64 band Cholesky", "float32 band Cholesky, refined"
Criterion = Literal["loo", "gcv", "evidence"]
CRITERIA: tuple[Criterion, ...] = ("loo", "gcv", "evidence")

# Steps of refinement after the first solve: one or two reach the residual that rounding allows.
_POLISH = 3
_ENOUGH = 1e-12
_ILL_CONDITIONED = 1e-6
# A float32 form takes more steps, as long as they lessen the residual to this part: then it is the rounding of the
# product. Where it leaves more than the last number a fit by itself may do better.
_SINGLE_POLISH, _LESS, _SINGLE_ENOUGH = 8, 0.5, 1e-10
# Bytes for each pair of rows: in part in float32 with a copy of the matrix, in float64 with a copy, without. What is
# used is the first that fits, and without small penalties not the first of them.
_COPY = 8
ENTRY_BYTES = (22, 20, 12)
# A rank of up to this share of the rows is looked for.
_LOW_RANK = 1 / 4
# Roundings in float32 of what is left of the matrix are to be smaller than this share of the smallest penalty, counting
# this many units of rounding: the whole curve is then known to a few digits.
_SINGLE_SHARE, _SINGLE_ROUNDINGS = 0.05, 4.0 * float(np.finfo(np.float32).eps)
# Rows on which the error of the criteria is measured.
_PROBES = 8


class TooRough(Exception):
    """The float32 form of a matrix is singular to working precision with a penalty; the matrix may not be."""


class PenaltyPath:
    r"""``(K + mu W^{-1}) c = t`` for any mu, and three criteria of mu, after one reduction ``SKS = Q B Q^T``.

    With :math:`N = \sum_i w_i`, :math:`A = SKS`, :math:`b = St`, :math:`z = (A + \mu I)^{-1} b`,
    :math:`D = \operatorname{diag} (A + \mu I)^{-1}`, and :math:`m_i = \min(1, w_i)` the part of row i that is left out:

    .. math:: \text{loo} &= \frac1N \sum_i w_i e_i^2, \qquad
                           e_i = \frac{s_i z_i}{(w_i - m_i) / \mu + m_i D_i} \\
              \text{gcv} &= \frac{N \|z\|^2}{\bigl(\sum_i (w_i - m_i) / \mu + m_i D_i\bigr)^2} \\
              \text{evidence} &= -\tfrac N2 \Bigl(1 + \log \frac{2 \pi\, \mu\, b^\top z}{N}\Bigr)
                                 - \tfrac12 \log \det(I + A / \mu)

    The evidence is that of :math:`t \sim \mathcal N(0, \sigma^2 (K / \mu + W^{-1}))`, at the best noise variance
    :math:`\sigma^2 = \mu\, b^\top z / N`.

    Parameters
    ----------
    system : LinearSystem
        With n rows and k targets. Its shifts are not used.
    held : ExitStack
        Memory stays reserved until it is closed.
    single_rows : bool
        Whether leave-one-out errors are needed, which take all of Q.
    n_jobs : int, optional
        As in :func:`mercer.solvers.linear.cholesky.solve`.
    single_for : float, default=0.0
        Above zero, the reduction may go on in float32 once that distinguishes penalties from here on. It takes half the
        time, solutions are refined to the same residuals, and :meth:`doubt` says how far the criteria are off.

    Attributes
    ----------
    single : bool
        Whether part of the reduction was in float32.
    total : float
        N.
    size : float
        The sum of the diagonal of A, in size: no eigenvalue of a positive semi-definite A is larger.

    Raises
    ------
    MemoryBudgetError
        If the matrix, its band form and Q do not fit the memory budget.
    NumericalError
        If K has NaN or infinite entries.

    Notes
    -----
    :math:`4 n^3 / 3` operations at first, as many again for Q, and for each mu about :math:`130\, n^2` with
    leave-one-out, :math:`4000\, n` without. Memory in units of :math:`n^2` bytes: 12, and 8 more for a copy of the
    matrix, from which residuals are computed; without room for that they are evaluated lazily. In float32: 22.

    Integer weights are the same as repeated rows in all three criteria: a row of weight w stands for w observations,
    each of which is left out once while the other ones stay. What weighs less than one is left out as a whole.

    References
    ----------
    D. M. Allen (1974), "The relationship between variable selection and data augmentation and a method for
    prediction", Technometrics 16, for leave-one-out; G. H. Golub, M. Heath and G. Wahba (1979), "Generalized
    cross-validation as a method for choosing a good ridge parameter", Technometrics 21, for gcv; L. Elden (1977),
    "Algorithms for the regularization of ill-conditioned least squares problems", BIT 17, for one reduction that
    serves all penalties.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> K = PrecomputedGram(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> with ExitStack() as stack:
    ...     path = PenaltyPath(LinearSystem(K, [[2.0], [4.0]], [0.0]), stack, single_rows=True)
    ...     errors = path.left_out_errors(1.0).ravel().round(9).tolist()
    ...     loo = path.criteria(1.0)["loo"].round(9).tolist()
    >>> errors, loo
    ([1.0, 3.5], [6.625])
    """

    def __init__(
        self,
        system: LinearSystem,
        stack: ExitStack,
        *,
        single_rows: bool,
        n_jobs: int | None = None,
        single_for: float = 0.0,
    ) -> None:
        n = system.shape[0]
        self.system, self._n_jobs, self._single_rows = system, n_jobs, single_rows
        self._weights = np.ones(n) if system.weights is None else np.asarray(system.weights)
        self.total = float(self._weights.sum())
        self._left_out = np.minimum(self._weights, 1.0)
        # Where the same part of each row is left out, the trace of the inverse is all that gcv needs of it.
        alike = bool((self._left_out == self._left_out[0]).all())
        gram = system.scaled()
        with threads.workers(n_jobs):
            self._account = stack.enter_context(memory.track())
            self._whole: SymmetricStore | None = None
            self._floor = np.sqrt(n) * np.finfo(float).eps
            low = low_rank_form(gram, stack, _LOW_RANK, n_jobs)
            self._form: BandForm | LowRankForm
            self._Q: Matrix | None = None
            self.single = low is None and single_for > 0 and fits(ENTRY_BYTES[0] * n * n)
            self._storage = LOW_RANK_STORAGE
            if low is not None:
                self._form, self._Q = low, low.Q
                diagonal = gram.diagonal()
            else:
                diagonal = self._reduce(gram, stack, single_for, whole_Q=single_rows or not alike)
            self.size, self._largest = float(np.abs(diagonal).sum()), float(diagonal.max())
            self._b = gram.apply_scale(np.asarray(system.targets))
            self._turned = self._form.into(self._b)

    def _reduce(self, gram: ScaledGram, stack: ExitStack, single_for: float, *, whole_Q: bool) -> Vector:
        """Reduce the matrix to a band; its diagonal."""
        n = len(self._weights)
        each = ENTRY_BYTES[0] - _COPY if self.single else ENTRY_BYTES[2]
        self._storage = reserve_square(stack, n, each, "the kernel matrix in band form, in float64,")
        matrix = gram.dense(np.dtype(np.float64))
        check_finite(matrix)
        diagonal: Vector = matrix.diagonal().copy()
        if fits(_COPY * n * n):
            reserve_square(stack, n, _COPY, "a copy of the kernel matrix")
            self._whole = SymmetricStore(matrix.copy())
        if not self.single:
            self._form = reduce_to_band(matrix, n_jobs=self._n_jobs)
        else:
            # What a wider band saves at first it costs again for every diagonal of an inverse.
            width = WIDTH if whole_Q else SINGLE_WIDTH
            enough = _SINGLE_SHARE / _SINGLE_ROUNDINGS * single_for
            self._form = reduce_to_band(matrix, width, self._n_jobs, single_below=enough)
            # Q takes half of the same memory.
            matrix = matrix.reshape(-1).view(np.float32)[: n * n].reshape(n, n)
        if whole_Q:
            self._Q = self._form.orthogonal(matrix, self._n_jobs)
        return diagonal

    def doubt(self, shift: float) -> float:
        """By what share the criteria may be off at a penalty, where :attr:`single`; measured, not a bound.

        Some columns of the inverse, the solutions and the diagonal of the inverse are compared with what one step of
        refinement makes of them.
        """
        n = len(self._b)
        rows = np.random.default_rng(0).choice(n, min(_PROBES, n), replace=False)
        units = np.zeros((n, len(rows)))
        units[rows, np.arange(len(rows))] = 1.0
        with threads.workers(self._n_jobs):
            shifted = self._shifted(shift)
            if shifted is None:
                return float("inf")
            b = np.hstack([units, self._b])
            shifts = np.full(b.shape[1], shift)
            x = self._inverse(shifts, b)
            rest = b - self._product(x) - shift * x
            change = self._inverse(shifts, rest)
            diagonal = x[rows, np.arange(len(rows))]
            off = [
                change[rows, np.arange(len(rows))] / diagonal,
                # Of the log determinant, for each row.
                rest[rows, np.arange(len(rows))],
                cholesky.relative(change[:, len(rows) :], x[:, len(rows) :]),
            ]
            if self._Q is not None:
                off.append(shifted.inverse_diagonal(self._Q[rows], self._n_jobs) / diagonal - 1.0)
        # Criteria are quadratic in these.
        return 2.0 * float(np.nan_to_num([np.sqrt(np.mean(each**2)) for each in off], nan=np.inf).max())

    def criteria(self, shift: float) -> dict[Criterion, Vector]:
        """The criteria by name, each (k,); without Q, no ``"loo"``. The smaller, the better; evidence the larger.

        Where ``A + shift I`` is singular to working precision they are infinitely bad.

        Raises
        ------
        IndefiniteKernelError
            If the system is declared convex and K has an eigenvalue below zero by more than rounding.
        TooRough
            If the matrix is singular to working precision, and was reduced in float32.
        """
        return self.criteria_and_errors(shift)[0]

    def criteria_and_errors(self, shift: float) -> tuple[dict[Criterion, Vector], Matrix | None]:
        """Also the errors of rows left out, (n, k), so weighted that their squares sum to ``"loo"``."""
        with threads.workers(self._n_jobs), np.errstate(divide="ignore"):
            k = self._b.shape[1]
            shifted = self._shifted_or_too_rough(shift)
            if shifted is None:
                criteria: dict[Criterion, Vector] = {"gcv": np.full(k, np.inf), "evidence": np.full(k, -np.inf)}
                if not self._single_rows:
                    return criteria, None
                return criteria | {"loo": np.full(k, np.inf)}, np.full(self._b.shape, np.nan)
            turned = shifted.solve(self._turned)
            n, total = len(self._b), self.total
            form = np.einsum("ij,ij->j", self._turned, turned)
            # What is 0 are targets of zeros, which any penalty fits.
            evidence = -0.5 * (total * (1.0 + np.log(2.0 * np.pi * form / total)) + shifted.log_determinant)
            evidence += 0.5 * (n - total) * np.log(shift) if n != total else 0.0
            share = self._share(shifted, shift)
            square = np.einsum("ij,ij->j", turned, turned)
            criteria = {"gcv": total * square / float(np.sum(share)) ** 2, "evidence": evidence}
            if not self._single_rows:
                return criteria, None
            errors = self._errors(self._turn_back(turned), share) * np.sqrt(self._weights / total)[:, None]
            return criteria | {"loo": np.einsum("ij,ij->j", errors, errors)}, errors

    def training_errors(self, shift: float) -> Vector:
        r"""Mean squared errors of the fit on its own rows, (k,): :math:`\mu^2 \|z\|^2 / N`.

        No leave-one-out error is smaller, where K is positive semi-definite. Costs no diagonal of an inverse.
        """
        with threads.workers(self._n_jobs):
            shifted = self._shifted_or_too_rough(shift)
            if shifted is None:
                return np.zeros(self._b.shape[1])
            turned = shift * shifted.solve(self._turned)
            return np.asarray(np.einsum("ij,ij->j", turned, turned) / self.total)

    def _shifted_or_too_rough(self, shift: float) -> ShiftedBand | ShiftedLowRank | None:
        shifted = self._shifted(shift)
        if shifted is None and self.single:
            raise TooRough
        return shifted

    def left_out_errors(self, shift: float) -> Matrix:
        """``t_i`` minus its prediction without one observation of row i, (n, k); NaN where that is not defined."""
        if not self._single_rows:
            raise ValueError("errors of rows that are left out need single_rows=True")
        with threads.workers(self._n_jobs), np.errstate(divide="ignore"):
            shifted = self._shifted(shift)
            if shifted is None:
                return np.full(self._b.shape, np.nan)
            return self._errors(self._turn_back(shifted.solve(self._turned)), self._share(shifted, shift))

    def solutions(self, shifts: Matrix) -> list[Solution[Matrix, LinearSystemState]]:
        """Solve for every row of ``shifts``, (m, k): one penalty for each target.

        The certificates are those of :func:`mercer.solvers.linear.cholesky.solve`, which also solves what is singular
        to working precision; their seconds are equal shares of those of this call.
        """
        start_time = time.perf_counter()
        m, k = shifts.shape
        b = np.tile(self._b, m)
        with threads.workers(self._n_jobs):
            z, residual, steps = self._solve(shifts.ravel(), b)
        violation = cholesky.relative(residual, b)
        spent = (time.perf_counter() - start_time) / m
        out = []
        for i, row in enumerate(shifts):
            system = replace(self.system, shifts=row)
            columns = slice(i * k, (i + 1) * k)
            worst = float(violation[columns].max(initial=0.0))
            if not worst <= (_SINGLE_ENOUGH if self.single else _ILL_CONDITIONED):
                out.append(cholesky.solve(system, n_jobs=self._n_jobs))
                continue
            primal, dual = system.objectives(z[:, columns], residual[:, columns])
            status = Status.direct if system.convex else Status.stationary
            certificate = Certificate(
                primal,
                dual,
                worst,
                steps,
                spent,
                self._account.peak,
                status,
                convex=system.convex,
                storage=self._storage,
            )
            value = system.scaled().apply_scale(z[:, columns])
            state = LinearSystemState(SINGLE_BAND if self.single else BAND, worst)
            out.append(Solution(value, status, certificate, state))
        return out

    def of_targets(self, columns: Positions) -> PenaltyPath:
        """The path of some of the targets, which shares the reduced matrix."""
        part = copy.copy(self)
        targets = np.asarray(self.system.targets)[:, columns]
        part.system = replace(self.system, targets=targets, shifts=np.asarray(self.system.shifts)[columns])
        part._b, part._turned = self._b[:, columns], self._turned[:, columns]
        return part

    def _product(self, V: Matrix) -> Matrix:
        """``A V``, in float64."""
        return self.system.scaled() @ V if self._whole is None else np.asarray(self._whole.product(V))

    def _turn_back(self, turned: Matrix) -> Matrix:
        """``Q V``, by Q itself if it is available."""
        if self._Q is None or isinstance(self._form, LowRankForm):
            return self._form.back(turned)
        if not self.single:
            return lapack.multiply(self._Q, turned)
        # Columns of length 1, so that nothing under- or overflows in float32.
        size = np.maximum(lengths(turned), np.finfo(float).tiny)
        return lapack.multiply(self._Q, (turned / size).astype(np.float32)).astype(np.float64) * size

    def _shifted(self, shift: float) -> ShiftedBand | ShiftedLowRank | None:
        """The factor of ``B + shift I``; None if there is none to working precision."""
        floor = self._floor * (self._largest + shift)
        if isinstance(self._form, LowRankForm):
            low = ShiftedLowRank(self._form, shift, floor)
            return low if low.regular else None
        shifted = ShiftedBand(self._form, shift, floor)
        if shifted.regular or self.single:
            return shifted if shifted.regular else None
        band = self._form.band
        # At most the largest eigenvalue in size times the square root of n: by columns of Q B Q^T.
        bound = float(np.abs(band[0]).max() + 2.0 * np.abs(band[1:]).max(axis=1, initial=0.0).sum())
        tolerance = len(self._b) * np.finfo(self.system.gram.dtype).eps * bound
        if self.system.convex and shift > tolerance:
            smallest = float(
                scipy.linalg.eig_banded(band, lower=True, eigvals_only=True, select="i", select_range=(0, 0))[0]
            )
            if smallest < -tolerance:
                raise IndefiniteKernelError(
                    f"the kernel matrix is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}. Use "
                    f"alpha > {-smallest:.3g}, another kernel, or mercer.validity.nearest(K); or pass "
                    "allow_indefinite=True to get a stationary point without a guarantee."
                )
        return None

    def _share(self, shifted: ShiftedBand | ShiftedLowRank, shift: float) -> Vector | float:
        """What the errors of rows left out are divided by, (n,); without Q, the sum of it."""
        extra = self._weights - self._left_out
        if self._Q is not None:
            return left_out_share(self._weights, shifted.inverse_diagonal(self._Q, self._n_jobs), shift)
        rest = float(extra.sum())
        return (rest / shift if rest else 0.0) + float(self._left_out[0]) * shifted.inverse_trace

    def _errors(self, z: Matrix, share: Vector | float) -> Matrix:
        return z * (np.sqrt(self._weights) / share)[:, None]

    def _solve(self, shifts: Vector, b: Matrix) -> tuple[Matrix, Matrix, int]:
        """Answers and residuals for columns with a shift each, refined; NaN where there is no factor."""
        z = self._divided(shifts, np.tile(self._turned, b.shape[1] // self._b.shape[1]))
        usable = np.isfinite(z).all(axis=0)
        residual = np.full_like(b, np.nan)
        b, mu, x = b[:, usable], shifts[usable], z[:, usable]
        r = b - self._product(x) - mu * x
        enough = _ENOUGH * lengths(b)
        rough = np.flatnonzero(lengths(r) > enough)
        steps, (most, less) = 1, (_SINGLE_POLISH, _LESS) if self.single else (_POLISH, 1.0)
        while steps <= most and len(rough):
            before = r[:, rough]
            better = x[:, rough] + self._inverse(mu[rough], before)
            after = b[:, rough] - self._product(better) - mu[rough] * better
            steps += 1
            size, was = lengths(after), lengths(before)
            gained = size < was
            x[:, rough[gained]], r[:, rough[gained]] = better[:, gained], after[:, gained]
            rough = rough[(size > enough[rough]) & (size < less * was)]
        z[:, usable], residual[:, usable] = x, r
        return z, residual, steps

    def _inverse(self, shifts: Vector, V: Matrix) -> Matrix:
        return self._divided(shifts, self._form.into(V))

    def _divided(self, shifts: Vector, turned: Matrix) -> Matrix:
        """The inverse of vectors in the coordinates of the band form, which are overwritten."""
        for shift in np.unique(shifts):
            columns = np.flatnonzero(shifts == shift)
            shifted = self._shifted(float(shift))
            turned[:, columns] = np.nan if shifted is None else shifted.solve(turned[:, columns])
        usable = np.isfinite(turned).all(axis=0)
        out = np.full((len(self._b), turned.shape[1]), np.nan)
        out[:, usable] = self._form.back(turned[:, usable])
        return out
