"""What the online learners share: rows one after the other, step sizes, a budget, an expansion that changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer._types import CheckedRows, Matrix, RowsLike, Vector
from mercer.data.distinct import places_among, stacked
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Number, Whole
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import NO_SPACE
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, of_support, values_of
from mercer.estimators.shared.parameters import (
    require_choice,
    require_flags,
    require_number,
    require_seed,
    require_whole,
)
from mercer.estimators.shared.statements import GIVEN_COLUMNS, SupportRows
from mercer.gram import Gram
from mercer.gram.hold import hold, is_small
from mercer.gram.protocol import GramMatrix
from mercer.kernels import RBF
from mercer.losses import Loss, Softmax
from mercer.solvers.online.budgeted import learn, learn_by_merging
from mercer.solvers.online.schedules import NAMES, check_step_sizes, step_sizes
from mercer.solvers.online.state import STATE_TABLE, STRATEGIES, OnlineProblem, OnlineState

REMEDY = (
    "Center y and scale the columns of X, make more passes (max_iter), or choose smaller steps (eta0, power_t) or "
    "another kernel; progressive_loss_ shows whether the loss falls from pass to pass."
)


class OnlineExpansion(KernelEstimator, ABC):
    """Base of the online learners; a subclass turns labels or numbers into targets, and values into answers.

    ``_walk`` holds the fields of the state so far, whose terms belong to ``support_vectors_``.
    """

    _if_indefinite = NO_SPACE

    loss: Any
    alpha: Any
    learning_rate: Any
    eta0: Any
    power_t: Any
    fit_intercept: Any
    budget: Any
    budget_strategy: Any
    max_iter: Any
    shuffle: Any
    random_state: Any
    verbose: Any
    support_vectors_: Any
    support_: NDArray[np.intp]
    _walk: dict[str, Any]
    dual_coef_: Vector
    intercept_: Vector
    eta0_: float
    _fitted = Fitted(
        {
            "eta0_": Number(least=0),
            "support_vectors_": SupportRows("s"),
            "dual_coef_": Floats("o, s"),
            "intercept_": Floats("o"),
            "budget_error_": Floats("o", least=0, finite=False),
            "truncation_bound_": Number(least=0, finite=False),
            "progressive_loss_": Floats("steps", finite=False),
            "n_iter_": Count("steps"),
            "t_": Count(),
            "n_changes_": Count(),
            "_walk": STATE_TABLE,
        },
        {"support_": Whole("s")},
        rules=(GIVEN_COLUMNS, ("the counts of steps disagree", lambda m: m._walk["steps"] == m.t_)),
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    @property
    @abstractmethod
    def _loss(self) -> Loss | Softmax:
        """The loss, with its parameter."""

    def _check_X(self, X: RowsLike, *, reset: bool) -> Any:
        X = super()._check_X(X, reset=reset)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def _check_online(self) -> None:
        """Raise if a parameter that the learners share makes no sense."""
        require_number(self, "alpha", "a finite number of 0 or more", lambda value: 0 <= value < np.inf)
        if not (isinstance(self.eta0, str) and self.eta0 == "auto"):
            require_number(self, "eta0", "a finite number above 0, or 'auto'", lambda value: 0 < value < np.inf)
        require_number(self, "power_t", "a finite number of 0 or more", lambda value: 0 <= value < np.inf)
        if not callable(self.learning_rate):
            require_choice(self, "learning_rate", NAMES)
        if isinstance(self.learning_rate, str) and self.learning_rate == "optimal" and self.alpha == 0:
            raise ParameterError(
                'learning_rate="optimal" takes steps of 1 / (alpha (t + t0)), and alpha is 0; pass a larger alpha, or '
                'learning_rate="invscaling".'
            )
        if isinstance(self.eta0, str) and not np.isfinite(self._step_bound):
            raise ParameterError(
                f"the loss {self._loss.name!r} has no bound on its second derivative, which eta0='auto' needs; pass "
                "eta0, or give a user-defined loss the attribute step_bound."
            )
        require_choice(self, "budget_strategy", tuple(STRATEGIES))
        require_flags(self, "fit_intercept", "shuffle")
        require_seed(self)
        require_whole(self, "max_iter", "a whole number of passes, at least 1")
        if self.budget is not None:
            require_whole(self, "budget", "a whole number of support points, or None, at least 1")

    def _refuse_precomputed(self) -> None:
        if self._is_precomputed:
            raise ParameterError(
                'partial_fit needs kernel values between new and earlier rows, which kernel="precomputed" cannot give; '
                "pass a kernel, or use fit."
            )

    def _begin(self, X: CheckedRows) -> Any:
        """Fit the kernel, choose the scale of the steps, and forget what was learned; X as one side of matrices."""
        for name in ("_walk", "support_", "support_vectors_"):
            if hasattr(self, name):
                delattr(self, name)
        self._fit_kernel(X, intercept=False)
        rows = self._rows(X)
        if self._is_taken_on_trust():
            self._is_convex(self._gram(rows), np.arange(X.shape[0]), X.dtype, intercept=False)
        if not isinstance(self.eta0, str):
            self.eta0_ = float(self.eta0)
            return rows
        largest = float(self._gram(rows).diagonal().max()) + float(bool(self.fit_intercept))
        self.eta0_ = 1.0 / (self._step_bound * largest) if largest > 0 else 1.0
        if self.alpha > 0:
            self.eta0_ = min(self.eta0_, 1.0 / float(self.alpha))
        return rows

    @property
    def _step_bound(self) -> float:
        """Of a step of length s at x that overshoots, this times s k(x, x) is above 1."""
        return self._loss.step_bound

    @property
    def _merges(self) -> bool:
        return self.budget is not None and bool(self.budget_strategy == "merging")

    def _check_merging(self, X: CheckedRows) -> None:
        if not self._merges:
            return
        if not isinstance(self.kernel_, RBF):
            raise ParameterError(
                'budget_strategy="merging" puts a point between two others in their place, which is known for the RBF '
                f"kernel only, and the kernel is {'a matrix' if self.kernel_ is None else repr(self.kernel_)}; pass "
                '"projection" or "truncation".'
            )
        if sp.issparse(X):
            raise DataError(
                'budget_strategy="merging" creates points between rows, which are not sparse; pass X.toarray(), or '
                'budget_strategy="projection".'
            )

    def _rates(self, n: int, before: int, sizes: Vector | None) -> Vector:
        """Sizes of n steps after ``before`` others."""
        rates = sizes
        if rates is None:
            rates = step_sizes(
                self.learning_rate, before, n, eta0=self.eta0_, power_t=float(self.power_t), alpha=float(self.alpha)
            )
        largest = float(rates.max(initial=0.0))
        if largest * float(self.alpha) > 1.0:
            raise ParameterError(
                f"a step of {largest:g} with alpha={self.alpha:g} would reverse the sign of f, since 1 - {largest:g} "
                "alpha is below 0; pass smaller steps or a smaller alpha."
            )
        return rates

    def _learn_all(self, X: CheckedRows, rows: Any, targets: Vector, step_sizes: Any) -> Vector:
        """Passes over all rows, from the beginning; returns f at these rows in the end, (n, k).

        ``rows`` is X as ``_begin`` returned it.
        """
        n = X.shape[0]
        sizes = None if step_sizes is None else check_step_sizes(step_sizes, n, "step_sizes are")
        self._rates(1, 0, sizes)
        state = self._nothing(X, targets.shape[1])
        rng = check_random_state(self.random_state) if self.shuffle else None
        progress = Progress(int(self.max_iter), "passes", bool(self.verbose))
        losses = []
        with memory.reserve(8 * 64 * 64, "a block of kernel values"):
            gram: Any = None if self._merges else self._gram(rows, dtype=None if self.kernel_ is None else np.float64)
        with ExitStack() as stack:
            if gram is not None and self.kernel_ is not None and is_small(gram, np.float64):
                gram = hold(gram, stack, {np.float64: 0}).gram
            self._warn_of_long_steps(gram, X, self._rates(n, 0, sizes))
            for _ in range(int(self.max_iter)):
                order = np.arange(n) if rng is None else rng.permutation(n)
                rates = self._rates(n, state.steps, None if sizes is None else sizes[order])
                losses.append(self._pass(gram, X, targets, state, order, rates) / n)
                progress.advance()
                record("passes", len(losses), {"loss": float(losses[-1])})
            values = self._values_at_own(gram, X, state)
        progress.finish()
        self._keep(state, X, losses)
        if not self._merges:
            self.support_ = state.rows.astype(np.intp)
        return values

    def _warn_of_long_steps(self, gram: GramMatrix, X: CheckedRows, rates: Vector) -> None:
        """Warn if a step at a row makes the error there larger than it was, for losses whose slope has no bound."""
        if np.isfinite(self._problem().slope) or not np.isfinite(self._step_bound):
            return
        lengths = np.ones(len(rates)) if gram is None else np.asarray(gram.diagonal()[: len(rates)], dtype=np.float64)
        factors = self._step_bound * rates * (lengths + float(bool(self.fit_intercept)))
        worst = int(factors.argmax())
        if factors[worst] > 2.0 * (1.0 + 1e-9):
            warn_user(
                f"{type(self).__name__}: the step at row {worst} has the size {rates[worst]:.3g}, which is "
                f"{0.5 * factors[worst]:.3g} times the longest at which the error there does not grow: k(x, x) is "
                f"{lengths[worst]:.3g}. eta0='auto' is chosen for the rows of the first call; pass a smaller eta0 or "
                "smaller step_sizes, or rows in the units of the first call.",
                MercerWarning,
            )

    def _values_at_own(self, gram: GramMatrix, X: CheckedRows, state: OnlineState) -> Vector:
        if not state.theta.shape[1]:
            return np.tile(state.bias, (X.shape[0], 1))
        if self._merges and self.kernel_ is not None:
            part: Any = Gram(self.kernel_, X, (state.points * self._units()).astype(X.dtype), n_jobs=self.n_jobs)
        else:
            part = gram.restrict(None, state.rows)
        return np.asarray(part @ state.theta.T, dtype=np.float64) + state.bias

    def _learn_part(self, X: CheckedRows, targets: Vector, step_sizes: Any) -> None:
        """One pass over rows that come after others, in their order."""
        n = X.shape[0]
        sizes = None if step_sizes is None else check_step_sizes(step_sizes, n, "step_sizes are")
        state, vectors, gram = self._carried(X, targets.shape[1])
        rates = self._rates(n, state.steps, sizes)
        self._warn_of_long_steps(gram, X, rates)
        loss = self._pass(gram, vectors, targets, state, np.arange(n), rates) / n
        self._keep(state, vectors, [loss])
        if hasattr(self, "support_"):
            del self.support_

    def _nothing(self, X: CheckedRows, outputs: int) -> OnlineState:
        return OnlineState.empty(outputs, X.shape[1] if self._merges else 0)

    def _carried(self, X: CheckedRows, outputs: int) -> tuple[OnlineState, Any, Any]:
        """What was learned so far, the rows with the support behind, and their matrix."""
        state, vectors = self._nothing(X, outputs), X
        if hasattr(self, "_walk"):
            for name, value in self._walk.items():
                setattr(state, name, value.copy() if isinstance(value, np.ndarray) else value)
            if self._merges:
                state.points = np.asarray(self._scaled(self.support_vectors_))
            else:
                state.rows, others = places_among(X, self.support_vectors_)
                vectors = stacked(X, self.support_vectors_[others]) if len(others) else X
        return state, vectors, None if self._merges else self._gram(vectors, dtype=np.float64)

    def _pass(
        self, gram: GramMatrix, X: CheckedRows, targets: Vector, state: OnlineState, order: Any, rates: Vector
    ) -> float:
        problem = self._problem()
        if self._merges:
            return learn_by_merging(problem, self._scaled(X), targets, state, order, rates)
        return learn(problem, gram, targets, state, order, rates, self.n_jobs)

    def _problem(self) -> OnlineProblem:
        return OnlineProblem(
            self._loss,
            float(self.alpha),
            bool(self.fit_intercept),
            None if self.budget is None else int(self.budget),
            self.budget_strategy,
        )

    def _scaled(self, X: Any) -> Vector:
        """Rows in units in which the RBF kernel is ``exp(-|x - z|^2)``."""
        return np.ascontiguousarray(X / self._units(), dtype=np.float64)

    def _units(self) -> Vector:
        assert isinstance(self.kernel_, RBF)
        return np.sqrt(2.0) * np.asarray(self.kernel_.length_scale, dtype=np.float64)

    def _keep(self, state: OnlineState, vectors: Any, losses: list[float]) -> None:
        """Set the attributes that hold what was learned; ``vectors`` are the rows that the state speaks of."""
        if self._merges:
            self.support_vectors_ = (state.points * self._units()).astype(vectors.dtype)
        else:
            self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else vectors[state.rows]
        self.dual_coef_, self.intercept_ = state.theta, state.bias
        self.budget_error_ = state.lost
        self.truncation_bound_ = state.truncation_bound(self._problem())
        self.progressive_loss_ = np.array(losses)
        self.n_iter_, self.t_, self.n_changes_ = len(losses), state.steps, state.changes
        self._walk = {k: v for k, v in vars(state).items() if k not in ("rows", "points")}

    @property
    def _expansion(self) -> KernelExpansion:
        return of_support(self)

    def _values(self, X: RowsLike) -> Matrix:
        """f at the rows of ``X``, (m, k), in float64."""
        return values_of(self, X)
