"""Estimates against fits: memory, kernel values, what fits, and that nothing is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import (
    SVC,
    SVR,
    Blocks,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    TabularClassifier,
    TabularRegressor,
    config,
    estimate,
)
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.costs.estimate import estimate_for
from mercer.costs.ways import Case, ways_of
from mercer.engine import memory
from mercer.gram import Gram
from mercer.kernels import RBF, Spectrum

OF_ROWS: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5}
NOISY: dict[str, Any] = {"alpha": 0.1, "approximation": "nystroem", "n_landmarks": 100, "random_state": 0}
OF_CLASSES: dict[str, Any] = {"approximation": "nystroem", "n_landmarks": 100, "random_state": 0}
ON_LANDMARKS: dict[str, Any] = {"approximation": "nystroem", "n_landmarks": 100, **OF_ROWS}


def rows(n: int, classes: int = 0, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n)
    return X, np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y


def fitted(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X) if isinstance(model, KernelPCA) else model.fit(X, y)


def test_any_model_can_be_estimated_by_the_shape_alone() -> None:
    with config(memory="1GiB", n_jobs=1):
        ridge = estimate(KernelRidge(kernel="rbf", solver="cholesky"), (100_000, 10))
    assert not ridge.fits and ridge.n == 100_000 and ridge.d == 10
    assert ridge.way.startswith("Cholesky")
    assert "100,000 rows with 10 columns" in str(ridge) and "does not fit" in str(ridge)
    assert ridge.seconds is not None and ridge.seconds > 1.0


WAYS: dict[str, tuple[Any, int, int, tuple[int, int], float | None]] = {
    # The model, classes, columns, two sizes, and the budget in bytes for each pair of rows.
    "Cholesky": (KernelRidge(0.1, **OF_ROWS), 0, 6, (600, 1600), None),
    "lazy Cholesky": (KernelRidge(0.1, **OF_ROWS), 0, 6, (2048, 2200), 6.0),
    "gradients when nothing else fits": (KernelRidge(0.1, **OF_ROWS), 0, 6, (1000, 1600), 3.0),
    "gradients": (KernelRidge(0.1, solver="cg", **OF_ROWS), 0, 6, (700, 1300), None),
    "leave-one-out": (KernelRidge("loo", **OF_ROWS), 0, 6, (300, 700), None),
    "landmarks": (KernelRidge(0.1, approximation="nystroem", n_landmarks=150, **OF_ROWS), 0, 6, (1000, 4000), None),
    "all rows are landmarks": (KernelRidge(0.1, approximation="nystroem", **OF_ROWS), 0, 6, (200, 300), None),
    "logistic, landmarks": (KernelLogisticRegression(**ON_LANDMARKS), 3, 6, (600, 1500), None),
    "columns": (KernelRidge(1.0), 0, 6, (600, 3000), None),
    "columns for SVC": (SVC(kernel="linear"), 2, 6, (3100, 4000), None),
    "monomials": (KernelRidge(1.0, kernel="poly", degree=2), 0, 6, (600, 2000), None),
    "columns for logistic regression": (KernelLogisticRegression(kernel="linear"), 2, 6, (2100, 3000), None),
    "SVC, landmarks": (SVC(**ON_LANDMARKS), 3, 6, (600, 1500), None),
    "SVR, landmarks": (SVR(**ON_LANDMARKS), 0, 6, (300, 600), None),
    "components, landmarks": (KernelPCA(n_components=4, **ON_LANDMARKS), 0, 6, (600, 3000), None),
    "SVC": (SVC(**OF_ROWS), 2, 6, (400, 1500), None),
    "SVC, active rows": (SVC(**OF_ROWS), 2, 6, (2300, 3000), None),
    "SVC, wide": (SVC(**OF_ROWS), 2, 40, (2300, 2500), None),
    "SVC, four classes": (SVC(**OF_ROWS), 4, 6, (600, 2000), None),
    "SVR": (SVR(**OF_ROWS), 0, 6, (400, 1500), None),
    "SVR, active rows": (SVR(**OF_ROWS), 0, 6, (2300, 3000), None),
    "logistic": (KernelLogisticRegression(**OF_ROWS), 2, 6, (600, 2200), None),
    "logistic, float32": (KernelLogisticRegression(**OF_ROWS), 2, 6, (2100, 2300), 6.0),
    "logistic, by tiles": (KernelLogisticRegression(**OF_ROWS), 2, 6, (2100, 2300), 3.0),
    "logistic, three classes": (KernelLogisticRegression(**OF_ROWS), 3, 6, (400, 800), None),
    "process": (GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None), 0, 6, (400, 1200), None),
    "process, searched": (GaussianProcessRegressor(1.0 * RBF(1.0), noise=0.1), 0, 6, (100, 200), None),
    "process, landmarks": (GaussianProcessRegressor(optimizer=None, **NOISY), 0, 6, (300, 3000), None),
    "process, landmarks, searched": (GaussianProcessRegressor(noise=0.1, **NOISY), 0, 6, (150, 300), None),
    "classes of a process": (GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None), 2, 6, (200, 600), None),
    "three classes of it": (
        GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None, multi_class="multinomial"),
        3,
        6,
        (100, 200),
        None,
    ),
    "classes of a process, landmarks": (
        GaussianProcessClassifier(RBF(1.0), optimizer=None, **OF_CLASSES),
        2,
        6,
        (300, 3000),
        None,
    ),
    "three classes of it, landmarks": (
        GaussianProcessClassifier(RBF(1.0), optimizer=None, **OF_CLASSES),
        3,
        6,
        (300, 3000),
        None,
    ),
    "components": (KernelPCA(n_components=4, **OF_ROWS), 0, 6, (300, 1500), None),
    "clusters": (KernelKMeans(4, random_state=0, **OF_ROWS), 0, 6, (300, 1500), None),
    "clusters by tiles": (KernelKMeans(4, random_state=0, **OF_ROWS), 0, 6, (1000, 1300), 5.0),
    "clusters, columns": (KernelKMeans(4, random_state=0, kernel="linear"), 0, 6, (300, 1500), None),
    "clusters, landmarks": (
        KernelKMeans(4, random_state=0, approximation="nystroem", n_landmarks=50, **OF_ROWS),
        0,
        6,
        (300, 1500),
        None,
    ),
    "components by tiles": (KernelPCA(n_components=4, **OF_ROWS), 0, 6, (1000, 1300), 5.0),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.filterwarnings("ignore")
def test_memory_is_that_of_the_fit(name: str, number: int) -> None:
    model, classes, d, sizes, each = WAYS[name]
    n = sizes[number]
    X, y = rows(n, classes, d)
    with config(memory=None if each is None else int(each * n * n), n_jobs=2):
        expected = estimate(model, X, y)
        with memory.track() as account:
            certificate = fitted(model, X, y).certificate_
    assert expected.fits
    # That of components over landmarks is of their solver alone, without the choice of the landmarks.
    peak = account.peak if isinstance(model, KernelPCA) else certificate.peak_bytes
    assert expected.nbytes / 2 <= peak <= 2 * expected.nbytes


def test_the_way_is_that_of_the_fit() -> None:
    X, y = rows(2200)
    with config(memory=3 * len(X) ** 2, n_jobs=2):
        expected, model = estimate(KernelRidge(0.1, **OF_ROWS), X, y), KernelRidge(0.1, **OF_ROWS).fit(X, y)
    assert expected.way.startswith("conjugate gradients") and model.factorization_ == "conjugate gradients"
    assert [name.partition(",")[0] for name, _ in expected.others] == ["Cholesky factor in float32"] * 2


def test_products_with_a_held_triangle_evaluate_it_once() -> None:
    X, y = rows(1500)
    model = KernelRidge(0.1, solver="cg", **OF_ROWS)
    with config(memory="64 MiB", n_jobs=1):
        held, stored = estimate(model, X, y), model.fit(X, y).certificate_.storage
    with config(memory="8 MiB", n_jobs=1):
        lazy, computed = estimate(model, X, y), model.fit(X, y).certificate_.storage
    assert "held triangle" in held.way and "one triangle held" in stored
    assert "held" not in lazy.way and "never held" in computed
    assert held.kernel_values < lazy.kernel_values / 4
    assert held.seconds is not None and lazy.seconds is not None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many kernel values each tile has that is evaluated from now on."""
    counted: list[int] = []
    fill = Gram.fill

    def counting(self: Gram, rows: Any, columns: slice, out: np.ndarray) -> None:
        counted.append(out.size)
        fill(self, rows, columns, out)

    monkeypatch.setattr(Gram, "fill", counting)
    return counted


