"""The ways in which learners fit: what each takes, from the functions and constants of the solvers themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier

from mercer._registered import command_line_of
from mercer.engine import memory
from mercer.estimators.gaussian.over_landmarks import SAMPLE
from mercer.estimators.shared.on_blocks import rows_to_draw
from mercer.estimators.shared.what_fits import bytes_in_blocks, method_of, solving_bytes
from mercer.gram.hold import HELD_SHARE, WIDE, capacity, fits, held_bytes
from mercer.gram.triangle import SHARE, triangle_bytes
from mercer.landmarks.choose import choice_bytes, rows_seen
from mercer.solvers.clustering import kmeans
from mercer.solvers.gaussian.approaches import Name, approach
from mercer.solvers.linear import cholesky, iterative, penalty_path, primal, primal_steps
from mercer.solvers.restricted import clusters, penalties, precondition
from mercer.solvers.restricted.evidence_blocks import class_evidence_bytes
from mercer.solvers.risk import logistic, products
from mercer.solvers.spectral import eigenpairs
from mercer.solvers.svm import active_set, smo
from mercer.solvers.svm.coordinates import descent_bytes, is_cheaper
from mercer.solvers.svm.interior_features import interior_bytes, passes_before
from mercer.solvers.svm.pairwise import JOINED

# How often typical fits pass over the rows, take products or factor; measured by the part "estimate" of
# benchmarks/scale.py.
# One for the decomposition, and two for errors of rows left out.
_PASSES_OF_PENALTIES = {"loo": 3, "gcv": 1, "evidence": 1}
_PASSES, _PASSES_OF_NEWTON, _PASSES_OF_MULTIPLIERS = 12, 25, 50
# How often Newton's method computes its preconditioner again.
_REFRESHED = 4
_PASSES_OF_MEANS = 10
_PRODUCTS, _PRODUCTS_OF_LANCZOS, _NEWTON_STEPS, _STEPS_OF_SEARCH = 40, 40, 8, 2
_EVALUATIONS = 30
# Of learners of tables: what an evaluation takes with its gradient, in cubes of the rows; and what searches and
# penalties of classes take together, in searches: two to four, since classes of unequal sizes have two of each.
_EVALUATION_ON_TABLES, _CHOICES_OF_CLASSES = 2.0, 2.5
# Residuals for the refinement of a float32 factor.
_REFINED = 5
# The same in the space of explicit features; an entry of these costs as much as so many operations in the cache.
_STEPS_OF_FEATURES, _PASSES_OF_DESCENT, _SPARSE = 35, 40, 40.0
# Of support vector machines: how many kernel values are evaluated, as a share of the matrix.
_SHARE_OF_ROWS = 1.7
# What steps take for each row and row of the working set, and each row of explicit features beside its entries.
_STEPS, _ROW = 240.0, 100.0
# The operations of a reduction to a band with what follows, in units of a Cholesky factor.
_BAND = 10.0
# The passes in float64 among those in float32.
_EXACT_PASSES = 3
# Of rows in parts none are marked, and losses with kinks take so many times the passes.
_PARTS = 2


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
        What the solvers of support vector machines and Gaussian processes need to know of the kernel.
    features : int
        Explicit features of the kernel; 0 if there are none, or not finitely many that are known.
    entries : float
        How many of these are stored for a row.
    is_sparse : bool
        Whether only some are.
    row_bytes : float
        Memory of the features of a row, if they are not the row itself.
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
    features: int = 0
    entries: float = 0.0
    is_sparse: bool = False
    row_bytes: float = 0.0

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
    read : float
        Bytes of stored matrices that products read.
    alone : float
        Operations in float64 of one thread, whatever others there are.
    known : bool
        Whether seconds can be estimated.
    note : str
    """

    name: str
    nbytes: int
    before: float = 0.0
    a_pass: float = 0.0
    passes: int = 0
    exact: int = 0
    operations: float = 0.0
    single: float = 0.0
    read: float = 0.0
    alone: float = 0.0
    known: bool = True
    note: str = ""

    def plus(self, *, passes: int, exact: int | None = None, **more: float) -> Way:
        """The same with so many passes, all of them in float64 unless ``exact`` says how many, and more work."""
        sums = {name: getattr(self, name) + value for name, value in more.items()}
        return replace(self, passes=passes, exact=passes if exact is None else exact, **sums)


Ways = Callable[[Any, Case], list[Way]]
"""From a learner and a size to the ways in the order in which the learner tries them: it takes the first that fits."""


