"""Which parameters of a learner need less memory than a kernel matrix, for errors of the memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer._errors import MemoryBudgetError
from mercer.engine import memory
from mercer.estimators.shared.on_blocks import rows_to_draw
from mercer.estimators.shared.restricted import not_beside_landmarks
from mercer.landmarks.choose import choice_bytes
from mercer.solvers.linear import iterative
from mercer.solvers.restricted import components, precondition
from mercer.solvers.restricted.evidence_blocks import class_evidence_bytes, evaluation_bytes

# With fewer landmarks a function has little to work with.
_FEWEST = 50
# What a process keeps of each row in blocks, beside its targets.
_NUMBERS = 8


def solving_bytes(learner: str, n: int, m: int, *, in_parts: bool = False) -> int:
    """Memory that a learner's solver takes for n rows and m landmarks, in bytes; for rows in parts it marks none.

    >>> solving_bytes("KernelRidge", 10_000, 100)
    3398400
    """
    # The kernel matrix of the landmarks and its factor, and then the factor with what the solver has.
    if learner == "KernelPCA":
        return 8 * m * m + components.memory_of(m)
    if learner == "GaussianProcessRegressor":
        return evaluation_bytes(n, m)
    copies = factors = 1 if learner == "KernelRidge" else 2
    sample = precondition.sample_bytes(n, m, copies)
    if not in_parts and learner not in ("KernelRidge", "KernelLogisticRegression"):
        sample = max(sample, precondition.features_bytes(precondition.most_marked(n, m), m, copies))
    return max(2 * 8 * m * m, (1 + factors) * 8 * m * m + sample)


def bytes_in_blocks(learner: str, n: int, m: int, d: int, how: str) -> int:
    """Memory of a fit to n rows of d numbers in blocks, over m landmarks that are chosen by a method, in bytes.

    >>> bytes_in_blocks("KernelRidge", 1_000_000, 100, 10, "uniform")
    3398400
    """
    drawn = rows_to_draw(n, m)
    if learner == "GaussianProcessRegressor":
        return max(solving_bytes(learner, n, m), choice_bytes(drawn, m, how), 2 * 8 * d * drawn) + 8 * n * _NUMBERS
    return max(solving_bytes(learner, n, m, in_parts=True), choice_bytes(drawn, m, how), 2 * 8 * d * drawn)


@contextmanager
def naming_what_fits(learner: Any, n: int, beside: int = 0) -> Iterator[None]:
    """Let an error of the memory budget also say which parameters of the learner would fit, and what they cost.

    That is bytes and kernel values. Seconds take a measurement of the kernel, which is not made where memory has just
    ended, and a fit may be one of many of a search: the message names what makes it.

    Parameters
    ----------
    learner : KernelEstimator
    n : int
        Rows.
    beside : int, default=0
        Memory that a fit over landmarks takes before or after its solver, in bytes, as a search on a sample does.

    Raises
    ------
    MemoryBudgetError
        The error of the block, with the parameters that would fit if there are any.
    """
    try:
        yield
    except MemoryBudgetError as error:
        ways = _ways(learner, n, beside)
        if not ways:
            raise
        # Without the advice of a part of the learner, which has other parameters.
        plain = error.__cause__ if isinstance(error.__cause__, MemoryBudgetError) else error
        raise MemoryBudgetError(
            f"{plain} Or pass {' or '.join(ways)}. mercer.estimate(model, X) tells the seconds of a model with these "
            "parameters, and fits nothing."
        ) from plain


def _ways(learner: Any, n: int, beside: int) -> list[str]:
    """The parameters that fit what the budget has left."""
    parameters = learner.get_params(deep=False)
    kernel = vars(learner).get("kernel_")
    if kernel is None or kernel.definiteness != "positive":
        return []
    free, ways = memory.budget(), []
    chosen = isinstance(parameters.get("alpha"), str)
    if parameters.get("approximation", "nystroem") != "nystroem":
        m = _landmarks(learner, n, free) if beside <= free else None
        if m is not None:
            count = "" if m == parameters["n_landmarks"] else f" and n_landmarks={m}"
            need = memory.describe(max(_need(learner, n, m), beside))
            need = f"{need} and {n * min(m, n):,} kernel values a pass"
            blocks = _in_blocks(learner, n, m, beside)
            ways.append(f'approximation="nystroem"{count}{_changes(learner)} ({need}{blocks})')
    if parameters.get("solver") == "cholesky" and "approximation" in parameters and not chosen:
        rank = iterative.fitting_rank(n)
        if iterative.memory_of(n, rank) <= free:
            need = f"{memory.describe(iterative.memory_of(n, rank))} and {n * n:,} kernel values a product"
            ways.append(f'solver="cg" ({need})')
    return ways


def _changes(learner: Any) -> str:
    """What else has to change for an approximation.

    >>> from mercer import KernelRidge
    >>> _changes(KernelRidge("loo")), _changes(KernelRidge())
    (' with a number for alpha', '')
    """
    words = ["a number for alpha"] if isinstance(getattr(learner, "alpha", None), str) else []
    words += [f"{needed.name}={needed.value!r}" for needed in not_beside_landmarks(learner)]
    return f" with {' and '.join(words)}" if words else ""


def _landmarks(learner: Any, n: int, free: float) -> int | None:
    """The number that the learner has, or a half of it and so on; None if few do not fit."""
    # Where the number is left open, it may be any.
    own = n if isinstance(learner.n_landmarks, str) else int(learner.n_landmarks)
    m = min(own, n)
    while m >= min(_FEWEST, n):
        if _need(learner, n, m) <= free:
            return own if m == min(own, n) else m
        m //= 2
    return None


def _in_blocks(learner: Any, n: int, m: int, beside: int) -> str:
    """What it takes with rows that stay in files, for learners and rows that can."""
    d = vars(learner).get("n_features_in_")
    if d is None or _is_of_classes(learner):
        return ""
    need = max(bytes_in_blocks(type(learner).__name__, n, min(m, n), int(d), method_of(learner)), beside)
    return f"; {memory.describe(need)} with X in mercer.Blocks, which need not fit into memory either"


def method_of(learner: Any) -> str:
    """Return how a learner chooses its landmarks; given ones take as much memory as those that are drawn."""
    return learner.landmarks if isinstance(learner.landmarks, str) else "uniform"


def _is_of_classes(learner: Any) -> bool:
    """Whether it is a Gaussian process for classes, whose need depends on their number."""
    return type(learner).__name__ == "GaussianProcessClassifier"


def _need(learner: Any, n: int, m: int) -> int:
    if _is_of_classes(learner):
        joint = learner._scheme == "multinomial"
        solving = class_evidence_bytes(n, m, learner.n_classes_ if joint else 2)
        return max(solving, choice_bytes(n, m, method_of(learner)))
    return max(solving_bytes(type(learner).__name__, n, m), choice_bytes(n, m, method_of(learner)))
