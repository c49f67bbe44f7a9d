"""Certificates of fits over landmarks for the problem of all rows, beside the exact learners."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, SVR, KernelLogisticRegression, KernelPCA, KernelRidge, certify, certify_landmarks, config
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.certification import LandmarkCertificate
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Linear, Matern, Spectrum
from mercer.solvers.restricted.exact import RowSample, squares
from mercer.solvers.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(2 * X).sum(axis=1) + 0.1 * RNG.normal(size=200)
LABELS = np.where(Y > 0, "yes", "no")
NEW = RNG.normal(size=(40, 3))


def ridge(alpha: Any = 0.1, **options: Any) -> KernelRidge:
    defaults = {"kernel": RBF(1.5), "approximation": "nystroem", "n_landmarks": 30, "random_state": 0}
    return KernelRidge(alpha, **{**defaults, **options})


def exact(model: Any) -> Any:
    """The same learner without landmarks."""
    tol = {} if isinstance(model, KernelRidge) else {"tol": 1e-8}
    return type(model)(**{**model.get_params(deep=False), **tol, "approximation": None})


def kernels(number: int, random: np.random.Generator) -> Any:
    return [RBF(10.0 ** random.uniform(-1, 1)), Matern(1.0), Linear()][number % 3]


def weights_of(number: int, n: int, random: np.random.Generator) -> np.ndarray | None:
    return np.maximum(random.integers(-1, 3, n), [1.0] + [0.0] * (n - 1)) if number % 2 else None


def random_ridge(number: int) -> None:
    """One problem of random size, scale and kernel: no bound is violated."""
    random = np.random.default_rng(number)
    n, m, d = int(random.integers(1, 250)), int(random.integers(1, 80)), int(random.integers(1, 6))
    rows = random.normal(size=(n, d)) * 10.0 ** random.uniform(-1, 1)
    if number % 5 == 0:
        rows[: n // 2] = rows[0]
    targets = np.stack([np.sin(rows.sum(axis=1)), random.normal(size=n)], axis=1) * 10.0 ** random.uniform(-3, 3)
    alpha = 10.0 ** random.uniform(-4, 2)
    model = ridge(
        [alpha, 2 * alpha] if number % 4 == 0 else alpha,
        kernel=kernels(number, random),
        n_landmarks=m,
        landmarks=["rpcholesky", "uniform", "kmeans"][number % 3],
    )
    weight = weights_of(number, n, random)
    model.fit(rows, targets, weight)
    full = exact(model).fit(rows, targets, weight)
    certificate = certify_landmarks(model, rows, targets, sample_weight=weight)
    new = np.vstack([rows[:30], random.normal(size=(30, d)) * rows.std()])
    assert (np.abs(model.predict(new) - full.predict(new)) <= certificate.prediction_bound(new)).all()
    gained = model.certificate_.primal - full.certificate_.primal
    assert certificate.gap >= gained - 1e-9 * certificate.primal
    own = np.ones(n) if weight is None else weight
    squares = own @ (model.predict(rows) - full.predict(rows)) ** 2 / own.sum()
    assert np.sqrt(squares.max()) <= certificate.rows_error


def classes_of(number: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows of two or three classes that overlap, and weights."""
    n = int(random.integers(8, 200))
    rows = random.normal(size=(n, int(random.integers(1, 5))))
    k = 2 if number % 3 else 3
    labels = np.digitize(rows[:, 0] + 0.5 * random.normal(size=n), [0.0] if k == 2 else [-0.4, 0.4])
    labels[:k] = np.arange(k)
    weight = weights_of(number, n, random)
    if weight is not None:
        weight[:k] = 1.0
    return rows, labels, weight


def random_hinge(number: int) -> None:
    """The same for support vectors, and pairs of classes."""
    random = np.random.default_rng(number)
    rows, labels, weight = classes_of(number, random)
    model: Any = SVC(
        C=10.0 ** random.uniform(-2, 2),
        kernel=kernels(number, random),
        approximation="nystroem",
        n_landmarks=int(random.integers(1, 60)),
        random_state=0,
        fit_intercept=bool(number % 4),
        decision_function_shape="ovo",
    )
    model.fit(rows, labels, weight)
    full = exact(model).fit(rows, labels, weight)
    certificate = certify_landmarks(model, rows, labels, sample_weight=weight)
    assert certificate.gap >= certificate.primal - full.certificate_.primal - 1e-7 * certificate.primal
    new = np.vstack([rows[:30], random.normal(size=(30, rows.shape[1]))])
    far = np.abs(model.decision_function(new) - full.decision_function(new))
    assert (far <= certificate.prediction_bound(new)).all()