def ways_of(model: Any, case: Case) -> list[Way]:
    """Return the ways of a learner."""
    if case.landmarks and model.is_on_landmarks:
        return [_landmarks(model, case)]
    for cls in type(model).__mro__:
        if cls.__name__ in _WAYS:
            return _WAYS[cls.__name__](model, case)
    return _others(model, case)


def landmark_bytes(model: Any, case: Case) -> int:
    """Memory of a fit over landmarks, in bytes."""
    n, m, name = case.n, min(case.landmarks, case.n), type(model).__name__
    if name == "GaussianProcessClassifier":
        return max(choice_bytes(n, m, method_of(model)), class_evidence_bytes(n, m, max(2, len(case.classes))))
    if case.blocks:
        return bytes_in_blocks(name, n, m, case.d, method_of(model))
    rows = sum(_pair(model, case))
    return max(solving_bytes(name, rows, m), choice_bytes(n, m, method_of(model)))


def _landmarks(model: Any, case: Case) -> Way:
    n, m, how = case.n, min(case.landmarks, case.n), method_of(model)
    seen = rows_seen(n, m, how) if how != "uniform" else 0
    way = Way(
        f"Nyström approximation over {m:,} landmarks",
        landmark_bytes(model, case),
        before=m * m + m * seen,
        a_pass=n * m,
        operations=m**3 + 2.0 * seen * m * m,
    )
    return _OVER_LANDMARKS.get(type(model).__name__, _risk_on_landmarks)(model, case, way)


def _components_on_landmarks(model: Any, case: Case, way: Way) -> Way:
    m = min(case.landmarks, case.n)
    return way.plus(passes=1, operations=4.0 * case.n * m * m + 9.0 * m**3)


def _ridge_on_landmarks(model: Any, case: Case, way: Way) -> Way:
    n, m = case.n, min(case.landmarks, case.n)
    sample = precondition.sample_size(n, m)
    work = 3.0 * sample * m * m + m**3 / 3
    if isinstance(model.alpha, str):
        # A fit refuses other names.
        passes = _PASSES_OF_PENALTIES.get(model.alpha, 1) + 1
        way = replace(way, nbytes=max(way.nbytes, penalties.memory_of(m)))
        return way.plus(passes=passes, before=sample * m, operations=work + 2.0 * passes * n * m * m + 9.0 * m**3)
    rows = 0 if case.blocks else capacity(held_bytes((1, m)), n, HELD_SHARE)
    lazy = rows < n
    if lazy and not (case.costly or case.d >= WIDE):
        rows = 0
    if not case.blocks and clusters.are_cheaper(n, m, (math.inf if case.costly else case.d) if lazy else None):
        # The landmarks are their own sample: a square of their factor and a factor of that.
        sample, work = min(n, clusters.ENOUGH * m), 2.0 * m**3 / 3
    way = way.plus(passes=_PASSES, exact=_EXACT_PASSES, before=sample * m, operations=work)
    if not rows:
        return way
    # Evaluated once in float32, and then read.
    held, often = held_bytes((rows, m)), _PASSES - _EXACT_PASSES
    note = f"and {memory.describe(held)} more for values in float32, at most a quarter of the free memory"
    passes = _EXACT_PASSES + 1 + round((often - 1) * (n - rows) / n)
    return replace(way, passes=passes, read=float(held) * often, note=note)


