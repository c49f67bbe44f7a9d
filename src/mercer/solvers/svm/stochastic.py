"""Stochastic subgradient descent on a regularised risk (Pegasos), with a duality gap as its certificate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from mercer._errors import DataError, NumericalError, ParameterError
from mercer._types import Integers, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.losses import Hinge, Loss
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.stochastic_rows import DescentState, StochasticRows

ORDERS = ("shuffled", "uniform", "given")


@dataclass(frozen=True, eq=False)
class MarginRisk:
    r"""A regularised risk for each of k outputs, without an offset.

    .. math:: \min_w \tfrac{\alpha}{2} \|w\|^2 + \tfrac1n \sum_i v_i \, \ell(y_i \langle w, \phi(x_i) \rangle)

    Parameters
    ----------
    rows : StochasticRows
        The n rows, by features or by kernel values.
    codes : ndarray of shape (n,)
        The class of each row.
    positive : ndarray of shape (k,)
        For each output the class for which y = +1; y = -1 for all others.
    weights : ndarray of shape (n,)
        v, above 0.
    alpha : float
        The regulariser, above 0.
    loss : Loss, default=Hinge()
        One of labels -1 and 1.
    convex : bool, default=True
        Whether the kernel is positive semi-definite; if not, the dual value bounds nothing.

    Raises
    ------
    DataError
        If lengths differ or a weight is not above 0.
    ParameterError
        If alpha or the loss makes no sense.
    """

    rows: StochasticRows
    codes: Integers
    positive: Integers
    weights: Vector
    alpha: float
    loss: Loss = field(default_factory=Hinge)
    convex: bool = True

    def __post_init__(self) -> None:
        n = self.rows.shape[0]
        if self.codes.shape != (n,) or self.weights.shape != (n,):
            raise DataError(
                f"{n} rows need a class and a weight each; the shapes are {self.codes.shape} and {self.weights.shape}."
            )
        if not (np.isfinite(self.weights) & (self.weights > 0)).all():
            raise DataError(
                f"weights must be finite and above 0, but reach from {self.weights.min()} to {self.weights.max()}. "
                "Leave out rows of weight 0."
            )
        if not 0 < self.alpha < np.inf:
            raise ParameterError(f"alpha must be a finite number above 0, but is {self.alpha}.")
        if self.loss.targets != "signs":
            raise ParameterError(f"the loss must be one of labels -1 and 1, and {self.loss.name!r} is not.")

    @property
    def signs(self) -> Vector:
        """y of each row for each output, (k, n)."""
        return np.where(self.codes == self.positive[:, None], 1.0, -1.0)

    def shift(self) -> float:
        """The shift of the step count for which no step at any row overshoots."""
        return self.loss.step_bound * float((self.weights * self.rows.squares()).max()) / self.alpha

    def begin(self) -> DescentState:
        """Return a walk at w = 0."""
        shape = (len(self.positive), self.rows.shape[1])
        return DescentState(np.zeros(shape), np.zeros(shape), self.alpha)


@dataclass(frozen=True)
class RiskValue:
    """The answer of a :class:`MarginRisk`.

    Parameters
    ----------
    coefficients : ndarray of shape (k, p)
        Of w in the features, or of its expansion in the rows.
    epochs : int
        Passes over the rows.
    """

    coefficients: Vector
    epochs: int


@dataclass(frozen=True, kw_only=True)
class StochasticDescent:
    r"""Minimises a :class:`MarginRisk` by stochastic subgradient descent with steps :math:`1 / (\alpha (t + s))`.

    Beginning with :math:`\theta = 0`, for t = 1, 2, ... at a row i:

    .. math:: w^{(t)} = \tfrac{1}{\alpha (t + s)} \theta, \quad u = -\ell'(y_i \langle w^{(t)}, \phi(x_i) \rangle),
              \quad \theta \leftarrow \theta + v_i u \, y_i \phi(x_i)

    The answer is the mean of the :math:`w^{(t)}`, or the last of them. With the shift
    s = 0 this is Pegasos, whose first steps are far longer than any useful w. With
    :math:`s = \max_i v_i k(x_i, x_i) / \alpha` (times the ``step_bound`` of the loss) no step overshoots.

    The mean :math:`u_i` of the slopes that were met at row i is a slope between them, which the conjugate of the loss
    allows; so the :math:`u_i` are a feasible point of the dual, and its value a true bound from below:

    .. math:: D(u) = \tfrac1n \sum_i v_i \bigl(-\ell^*(-u_i)\bigr) - \tfrac{\alpha}{2} \|w_u\|^2,
              \qquad w_u = \tfrac{1}{\alpha n} \sum_i v_i u_i y_i \phi(x_i)

    The gap is computed after 1, 2, 4, 8, ... passes, each time from the slopes met since the last time, and the best
    bound is kept. For the hinge :math:`v_i u_i / n` are the dual weights of the support vector machine.

    Parameters
    ----------
    max_epochs : int, default=1000
        The most passes; a pass is one step for each row.
    tol : float, default=1e-2
        The relative duality gap at which the solver stops.
    average : bool, default=True
        Whether the answer is the mean of the iterates rather than the last one.
    damped : bool, default=True
        Whether to shift the count of steps by s; if not, s = 0.
    order : {"shuffled", "uniform", "given"}, default="shuffled"
        A new permutation in each pass; or each row drawn by itself in proportion to its weight (the steps then have
        the mean weight); or as the rows come.
    verbose : bool, default=False
        Show progress on standard error.

    Notes
    -----
    Sources: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient solver for
    SVM", figure 1 and section 4; Baros, "Kernel methods", section 5 (the averaged form, with and without kernels).

    Examples
    --------
    >>> from mercer.solvers.svm.stochastic_rows import FeatureRows
    >>> risk = MarginRisk(
    ...     FeatureRows(np.array([[1.0], [-1.0]])), np.array([1, 0]), np.array([1]), np.ones(2), alpha=0.5
    ... )
    >>> StochasticDescent(tol=1e-2).solve(risk).value.coefficients.round(2)
    array([[1.]])
    """

    max_epochs: int = 1000
    tol: float = 1e-2
    average: bool = True
    damped: bool = True
    order: str = "shuffled"
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ParameterError(f"there is no order {self.order!r}; the orders are {', '.join(ORDERS)}.")

    def solve(
        self, risk: MarginRisk, start: DescentState | None = None, rng: np.random.RandomState | None = None
    ) -> Solution[RiskValue, DescentState]:
        r"""Solve ``risk``.

        Parameters
        ----------
        risk : MarginRisk
            The problem.
        start : DescentState, optional
            To go on from, and changed in place; ``risk.begin()`` by default.
        rng : RandomState, optional
            Draws the orders; one seeded with 0 by default.

        Returns
        -------
        Solution
            ``value`` is a :class:`RiskValue`; ``state`` is the :class:`DescentState`. ``certificate.kkt_violation`` is
            the largest :math:`\ell(z_i) + \ell^*(-u_i) + u_i z_i`, which is 0 where the u are slopes of the loss at
            the answer.

        Raises
        ------
        NumericalError
            If the numbers overflow.
        """
        begin = time.perf_counter()
        rng = np.random.RandomState(0) if rng is None else rng
        walk = risk.begin() if start is None else start
        progress = Progress(self.max_epochs, "passes of stochastic descent", self.verbose)
        with memory.track() as account, _opened(risk, walk, self.damped):
            epoch, judge = 0, _Judge(risk, self.average)
            while epoch < self.max_epochs:
                turn = one_pass(risk, self.order, rng)
                _take_steps(risk, walk, turn, judge.met, self.order)
                judge.visits += np.bincount(turn, minlength=len(judge.visits))
                epoch += 1
                progress.advance()
                if epoch & (epoch - 1) == 0 or epoch == self.max_epochs:
                    gap = judge.gap(walk)
                    record("passes", epoch, judge.figures)
                    if gap <= self.tol:
                        break
        converged = judge.relative_gap <= self.tol
        status = Status.iteration_limit if not converged else Status.converged if risk.convex else Status.stationary
        certificate = Certificate(
            judge.primal,
            judge.dual,
            judge.violation,
            walk.steps,
            time.perf_counter() - begin,
            account.peak,
            status,
            convex=risk.convex,
        )
        return Solution(RiskValue(judge.coefficients, epoch), status, certificate, walk)

    def pass_once(self, risk: MarginRisk, walk: DescentState, rng: np.random.RandomState) -> None:
        """Continue ``walk`` by one pass over the rows, without a certificate."""
        with _opened(risk, walk, self.damped):
            met = np.zeros((len(risk.positive), len(risk.codes)))
            _take_steps(risk, walk, one_pass(risk, self.order, rng), met, self.order)


@contextmanager
def _opened(risk: MarginRisk, walk: DescentState, damped: bool) -> Iterator[None]:
    """The context in which steps are made; ``walk`` continues with the regulariser and the shift of ``risk``."""
    k, (n, p) = len(risk.positive), risk.rows.shape
    vectors = memory.reserve(8 * k * (6 * n + 4 * p), "the vectors of stochastic descent")
    # The rows take what is left.
    with vectors, risk.rows.opened():
        walk.rebase(risk.alpha, risk.shift() if damped else 0.0)
        yield


def _take_steps(risk: MarginRisk, walk: DescentState, rows: Integers, met: Vector, order: str) -> None:
    """Make a step at each of ``rows``; ``met`` (k, n) accumulates the slopes at each row."""
    # Rows drawn in proportion to their weights count alike.
    price = np.full(len(risk.weights), risk.weights.mean()) if order == "uniform" else risk.weights
    with np.errstate(over="ignore", invalid="ignore"):
        risk.rows.steps(walk, rows, risk.codes, risk.positive, price, met, risk.loss)
    _require_finite(walk, walk.theta)


def _require_finite(walk: DescentState, values: Vector | float) -> None:
    if not np.isfinite(values).all():
        raise NumericalError(
            f"the weights overflowed after {walk.steps} steps. Scale the columns of X, raise alpha, which is "
            f"{walk.alpha}, or take damped steps."
        )


def one_pass(risk: MarginRisk, order: str, rng: np.random.RandomState) -> Integers:
    """The rows of one pass in ``order`` (see :class:`StochasticDescent`), (n,)."""
    n = len(risk.codes)
    if order == "shuffled":
        return rng.permutation(n)
    if order == "given":
        return np.arange(n)
    ends = np.cumsum(risk.weights)
    return np.minimum(np.searchsorted(ends, rng.uniform(0.0, ends[-1], n), side="right"), n - 1)


class _Judge:
    """Primal value of the answer so far, and the best dual bound."""

    def __init__(self, risk: MarginRisk, average: bool) -> None:
        self.risk, self.average = risk, average
        self.met = np.zeros((len(risk.positive), len(risk.codes)))
        self.visits = np.zeros(len(risk.codes), dtype=np.int64)
        self.primal, self.dual, self.violation = np.inf, -np.inf, np.inf

    @property
    def relative_gap(self) -> float:
        size = max(abs(self.primal), abs(self.dual))
        return (self.primal - self.dual) / size if 0 < size < np.inf else float(size)

    def figures(self) -> dict[str, float]:
        """What traces keep."""
        return {"primal": self.primal, "dual": self.dual, "violation": self.violation}

    def gap(self, walk: DescentState) -> float:
        """Evaluate the current answer of ``walk``, and restart the sums of slopes; return the relative gap."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._judge(walk)
        _require_finite(walk, self.primal)
        self.met[:], self.visits[:] = 0.0, 0
        return self.relative_gap

    def _judge(self, walk: DescentState) -> None:
        risk, loss = self.risk, self.risk.loss
        self.coefficients = walk.mean() if self.average else walk.last()
        slopes = self.met / np.maximum(self.visits, 1)
        share, signs = risk.weights / len(risk.weights), risk.signs
        bound = risk.rows.combine(share * slopes * signs) / risk.alpha
        k = len(risk.positive)
        values, squares = risk.rows.evaluate(np.vstack([self.coefficients, bound]))
        # The conjugate at the slope -u y by f, which is what the dual gains.
        margins, gains = signs * values[:k], -loss.conjugate(signs, -slopes * signs)
        losses = loss.value(signs, values[:k])
        self.primal = float(0.5 * risk.alpha * squares[:k].sum() + (losses @ share).sum())
        self.dual = max(self.dual, float((gains @ share).sum() - 0.5 * risk.alpha * squares[k:].sum()))
        self.violation = float((losses - gains + slopes * margins).max())