def random_tube(number: int) -> None:
    """The same for support vector regression."""
    random = np.random.default_rng(number)
    n = int(random.integers(2, 200))
    rows = random.normal(size=(n, int(random.integers(1, 5))))
    targets = (np.sin(rows.sum(axis=1)) + 0.2 * random.normal(size=n)) * 10.0 ** random.uniform(-2, 2)
    weight = weights_of(number, n, random)
    model: Any = SVR(
        C=10.0 ** random.uniform(-2, 2),
        epsilon=0.1 * float(targets.std()),
        kernel=kernels(number, random),
        approximation="nystroem",
        n_landmarks=int(random.integers(1, 60)),
        random_state=0,
        fit_intercept=bool(number % 4),
    )
    model.fit(rows, targets, weight)
    full = exact(model).fit(rows, targets, weight)
    certificate = certify_landmarks(model, rows, targets, sample_weight=weight)
    assert certificate.gap >= certificate.primal - full.certificate_.primal - 1e-7 * certificate.primal
    new = np.vstack([rows[:30], random.normal(size=(30, rows.shape[1]))])
    assert (np.abs(model.predict(new) - full.predict(new)) <= certificate.prediction_bound(new)).all()


def random_logistic(number: int) -> None:
    """The same for two or three classes."""
    random = np.random.default_rng(number)
    rows, labels, weight = classes_of(number, random)
    model: Any = KernelLogisticRegression(
        C=10.0 ** random.uniform(-2, 2),
        kernel=kernels(number, random),
        approximation="nystroem",
        n_landmarks=int(random.integers(1, 60)),
        random_state=0,
        fit_intercept=bool(number % 4),
        tol=1e-6,
    )
    model.fit(rows, labels, weight)
    full = exact(model).fit(rows, labels, weight)
    certificate = certify_landmarks(model, rows, labels, sample_weight=weight)
    assert certificate.gap >= certificate.primal - full.certificate_.primal - 1e-9 * certificate.primal
    if len(model.classes_) == 2 or not model.fit_intercept:
        new = np.vstack([rows[:30], random.normal(size=(30, rows.shape[1]))])
        far = np.abs(model.decision_function(new) - full.decision_function(new))
        assert (far <= certificate.prediction_bound(new)).all()