@pytest.mark.parametrize("held", [False, True])
def test_kernel_values_of_passes_are_exact(held: bool, counted: list[int]) -> None:
    X, y = rows(1500)
    model = KernelRidge(0.1, approximation="nystroem", n_landmarks=20, landmarks=X[:20], **OF_ROWS)
    # Room for the sample, and for values in float32 if they may take a quarter of it.
    with config(n_jobs=1, memory=10**7 if held else 4 * 10**5):
        expected = estimate(model, X, y)
        certificate = model.fit(X, y).certificate_
    assert expected.kernel_values == expected.values_before + expected.passes * expected.values_of_pass
    if held:
        assert expected.note and expected.passes == 4
        # Residuals in float64; what is held is evaluated whole.
        assert 2 <= sum(counted) / expected.values_of_pass <= 4 < certificate.iterations
    else:
        assert not expected.note
        assert sum(counted) == certificate.iterations * expected.values_of_pass


def test_some_rows_of_many_columns_are_held(counted: list[int]) -> None:
    X = np.random.default_rng(0).normal(size=(1500, 40))
    y = X[:, 0] + np.sin(X[:, 1])
    model = KernelRidge(0.1, gamma=0.005, approximation="nystroem", n_landmarks=20, landmarks=X[:20], kernel="rbf")
    with config(n_jobs=1, memory=4 * 10**5):
        expected = estimate(model, X, y)
        certificate = model.fit(X, y).certificate_
    assert expected.note and 4 < expected.passes < 12
    assert certificate.peak_bytes <= 4 * 10**5
    assert sum(counted) < certificate.iterations * expected.values_of_pass