def _risk_on_landmarks(model: Any, case: Case, way: Way) -> Way:
    n, m, k = case.n, min(case.landmarks, case.n), len(case.classes)
    sample = precondition.sample_size(n, m)
    pairs = max(1, k * (k - 1) // 2) if _has_pairs(model) else 1
    work = pairs * _REFRESHED * (2.0 * sample * m * m + m**3 / 3)
    passes, exact = _PASSES_OF_NEWTON, _EXACT_PASSES
    if type(model).__name__ != "KernelLogisticRegression":
        # Losses with kinks are solved in float64.
        passes = exact = _PASSES_OF_MULTIPLIERS * (_PARTS if case.blocks else 1)
    if case.costly and not case.d and not case.blocks:
        # Values of objects are evaluated once, and then read.
        return way.plus(passes=1, before=sample * m, operations=work, read=8.0 * n * m * passes)
    # Each row is in the pairs of its class.
    a_pass = 2 * way.a_pass // max(2, k) if pairs > 1 else way.a_pass
    way = replace(way, a_pass=a_pass)
    return way.plus(passes=passes * pairs, exact=exact * pairs, before=sample * m, operations=work)


def _pair(model: Any, case: Case) -> tuple[int, int]:
    """Rows of the two largest classes of learners that compare these, else all in one of two parts."""
    counts = sorted(case.classes, reverse=True)
    if _has_pairs(model) and len(counts) > 1:
        return counts[0], counts[1]
    return case.n - case.n // 2, case.n // 2


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
    ways = _in_features(model, case)
    if model.solver != "cg":
        ways += _cholesky(case)
    if model.solver != "cholesky":
        ways += _products(case)
    return ways


def _in_features(model: Any, case: Case) -> list[Way]:
    """Ridge regression in the space of explicit features, where these are fewer than the rows."""
    n, p = case.n, case.features
    if not 0 < p <= n:
        return []
    if case.is_sparse and p > primal.MOST_SPARSE:
        if model.solver == "cholesky":
            return []
        steps = _SPARSE * case.entries * n * _STEPS_OF_FEATURES
        nbytes = int(case.row_bytes * n) + primal_steps.vector_bytes(n, p, case.targets)
        return [Way(f"conjugate gradients on {p:,} explicit features", nbytes, operations=steps)]
    if p > primal.most_features(n) or model.solver == "cg":
        return []
    operations = 1.0 * n * p * p + p**3 / 3
    nbytes = int(case.row_bytes * n) + primal.normal_bytes(n, p, case.targets, int(case.entries * n), case.is_sparse)
    return [Way(f"normal equations of {p:,} explicit features", nbytes, operations=operations)]


def _cholesky(case: Case) -> list[Way]:
    n, cube = case.n, case.n**3 / 3
    each = cholesky.entry_bytes(n, case.targets)
    if not cholesky.is_mixed(n, case.targets):
        return [Way("Cholesky factor in float64", each[0] * n * n, case.pairs, operations=cube)]
    name, read = "Cholesky factor in float32, refined", 8.0 * n * n * _REFINED
    whole = Way(name, each[0] * n * n, case.pairs, single=cube, read=read)
    lazy = Way(f"{name} on a lazy matrix", each[1] * n * n, case.pairs, case.pairs, _REFINED, _REFINED, single=cube)
    return [whole, lazy]


def _products(case: Case) -> list[Way]:
    n, rank = case.n, iterative.fitting_rank(case.n)
    pivots = min(rank, iterative.typical_rank(n))
    lazy = Way(
        f"conjugate gradients, preconditioner of rank {rank:,} at most",
        iterative.memory_of(n, rank),
        before=n * pivots,
        a_pass=case.pairs,
        passes=_PRODUCTS,
        exact=_EXACT_PASSES,
        operations=2.0 * n * pivots**2,
        read=16.0 * n * pivots * _PRODUCTS,
    )
    held = triangle_bytes(n)
    if not fits(SHARE * held):
        return [lazy]
    # Evaluated once in float32, and then read.
    beside = iterative.fitting_rank(n, beside=held)
    kept = replace(
        lazy,
        name=f"conjugate gradients on a held triangle, preconditioner of rank {beside:,} at most",
        nbytes=held + iterative.memory_of(n, beside),
        passes=_EXACT_PASSES + 1,
        read=lazy.read + float(held) * (_PRODUCTS - _EXACT_PASSES),
    )
    return [kept, lazy]


def _svm(model: Any, case: Case) -> list[Way]:
    n = sum(_pair(model, case))
    counts = case.classes if len(case.classes) > 1 else _pair(model, case)
    k = len(counts)
    # The steps of a pair are those of one thread, and pairs are solved side by side.
    pairs, rows = (k * (k - 1) // 2, 2 * case.n // k) if _has_pairs(model) else (1, n)
    steps = _STEPS * pairs * rows * min(rows, math.isqrt(active_set.BLOCK))
    shared, alone = (steps, 0.0) if pairs > 1 else (0.0, steps)
    of_classes = _has_pairs(model) and smo.EXACT < n <= JOINED
    if n <= smo.WHOLE or of_classes:
        name = f"SMO on the {'blocks of the classes' if of_classes else 'whole matrix'}"
        entries = sum(count**2 for count in counts) if of_classes else (case.n if case.n <= smo.WHOLE else n) ** 2
        return [Way(name, (8 if n <= smo.EXACT else 4) * entries, case.pairs, operations=shared, alone=alone)]
    if case.features and is_cheaper(case.entries * n, case.features, n) and model.max_iter < 0:
        steps = _SPARSE * (case.entries + _ROW) * case.n * _PASSES_OF_DESCENT
        nbytes = int(case.row_bytes * n) + descent_bytes(n, case.features)
        if passes_before(case.features) < math.inf:
            # Where the passes are slow.
            shape, tube = (n, case.features, int(case.entries * n)), hasattr(model, "epsilon")
            nbytes += interior_bytes(*shape, is_sparse=case.is_sparse, has_tube=tube)
        return [Way(f"coordinate descent on {case.features:,} explicit features", nbytes, alone=steps)]
    kept = 0 if case.cheap else min(4 * n * n, int(model.cache_size * 2**20))
    note = "the time depends on how many rows become support vectors"
    active = Way(
        "SMO on active rows",
        4 * active_set.BLOCK + kept,
        a_pass=_SHARE_OF_ROWS * n * n,
        passes=pairs,
        operations=shared,
        alone=alone,
        note=note,
    )
    # Beside the whole matrix as much memory again must be free, although the fit does not use it.
    whole = replace(active, name="SMO on the whole matrix", nbytes=active.nbytes + 4 * n * n)
    return [whole, active] if case.costly else [active]


def _logistic(model: Any, case: Case) -> list[Way]:
    n, k = case.n, max(2, len(case.classes))
    m = 1 if k == 2 else k
    # Classes are not solved for one by one: their products are coupled, and converge slower.
    often = _PRODUCTS if m == 1 else 2 * m * _PRODUCTS
    beside = logistic.vector_bytes(n, m)
    if case.features and products.read_less(case.entries * n, case.features, n):
        operations = 2 * _SPARSE * case.entries * n * m * _PRODUCTS
        name = f"Newton steps on {case.features:,} explicit features"
        return [Way(name, int(case.row_bytes * n) + beside, operations=operations)]
    whole = products.entry_bytes(n)
    ways = [
        Way("Newton steps, K whole", each * n * n + beside, case.pairs, read=min(each, 8) * 1.0 * n * n * often)
        for each in whole
        if each
    ]
    lazy = Way("Newton steps, K by tiles", beside, a_pass=case.pairs, passes=_PRODUCTS, exact=_EXACT_PASSES)
    return [*ways, lazy]


def _process(model: Any, case: Case) -> list[Way]:
    n, cube = case.n, case.n**3 / 3
    searched = getattr(model, "optimizer", None) is not None
    restarts = getattr(model, "n_restarts_optimizer", 0)
    evaluations = _EVALUATIONS * (1 + (1 if restarts == "auto" else int(restarts))) if searched else 1
    note = f"seconds are for {evaluations} evaluations of the evidence" if searched else ""
    # With its gradient an evaluation also takes the inverse.
    operations = cube * (3 * evaluations + 1 if searched else 1)
    way = Way("Cholesky factor in float64", 8 * n * n, case.pairs * evaluations, operations=operations, note=note)
    return [way]


def _process_on_landmarks(model: Any, case: Case, way: Way) -> Way:
    n, m = case.n, min(case.landmarks, case.n)
    fixed = way.plus(passes=2, operations=2.0 * n * m * m + m**3)
    if model.optimizer is None:
        return fixed
    (sample,) = _process(model, case.of_rows(min(n, SAMPLE)))
    return _searched(case, way, fixed, sample, 2, lambda rows: 6.0 * rows * m * m + 5.0 * m**3)


def _searched(case: Case, way: Way, fixed: Way, sample: Way, passes: int, operations: Callable[[int], float]) -> Way:
    """A search on few rows, and then one on all of them, or on some of those in blocks; ``fixed`` is without both."""
    rows = rows_to_draw(case.n, case.landmarks) if case.blocks else case.n
    before, work = sample.before, sample.operations + _EVALUATIONS * operations(rows)
    if case.blocks:
        before += passes * _EVALUATIONS * rows * way.a_pass / case.n
        way, passes = fixed, fixed.passes
    else:
        passes *= _EVALUATIONS
    way = way.plus(passes=passes, before=before, operations=work)
    note = f"seconds are for {_EVALUATIONS} evaluations of the evidence of {rows:,} rows"
    return replace(way, nbytes=max(way.nbytes, sample.nbytes), note=note)


def _process_of_classes(model: Any, case: Case) -> list[Way]:
    k = max(2, len(case.classes))
    joint = k == 2 or model._scheme == "multinomial"
    method: Name = "ep" if model.approximation == "ep" else "laplace"
    by = approach(case.n, k if joint else 2, method)
    # Each classifier of two keeps its factor.
    each = by.bytes_per_entry + (0 if case.definite else 8) + (0 if joint else 8 * k)
    (plain,) = _process(model, case)
    # Of a search, every mode starts at the last one.
    steps = (k - 1 if k == 2 else k) * (_NEWTON_STEPS if model.optimizer is None else _STEPS_OF_SEARCH)
    name, work = f"{method}, factors in float64", plain.operations * steps
    return [replace(plain, name=name, nbytes=each * case.n**2, operations=work)]


def _classes_on_landmarks(model: Any, case: Case, way: Way) -> Way:
    """The same for classes, whose evaluations take several Newton steps, and two passes for the gradient."""
    n, m, k = case.n, min(case.landmarks, case.n), max(2, len(case.classes))
    functions, pairs = (1, 1) if k == 2 else (k, k * (k - 1) // 2)
    step = (1.0 + pairs) * n * m * m + (functions * m) ** 3 / 3
    fixed = way.plus(passes=_NEWTON_STEPS, operations=_NEWTON_STEPS * step)
    if model.optimizer is None:
        return fixed
    (sample,) = _process_of_classes(clone(model).set_params(approximation="laplace"), case.of_rows(min(n, SAMPLE)))

    def evaluation(rows: int) -> float:
        return (_NEWTON_STEPS / 2 * (1.0 + pairs) + 1.0 + 2.0 * pairs) * rows * m * m + 7.0 * (functions * m) ** 3 / 3

    return _searched(case, way, fixed, sample, _NEWTON_STEPS // 2 + 2, evaluation)


def _components(model: Any, case: Case) -> list[Way]:
    n = case.n
    k = n if model.n_components is None else min(int(model.n_components), n)
    method = eigenpairs.method_for(n, k, model.eigen_solver)
    beside = eigenpairs.vector_bytes(n, k, method)
    if method == "dense":
        return [Way("eigenvectors by LAPACK", 8 * n * n + beside, case.pairs, alone=4.0 * n**3, operations=4.0 * n**3)]
    work = 2.0 * n * n * (k + 8) * _PRODUCTS_OF_LANCZOS
    whole = Way(f"{method}, K whole", 8 * n * n + beside, case.pairs, operations=work)
    lazy = Way(f"{method}, K by tiles", beside, a_pass=case.pairs, passes=_PRODUCTS_OF_LANCZOS)
    return [whole, replace(lazy, exact=_PRODUCTS_OF_LANCZOS)]


def _clusters(model: Any, case: Case) -> list[Way]:
    n, k = case.n, min(model.n_clusters, case.n)
    m = min(model.n_landmarks, n) if model.is_on_landmarks else 0
    if m or case.features:
        # Coordinates of the rows take the place of K.
        numbers = (m or case.entries) * n
        nbytes = int(8 * numbers) + kmeans.working_bytes(n, k, dual=False)
        work = 2.0 * numbers * k * _PASSES_OF_MEANS + n * m * m
        return [Way(f"distances in {m or case.features:,} coordinates", nbytes, (n + m) * m, operations=work)]
    beside, read = kmeans.working_bytes(n, k, dual=True), float(8 * n * n * _PASSES_OF_MEANS)
    # A quarter of the matrix must be free beside it.
    whole = [Way("the kernel matrix", each * n * n + beside, case.pairs, read=read) for each in (10, 5)]
    return [*whole, Way("the kernel matrix by tiles", beside, a_pass=case.pairs, passes=_PASSES_OF_MEANS)]


def _tables(model: Any, case: Case) -> list[Way]:
    """A search on some rows, beside which kernel values are few, and a fit to all."""
    (way,), work = (
        _others(model, case),
        _EVALUATIONS * _EVALUATION_ON_TABLES * float(min(case.n, model.search_rows)) ** 3,
    )
    if is_classifier(model):
        return [
            replace(
                way, operations=_CHOICES_OF_CLASSES * work, read=_logistic(model, case)[0].read, known=True, note=""
            )
        ]
    return [replace(way, operations=work + case.n**3 / 3, known=True, note="")]


def _others(model: Any, case: Case) -> list[Way]:
    each = command_line_of(type(model)).pair_bytes or 8
    note = f"how long {type(model).__name__} takes is not known"
    return [Way("the kernel matrix", each * case.n**2, case.pairs, known=False, note=note)]


_OVER_LANDMARKS: dict[str, Callable[[Any, Case, Way], Way]] = {
    "KernelRidge": _ridge_on_landmarks,
    "KernelPCA": _components_on_landmarks,
    "GaussianProcessRegressor": _process_on_landmarks,
    "GaussianProcessClassifier": _classes_on_landmarks,
}
_WAYS: dict[str, Ways] = {
    "KernelRidge": _ridge,
    "KernelLogisticRegression": _logistic,
    "SVC": _svm,
    "SVR": _svm,
    "GaussianProcessRegressor": _process,
    "GaussianProcessClassifier": _process_of_classes,
    "KernelPCA": _components,
    "KernelKMeans": _clusters,
    "TabularClassifier": _tables,
    "TabularRegressor": _tables,
}