@pytest.mark.parametrize("number", range(6))
def test_no_bound_is_violated(number: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random_ridge(number)
        random_logistic(number)
        random_hinge(number)
        random_tube(number)


@pytest.mark.slow
def test_no_bound_is_violated_in_many_problems() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(6, 76):
            random_ridge(number)
            random_logistic(number)
            random_hinge(number)
            random_tube(number)


def test_it_is_the_duality_gap_of_the_exact_problem() -> None:
    weight = RNG.uniform(0.5, 2.0, 200)
    model = ridge(0.3).fit(X, Y, weight)
    f, K = model.predict(X), RBF(1.5)(X)
    primal = weight @ (Y - f) ** 2 + 0.3 * model.norm_[0] ** 2
    c = weight * (Y - f) / 0.3
    square = c @ K @ c + 0.3 * c @ (c / weight)
    certificate = certify_landmarks(model, X, Y, sample_weight=weight)
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    best = max(0.3 * (2 * t * c @ Y - t * t * square) for t in np.linspace(0, 2, 2001))
    assert certificate.dual == pytest.approx(best, rel=1e-6)
    assert certificate.status is Status.given and certificate.gap_interval[1] == pytest.approx(certificate.gap)
    # It is not far above what the exact learner gains.
    gained = primal - exact(model).fit(X, Y, weight).certificate_.primal
    assert gained <= certificate.gap < 2 * gained


def test_with_all_rows_as_landmarks_nothing_can_be_gained() -> None:
    certificate = certify_landmarks(ridge(landmarks=X, tol=1e-12).fit(X, Y), X, Y)
    assert certificate.relative_gap < 1e-9 and certificate.prediction_bound(NEW).max() < 1e-3
    model = KernelLogisticRegression(kernel=RBF(1.5), approximation="nystroem", landmarks=X, tol=1e-8)
    assert certify_landmarks(model.fit(X, LABELS), X, LABELS).relative_gap < 1e-7


def test_multipliers_next_to_the_margin_make_the_gap_small() -> None:
    model = SVC(C=5.0, kernel=RBF(1.5), approximation="nystroem", n_landmarks=40, random_state=0, tol=1e-5)
    model.fit(X, LABELS)
    certificate = certify_landmarks(model, X, LABELS)
    gained = certificate.primal - SVC(C=5.0, kernel=RBF(1.5), tol=1e-8).fit(X, LABELS).certificate_.primal
    assert gained - 1e-9 <= certificate.gap < 1.3 * gained
    tube = SVR(C=5.0, kernel=RBF(1.5), approximation="nystroem", n_landmarks=40, random_state=0, tol=1e-5).fit(X, Y)
    certificate = certify_landmarks(tube, X, Y)
    gained = certificate.primal - SVR(C=5.0, kernel=RBF(1.5), tol=1e-8).fit(X, Y).certificate_.primal
    assert gained - 1e-9 <= certificate.gap < 1.5 * gained
    # One class is within the margin as a whole: no multipliers of the other rows alone have the sum 0.
    lone = np.where(np.arange(200) == 0, "a", "b")
    few = SVC(C=0.01, kernel=RBF(1.5), approximation="nystroem", landmarks=X[1:2]).fit(X, lone)
    full = SVC(C=0.01, kernel=RBF(1.5), tol=1e-8).fit(X, lone)
    assert certify_landmarks(few, X, lone).gap >= few.certificate_.primal - full.certificate_.primal - 1e-12


def test_more_landmarks_and_nearby_rows_have_smaller_bounds() -> None:
    few, many = (certify_landmarks(ridge(n_landmarks=m).fit(X, Y), X, Y) for m in (20, 120))
    assert many.gap < few.gap and (many.prediction_bound(NEW) < few.prediction_bound(NEW)).all()
    assert many.prediction_bound(X).mean() < 0.9 * many.prediction_bound(NEW + 5.0).mean()


def test_a_sample_of_the_rows_has_an_interval() -> None:
    model = ridge(n_landmarks=40).fit(X, Y)
    whole, covered = certify_landmarks(model, X, Y), 0
    for seed in range(40):
        part = certify_landmarks(model, X, Y, n_rows=40, confidence=0.9, random_state=seed)
        low, high = part.gap_interval
        covered += low <= whole.gap <= high
        assert part.status is Status.probable and part.confidence == 0.9 and part.gap == pytest.approx(high)
    assert covered >= 32
    assert "no proof" in part.explain() and "n_rows=None" in part.explain()
    assert certify_landmarks(model, X, Y, n_rows=200).status is Status.given


def test_bounds_of_several_pairs_of_classes_hold_together() -> None:
    labels = np.digitize(Y, [-1.5, -0.5, 0.5, 1.5])
    model = SVC(kernel=RBF(1.5), approximation="nystroem", n_landmarks=20, random_state=0)
    model.set_params(decision_function_shape="ovo").fit(X, labels)
    whole = certify_landmarks(model, X, labels).prediction_bound(NEW[:1])
    short = 0
    for seed in range(6):
        part = certify_landmarks(model, X, labels, n_rows=25, confidence=0.8, random_state=seed)
        short += (part.prediction_bound(NEW[:1]) < whole).any()
    assert short <= 1


def covered(targets: int, rows: int, draws: int) -> float:
    """In which share of draws all intervals of skewed targets hold, for a confidence of 90 %."""
    random = np.random.default_rng(1)
    points = random.normal(size=(400, 4))
    Y = np.sin(2 * points @ random.normal(size=(4, targets))) + 0.1 * random.standard_t(2.5, size=(400, targets))
    Y *= 10.0 ** random.uniform(-2, 2, targets)
    model = ridge(n_landmarks=30).fit(points, Y)
    near = model.predict(points).reshape(400, targets)
    C, K = (Y - near) / 0.1, RBF(1.5)(points)
    exact, held = (C * (K @ C)).sum(axis=0), 0
    for seed in range(draws):
        found = squares(PrecomputedGram(K), C, near, RowSample(rows, 0.9, np.random.RandomState(seed)))
        held += bool(((found.low <= exact) & (exact <= found.high)).all())
    return held / draws


def test_intervals_of_many_targets_hold_together() -> None:
    # Student's alone hold in 62 %.
    assert covered(20, 40, 100) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("targets", [1, 5, 20])
def test_intervals_hold_as_often_as_they_state(targets: int) -> None:
    for rows in (25, 100, 200):
        assert covered(targets, max(rows, 2 * targets), 200) >= 0.9


def test_other_kinds_of_rows() -> None:
    words = ["".join(RNG.choice(list("acgt"), 10)) for _ in range(60)]
    y = np.array([word.count("ac") for word in words], dtype=float)
    model = ridge(kernel=Spectrum(2), n_landmarks=10).fit(words, y)
    full = exact(model).fit(words, y)
    certificate = certify_landmarks(model, words, y)
    assert (np.abs(model.predict(words) - full.predict(words)) <= certificate.prediction_bound(words)).all()
    dense, sparse = (certify_landmarks(ridge(landmarks=X[:20]).fit(R, Y), R, Y) for R in (X, sp.csr_matrix(X)))
    assert sparse.gap == pytest.approx(dense.gap, rel=1e-6)
    single = ridge(landmarks=X[:20].astype(np.float32)).fit(X.astype(np.float32), Y)
    assert certify_landmarks(single, X.astype(np.float32), Y).gap == pytest.approx(dense.gap, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scales_of_the_targets(scale: float) -> None:
    one, other = (certify_landmarks(ridge(tol=1e-10).fit(X, Y * s), X, Y * s) for s in (1.0, scale))
    assert other.gap == pytest.approx(one.gap * scale**2, rel=1e-6)
    np.testing.assert_allclose(other.prediction_bound(NEW), one.prediction_bound(NEW) * scale, rtol=1e-5)


def test_threads_do_not_change_the_bits() -> None:
    model = ridge().fit(X, Y)
    found = []
    for jobs in (1, 2, 5):
        with config(n_jobs=jobs):
            certificate = certify_landmarks(model, X, Y)
            found.append((certificate.gap, certificate.prediction_bound(NEW).tolist()))
    assert found[0] == found[1] == found[2]


def test_it_reads_like_any_certificate() -> None:
    certificate = certify_landmarks(ridge().fit(X, Y), X, Y)
    assert isinstance(certificate, LandmarkCertificate)
    assert "n_landmarks" in certificate.explain() and "all pairs of 200 rows" in certificate.explain()
    written = json.loads(json.dumps(certificate.as_dict(), allow_nan=False))
    assert written["gap"] == certificate.gap and written["rows_error"] == certificate.rows_error
    assert written["gap_interval"] == list(certificate.gap_interval)


def test_several_pairs_of_classes_read_like_any_certificate() -> None:
    labels = np.digitize(Y, [-1.0, 1.0])
    model = SVC(kernel=RBF(1.5), approximation="nystroem", n_landmarks=30, random_state=0).fit(X, labels)
    certificate = certify_landmarks(model, X, labels)
    written = json.loads(json.dumps(certificate.as_dict(), allow_nan=False))
    assert written["rows_error"] is None and certificate.rows_error == np.inf
    assert certificate.storage == "evaluated for all pairs of the rows of each pair of classes, and not stored"
    some = certify_landmarks(model, X, labels, n_rows=20).storage
    assert "of 400 rows, counted for each pair of classes" in some


def test_what_cannot_be_certified_is_said() -> None:
    model = ridge().fit(X, Y)
    with pytest.raises(TypeError, match="takes KernelRidge"):
        certify_landmarks(KernelPCA(2).fit(X), X, Y)
    with pytest.raises(ParameterError, match="not fitted over landmarks"):
        certify_landmarks(KernelRidge().fit(X, Y), X, Y)
    with pytest.raises(DataError, match="fitted on 3"):
        certify_landmarks(model, X[:, :2], Y)
    with pytest.raises(DataError, match="pass the targets of the fit"):
        certify_landmarks(model, X, np.column_stack([Y, Y]))
    with pytest.raises(DataError):
        certify_landmarks(model, X, Y[:-1])
    for options in (
        {"n_rows": 3},
        {"n_rows": 20.5},
        {"n_rows": 50, "confidence": 1.0},
        {"n_rows": 50, "random_state": "a"},
    ):
        with pytest.raises(ParameterError, match=r"n_rows|confidence|random_state"):
            certify_landmarks(model, X, Y, **options)
    with pytest.raises(DataError, match="fitted on 3"):
        certify_landmarks(model, X, Y).prediction_bound(X[:, :2])
    with pytest.raises(ParameterError, match="certify_landmarks"):
        certify(model, X, Y)


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_"])
def test_coefficients_that_are_not_finite_are_refused(name: str) -> None:
    model = SVR(kernel=RBF(1.5), approximation="nystroem", n_landmarks=20, random_state=0).fit(X, Y)
    getattr(model, name).flat[0] = np.nan
    # Before any work: these rows could not be used either.
    with pytest.raises(DataError, match=f"{name} of this SVR has 1 of .* not finite"):
        certify_landmarks(model, X[:, :1], Y)


@pytest.mark.parametrize("change", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_rows_other_than_those_of_the_fit_are_refused(change: Any) -> None:
    model = ridge().fit(change(X), Y)
    for other in (2 * X, X[::-1], X + 1e-4):
        with pytest.raises(DataError, match=r"X differs from the rows .* of 30 landmarks .* landmark_indices_"):
            certify_landmarks(model, change(other), Y)
    last = int(model.landmark_indices_.max())
    with pytest.raises(DataError, match=f"X has {last} rows, but row {last} of those"):
        certify_landmarks(model, change(X[:last]), Y[:last])
    # Rounding of a file is no difference, and dense and sparse rows are the same.
    whole = certify_landmarks(model, X, Y).gap
    assert certify_landmarks(model, change(X.astype(np.float32).astype(float)), Y).gap == pytest.approx(whole, rel=1e-3)


def test_other_objects_than_those_of_the_fit_are_refused() -> None:
    words = ["".join(RNG.choice(list("acgt"), 10)) for _ in range(40)]
    y = np.array([word.count("ac") for word in words], dtype=float)
    model = ridge(kernel=Spectrum(2), n_landmarks=10).fit(words, y)
    with pytest.raises(DataError, match="X differs from the rows"):
        certify_landmarks(model, words[::-1], y)


@pytest.mark.parametrize("kind", [KernelLogisticRegression, SVC])
def test_other_classes_than_those_of_the_fit_are_refused(kind: Any) -> None:
    model = kind(kernel=RBF(1.5), approximation="nystroem", n_landmarks=20, random_state=0)
    model.fit(X, np.digitize(Y, [-1.0, 1.0]))
    with pytest.raises(DataError, match="no label 2 in a row with a weight"):
        certify_landmarks(model, X, np.digitize(Y, [-1.0]))
    with pytest.raises(DataError, match="label 'no', which the fit did not see"):
        certify_landmarks(model, X, LABELS)
    with pytest.raises(DataError, match="199 labels"):
        certify_landmarks(model, X, LABELS[1:])


def test_too_few_rows_for_all_targets_are_refused() -> None:
    many = RNG.normal(size=(200, 20))
    model = ridge().fit(X, many)
    with pytest.raises(ParameterError, match="intervals of 20 targets hold together from 40 rows on"):
        certify_landmarks(model, X, many, n_rows=39)
    assert certify_landmarks(model, X, many, n_rows=40).status is Status.probable
    classes = KernelLogisticRegression(kernel=RBF(1.5), approximation="nystroem", n_landmarks=20, random_state=0)
    labels = np.arange(200) % 6
    with pytest.raises(ParameterError, match="intervals of 6 functions hold together from 12 rows on"):
        certify_landmarks(classes.fit(X, labels), X, labels, n_rows=10)


def test_labels_and_offsets() -> None:
    model = KernelLogisticRegression(kernel=RBF(1.5), approximation="nystroem", n_landmarks=30, random_state=0)
    with pytest.raises(DataError, match="label 'maybe'"):
        certify_landmarks(model.fit(X, LABELS), X, np.where(X[:, 0] > 2, "maybe", LABELS))
    three = np.digitize(Y, [-1.0, 1.0])
    certificate = certify_landmarks(model.fit(X, three), X, three)
    assert 0 < certificate.relative_gap < 0.2
    with pytest.raises(ParameterError, match="offsets of several classes"):
        certificate.prediction_bound(NEW)


def test_memory_is_that_of_the_landmarks() -> None:
    many = RNG.normal(size=(1500, 3))
    model = ridge(n_landmarks=20, landmarks="uniform").fit(many, many[:, 0])
    gained = model.certificate_.primal - exact(model).fit(many, many[:, 0]).certificate_.primal
    # The kernel matrix of all rows takes 17 MiB.
    with config(memory="8 MiB"):
        gap = certify_landmarks(model, many, many[:, 0]).gap
    assert 0 < gained <= gap < 3 * gained
    with config(memory="1 KiB"), pytest.raises(MemoryBudgetError):
        certify_landmarks(model, many, many[:, 0])
