"""The ways in which learners fit: what each takes, from the functions and constants of the solvers themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mercer._registered import command_line_of
from mercer.data.blocks.blocks import Blocks
from mercer.estimators.shared.on_blocks import rows_to_draw
from mercer.landmarks.choose import choice_bytes, rows_seen
from mercer.solvers.gaussian.approaches import approach
from mercer.solvers.linear import cholesky, iterative, penalty_path
from mercer.solvers.restricted import precondition
from mercer.solvers.risk import logistic, products
from mercer.solvers.spectral import eigenpairs
from mercer.solvers.svm import active_set, smo
from mercer.solvers.svm.pairwise import JOINED

# How often typical fits pass over the rows, take products or factor; see the benchmark "estimate" of benchmarks/scale.py.
_PASSES, _PASSES_OF_NEWTON = 18, 45
_PRODUCTS, _PRODUCTS_OF_LANCZOS, _NEWTON_STEPS = 40, 40, 8
_EVALUATIONS = 30
# Of support vector machines: the share of the matrix that is evaluated.
_SHARE_OF_ROWS = 0.6
# The operations of a reduction to a band with what follows, in units of a Cholesky factor.
_BAND = 10.0
# More rows than anybody has.
_NO_END = 2**40
# The passes in float64 among those in float32.
_EXACT_PASSES = 3


@dataclass(frozen=True)
class Case:
    """The size of a fit.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    targets : int
        Columns of targets.
    classes : tuple of int
        How many rows each class has.
    landmarks : int
        How many there are.
    blocks : bool
        Whether the rows are read in blocks.
    cheap, costly, definite : bool
        What the solvers of support vector machines and Gaussian processes ask of the kernel.
    """

    n: int
    d: int
    targets: int = 1
    classes: tuple[int, ...] = ()
    landmarks: int = 0
    blocks: bool = False
    cheap: bool = False
    costly: bool = False
    definite: bool = True

    @property
    def pairs(self) -> int:
        """Entries of the kernel matrix that are evaluated once: it is symmetric."""
        return self.n * (self.n + 1) // 2

    def of_rows(self, n: int) -> Case:
        """The same for another number of rows."""
        share = n / self.n
        return replace(self, n=n, classes=tuple(max(1, round(share * count)) for count in self.classes))


@dataclass(frozen=True)
class Way:
    """One way to fit.

    Parameters
    ----------
    name : str
    nbytes : int
        The most that it holds at once, beside the data.
    before : float
        Kernel values in float64 that are evaluated once.
    a_pass : float
        Kernel values of each pass or product.
    passes : int
        How many passes or products a fit typically takes; 0 if there are none.
    exact : int
        How many of these are in float64; the others are in float32.
    operations : float
        Of matrix algebra, in float64.
    single : float
        The same in float32.
    known : bool
        Whether seconds can be said.
    note : str
    wanted : int
        What it would hold with all the memory that it can use, where it makes do with less.
    """

    name: str
    nbytes: int
    before: float = 0.0
    a_pass: float = 0.0
    passes: int = 0
    exact: int = 0
    operations: float = 0.0
    single: float = 0.0
    known: bool = True
    note: str = ""
    wanted: int = 0


Ways = Callable[[Any, Case], list[Way]]
"""From a learner and a size to the ways in the order in which the learner tries them: it takes the first that fits."""


def ways_of(model: Any, case: Case) -> list[Way]:
    """Return the ways of a learner."""
    if getattr(model, "is_on_landmarks", False):
        return [_landmarks(model, case)]
    for cls in type(model).__mro__:
        if cls.__name__ in _WAYS:
            return _WAYS[cls.__name__](model, case)
    return _others(model, case)


def landmark_bytes(model: Any, case: Case) -> int:
    """Memory of a fit over landmarks, in bytes."""
    n, m = case.n, min(case.landmarks, case.n)
    solving = 2 * 8 * m * m + _factors(model) * 8 * m * m + precondition.sample_bytes(n, m)
    how = model.landmarks if isinstance(model.landmarks, str) else "uniform"
    if not case.blocks:
        return max(solving, choice_bytes(n, m, how))
    drawn = min(n, rows_to_draw(n, m))
    return max(solving, choice_bytes(drawn, m, how), 2 * 8 * case.d * drawn)


def _factors(model: Any) -> int:
    """Squares of the landmarks that the solver keeps beside their kernel matrix."""
    return 1 if type(model).__name__ == "KernelRidge" else 2


def _landmarks(model: Any, case: Case) -> Way:
    n, m = case.n, min(case.landmarks, case.n)
    ridge = type(model).__name__ == "KernelRidge"
    how = model.landmarks if isinstance(model.landmarks, str) else "uniform"
    seen, sample = rows_seen(n, m, how), precondition.sample_size(n, m)
    passes, refreshed = (_PASSES, 1) if ridge else (_PASSES_OF_NEWTON, 3)
    functions = max(1, len(case.classes) * (len(case.classes) - 1) // 2 if _has_pairs(model) else 1)
    chosen = m * seen if how != "uniform" else 0
    return Way(
        f"Nyström approximation over {m:,} landmarks",
        landmark_bytes(model, case),
        before=m * m + chosen + sample * m,
        a_pass=n * m,
        passes=passes * functions,
        exact=_EXACT_PASSES * functions,
        operations=m**3 + 2.0 * seen * m * m * (how != "uniform") + (1 + 2 * refreshed * functions) * sample * m * m,
    )


def _has_pairs(model: Any) -> bool:
    return type(model).__name__ in ("SVC", "NuSVC")


def _ridge(model: Any, case: Case) -> list[Way]:
    n, cube = case.n, case.n**3 / 3
    if getattr(model, "learns_kernel", False):
        note = "the search over kernel parameters takes as many factorisations as it needs"
        return [
            Way("search by leave-one-out, then a band form", each * n * n, case.pairs, known=False, note=note)
            for each in penalty_path.ENTRY_BYTES
        ]
    if isinstance(model.alpha, str):
        return [
            Way(f"band form, alpha by {model.alpha}", each * n * n, case.pairs, operations=_BAND * cube)
            for each in penalty_path.ENTRY_BYTES[0 if n >= cholesky.MIXED_FROM else 1 :]
        ]
    ways = [] if model.solver == "cg" else _cholesky(case)
    if model.solver != "cholesky":
        ways.append(_products(case))
    return ways


def _cholesky(case: Case) -> list[Way]:
    n, cube = case.n, case.n**3 / 3
    each = cholesky.entry_bytes(n, case.targets)
    if not cholesky.is_mixed(n, case.targets):
        return [Way("Cholesky factor in float64", each[0] * n * n, case.pairs, operations=cube)]
    whole = Way("Cholesky factor in float32, refined", each[0] * n * n, case.pairs, single=cube)
    lazy = replace(whole, name=f"{whole.name} on a lazy matrix", nbytes=each[1] * n * n, a_pass=case.pairs, passes=3)
    return [whole, replace(lazy, exact=3)]


def _products(case: Case) -> Way:
    n, rank = case.n, iterative.fitting_rank(case.n)
    return Way(
        f"conjugate gradients, preconditioner of rank {rank:,}",
        iterative.memory_of(n, rank),
        before=n * rank,
        a_pass=case.pairs,
        passes=_PRODUCTS,
        exact=_EXACT_PASSES,
        operations=4.0 * n * rank * rank,
        wanted=iterative.memory_of(n, iterative.wanted_rank(n)),
    )


def _svm(model: Any, case: Case) -> list[Way]:
    counts = sorted(case.classes, reverse=True) if _has_pairs(model) else [case.n]
    if _has_pairs(model) and len(counts) < 2:
        counts = [case.n - case.n // 2, case.n // 2]
    n = sum(counts[:2])
    if n <= smo.EXACT:
        return [Way("SMO on the whole matrix", 8 * (case.n if case.n <= smo.WHOLE else n) ** 2, case.pairs)]
    if _has_pairs(model) and n <= JOINED:
        return [Way("SMO on the blocks of the classes", 4 * sum(count**2 for count in counts), case.pairs)]
    if n <= smo.WHOLE:
        return [Way("SMO on the whole matrix", 4 * n * n, case.pairs)]
    kept = 0 if case.cheap else min(4 * n * n, int(model.cache_size * 2**20))
    pairs = len(counts) * (len(counts) - 1) // 2 or 1
    note = "the time depends on how many rows become support vectors"
    rows = Way("SMO on active rows", 4 * active_set.BLOCK + kept, a_pass=_SHARE_OF_ROWS * n * n, passes=pairs, note=note)
    # Beside the whole matrix as much again has to be free, which it then does not take.
    whole = replace(rows, name="SMO on the whole matrix", nbytes=rows.nbytes + 4 * n * n)
    return [whole, rows] if case.costly else [rows]


def _logistic(model: Any, case: Case) -> list[Way]:
    n, k = case.n, max(2, len(case.classes))
    m = 1 if k == 2 else k
    beside = logistic.vector_bytes(n, m)
    whole = products.entry_bytes(n)
    ways = [
        Way("Newton steps, K whole", each * n * n + beside, case.pairs, operations=2.0 * n * n * m * _PRODUCTS)
        for each in whole
        if each
    ]
    lazy = Way("Newton steps, K by tiles", beside, a_pass=case.pairs, passes=_PRODUCTS, exact=_EXACT_PASSES)
    return [*ways, lazy]


def _process(model: Any, case: Case) -> list[Way]:
    n, cube = case.n, case.n**3 / 3
    searched = getattr(model, "optimizer", None) is not None
    evaluations = _EVALUATIONS * (1 + int(getattr(model, "n_restarts_optimizer", 0))) if searched else 1
    note = f"seconds are for {evaluations} evaluations of the evidence" if searched else ""
    # With its gradient an evaluation also takes the inverse.
    operations = cube * (3 * evaluations + 1 if searched else 1)
    way = Way("Cholesky factor in float64", 8 * n * n, case.pairs * evaluations, operations=operations, note=note)
    return [way]


def _process_of_classes(model: Any, case: Case) -> list[Way]:
    k = max(2, len(case.classes))
    by = approach(case.n, k, model.approximation)
    each = by.bytes_per_entry + (0 if case.definite else 8)
    (plain,) = _process(model, case)
    many = k - 1 if k == 2 else k
    return [
        replace(
            plain,
            name=f"{model.approximation}, factors in float64",
            nbytes=each * case.n**2,
            operations=plain.operations * _NEWTON_STEPS * many,
        )
    ]


def _components(model: Any, case: Case) -> list[Way]:
    n = case.n
    k = n if model.n_components is None else min(int(model.n_components), n)
    method = eigenpairs.method_for(n, k, model.eigen_solver)
    beside = eigenpairs.vector_bytes(n, k, method)
    if method == "dense":
        return [Way("eigenvectors by LAPACK", 8 * n * n + beside, case.pairs, operations=4.0 * n**3)]
    work = 2.0 * n * n * (k + 8) * _PRODUCTS_OF_LANCZOS
    whole = Way(f"{method}, K whole", 8 * n * n + beside, case.pairs, operations=work)
    lazy = Way(f"{method}, K by tiles", beside, a_pass=case.pairs, passes=_PRODUCTS_OF_LANCZOS)
    return [whole, replace(lazy, exact=_PRODUCTS_OF_LANCZOS)]


def _others(model: Any, case: Case) -> list[Way]:
    each = command_line_of(type(model)).pair_bytes or 8
    note = f"how long {type(model).__name__} takes is not known"
    return [Way("the kernel matrix", each * case.n**2, case.pairs, known=False, note=note)]


_WAYS: dict[str, Ways] = {
    "KernelRidge": _ridge,
    "KernelLogisticRegression": _logistic,
    "SVC": _svm,
    "SVR": _svm,
    "GaussianProcessRegressor": _process,
    "GaussianProcessClassifier": _process_of_classes,
    "KernelPCA": _components,
}


def most(nbytes: Callable[[int], float], room: float) -> int | None:
    """The largest number whose ``nbytes``, which grow with it, fit ``room``; None if there is no end, 0 for none.

    >>> most(lambda n: 8 * n * n, 8_000_000), most(lambda n: 8, 10), most(lambda n: 8, 1)
    (1000, None, 0)
    """
    if nbytes(1) > room:
        return 0
    end = 1
    while nbytes(2 * end) <= room:
        end *= 2
        if end > _NO_END:
            return None
    begin, end = end, 2 * end
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (middle, end) if nbytes(middle) <= room else (begin, middle)
    return begin


def is_blocks(X: Any) -> bool:
    """Whether rows are read in blocks."""
    return isinstance(X, Blocks)


def clean(value: float) -> float:
    """A number of seconds with two digits.

    >>> clean(12.345), clean(0.0)
    (12.0, 0.0)
    """
    return 0.0 if value == 0 else round(value, 1 - math.floor(math.log10(abs(value))))