def test_nothing_is_fitted_or_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit was run")

    X, y = rows(300)
    for cls in (KernelRidge, SVR):
        monkeypatch.setattr(cls, "fit", forbidden)
    model = SVR(kernel="rbf", gamma="scale")
    before = dict(vars(model))
    assert estimate(model, X, y).fits and estimate(KernelRidge(), X, y).fits
    assert vars(model) == before


def test_the_most_rows_are_the_most() -> None:
    model = KernelRidge(0.1, solver="cholesky", **OF_ROWS)
    with config(memory=8 * 500**2, n_jobs=1):
        largest = estimate(model, (100, 6)).most_rows
        assert largest == 500
        assert model.fit(*rows(largest)).factorization_ == "float64 Cholesky"
        with pytest.raises(MemoryBudgetError):
            model.fit(*rows(largest + 1))


def test_the_most_landmarks_are_the_most() -> None:
    model = KernelRidge(0.1, approximation="nystroem", **OF_ROWS)
    X, y = rows(3000)
    with config(memory="6MiB", n_jobs=1):
        largest = estimate(model, X, y).most_landmarks
        assert largest is not None and 100 < largest < 1000
        for m, fits in ((largest, True), (largest + 1, False)):
            assert estimate(model.set_params(n_landmarks=m), X, y).fits is fits
        model.set_params(n_landmarks=largest).fit(X, y)
        with pytest.raises(MemoryBudgetError):
            model.set_params(n_landmarks=3 * largest).fit(X, y)


def test_blocks_are_estimated_from_their_first_rows() -> None:
    X, y = rows(5000)
    model = KernelRidge(0.1, approximation="nystroem", n_landmarks=100, **OF_ROWS)
    expected = estimate(model, Blocks.from_arrays(X, y, rows_per_block=1000))
    assert (expected.n, expected.d, expected.values_of_pass) == (5000, 6, 500_000)
    with memory.track() as account:
        model.fit(Blocks.from_arrays(X, y, rows_per_block=1000))
    assert expected.nbytes / 2 <= account.peak <= 2 * expected.nbytes


def test_rows_that_are_no_vectors() -> None:
    texts = ["gattaca" * (1 + n % 3) for n in range(40)]
    expected = estimate(SVC(kernel=Spectrum(2)), texts, [0, 1] * 20)
    assert expected.n == 40 and expected.fits and "columns" not in str(expected)
    with pytest.raises(DataError):
        estimate(SVC(kernel=Spectrum(2)), (40, 3))


def test_a_given_matrix_costs_no_kernel_values() -> None:
    X, y = rows(200)
    expected = estimate(KernelRidge(kernel="precomputed"), X @ X.T, y)
    assert expected.kernel_values == 0 and expected.nbytes == 8 * 200**2


def test_other_learners_say_that_seconds_are_not_known() -> None:
    for model in (KernelMachine(), KernelPerceptron()):
        expected = estimate(model, (1000, 3))
        assert expected.seconds is None and expected.nbytes == 8_000_000 and expected.kernel_values == 500_500
        assert "not known" in str(expected)


def test_learners_of_tables_are_a_search_and_a_fit() -> None:
    X, y = rows(200)
    few, many = (ways_of(TabularRegressor(), Case(n, 4))[0].operations for n in (1500, 20_000))
    # The search has at most 1500 rows, and the fit a factor of all.
    assert many - few == pytest.approx((20_000**3 - 1500**3) / 3) and few > 1500**3
    (classes,) = ways_of(TabularClassifier(), Case(1500, 4, classes=(700, 800)))
    assert classes.operations > 2 * few and classes.nbytes == 24 * 1500**2
    for model in (TabularRegressor(), TabularClassifier()):
        expected = estimate_for(model, X, y > 0, 1500)
        assert expected.seconds is not None and expected.n == 1500 and not expected.note
        assert estimate(model, (1500, 6)).nbytes == expected.nbytes


def test_a_class_decides_how_large_a_pair_is() -> None:
    _, y = rows(1200, 4)
    balanced, one = (estimate(SVC(), (1200, 3), target) for target in (y, np.arange(1200) < 10))
    assert balanced.nbytes < one.nbytes


def test_what_cannot_be_estimated() -> None:
    with pytest.raises(ParameterError, match="a learner of Mercer with a kernel"):
        estimate("ridge", (3, 3))
    with pytest.raises(DataError, match=r"at least one row and one column, but got \(0, 3\)"):
        estimate(KernelRidge(), (0, 3))


def test_penalties_that_are_chosen_over_landmarks_take_longer() -> None:
    few = {"kernel": RBF(1.0), "approximation": "nystroem", "n_landmarks": 500}
    given, gcv, loo = (estimate(KernelRidge(alpha, **few), (50_000, 5)) for alpha in (1.0, "gcv", "loo"))
    assert given.seconds < gcv.seconds < loo.seconds


@pytest.mark.parametrize("targets", [1, 200])
@pytest.mark.parametrize("share", [1.0, 0.2])
def test_memory_in_the_space_of_explicit_features(targets: int, share: float) -> None:
    random = np.random.default_rng(0)
    A = random.normal(size=(3000, 100)) * (random.uniform(size=(3000, 100)) < share)
    X: Any = A if share == 1.0 else sp.csr_array(A)
    Y = random.normal(size=(3000, targets))
    expected, model = estimate(KernelRidge(1.0), X, Y), KernelRidge(1.0).fit(X, Y)
    assert "explicit features" in expected.way
    assert expected.nbytes / 2 <= model.certificate_.peak_bytes <= 2 * expected.nbytes


def test_a_classifier_on_blocks_marks_no_rows_and_takes_more_passes() -> None:
    model = SVC(kernel=RBF(1.0), approximation="nystroem", n_landmarks=50, landmarks="uniform", random_state=0)
    rows = np.random.default_rng(0).normal(size=(2500, 3))
    labels = np.where(rows[:, 0] + rows[:, 1] ** 2 > 0.5, 1, 0)
    blocks = Blocks(rows, labels)
    expected, whole = estimate(model, blocks), estimate(model, rows, labels)
    assert expected.passes == 2 * whole.passes and expected.nbytes < whole.nbytes
    certificate = model.fit(blocks).certificate_
    assert certificate.iterations <= 2 * expected.passes
    assert expected.nbytes / 3 <= certificate.peak_bytes <= 1.5 * expected.nbytes


@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
def test_a_process_on_blocks(optimizer: Any) -> None:
    model = GaussianProcessRegressor(
        RBF(1.0), noise=0.1, approximation="nystroem", n_landmarks=50, optimizer=optimizer, random_state=0
    )
    rows = np.random.default_rng(0).normal(size=(1500, 2))
    blocks = Blocks(rows, np.sin(rows[:, 0]) + 0.3 * rows[:, 1] * np.cos(9 * rows[:, 0]))
    expected = estimate(model, blocks)
    assert expected.passes == 2 and ("evidence of 1,500 rows" in expected.note) == (optimizer is not None)
    certificate = model.fit(blocks).certificate_
    assert expected.nbytes / 3 <= certificate.peak_bytes <= 1.5 * expected.nbytes
