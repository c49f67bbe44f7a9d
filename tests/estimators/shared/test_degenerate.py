"""Kernels under which every row resembles only itself, or all rows are the same: every learner warns."""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from estimator_table import CASES, CLASSES, CLUSTERERS, NEIGHBORS, NUMBERS, TRANSFORMERS, X
from mercer import SVC, GaussianProcessRegressor, Graph, KernelNeighborsClassifier, KernelRidge, kernels
from mercer._errors import DegenerateKernelWarning
from mercer.kernels import (
    RBF,
    BagOfWords,
    Constant,
    GappyKmers,
    GlobalAlignment,
    Linear,
    Matern,
    Mismatch,
    ShortestPath,
    Spectrum,
    White,
    from_function,
)

RNG = np.random.default_rng(0)
LEARNERS = [*CASES, *TRANSFORMERS, *CLUSTERERS]
MEDIAN = r"the median distance between rows, [1-4](\.\d+)?, is a good start"


@pytest.mark.parametrize(("model", "y"), LEARNERS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(1e-6).fixed(), rf"every row resembles only itself.*Raise length_scale: {MEDIAN}"),
        (2.0 * Matern(1e-5).fixed(), "every row resembles only itself"),
        (RBF(1e9).fixed(), rf"all values are equal.*Lower length_scale: {MEDIAN}"),
        (from_function(lambda A, B: (A[:, None] == B).all(-1) * 1.0), "every row resembles only itself"),
    ],
    ids=["narrow", "narrower", "wide", "function"],
)
def test_every_learner_warns_once(model: Any, y: np.ndarray, kernel: Any, words: str) -> None:
    if not isinstance(model, GaussianProcessRegressor):
        model = clone(model).set_params(kernel=kernel)
    else:
        model = clone(model).set_params(kernel=kernel, optimizer=None)
    with pytest.warns(DegenerateKernelWarning, match=words) as caught:
        try:
            model.fit(X, y)
        except ArithmeticError:
            # What a constant kernel may come to.
            assert "wide" in str(kernel) or "1000000000" in str(kernel)
    matches = [w for w in caught if issubclass(w.category, DegenerateKernelWarning)]
    assert len(matches) == 1 and type(model).__name__ in str(matches[0].message)


@pytest.mark.parametrize(("model", "y"), LEARNERS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("matrix", [np.eye(90), np.ones((90, 90))], ids=["eye", "ones"])
def test_precomputed_matrices(model: Any, y: np.ndarray, matrix: np.ndarray) -> None:
    with pytest.warns(DegenerateKernelWarning, match="the kernel matrix is degenerate on these rows"):
        try:
            clone(model).set_params(kernel="precomputed").fit(matrix, y)
        except ArithmeticError:
            assert matrix.all()


def test_series_get_the_value_of_their_rule() -> None:
    walks = list(np.cumsum(RNG.normal(size=(20, 40)), axis=1))
    with pytest.warns(DegenerateKernelWarning, match=r"Raise sigma: the rule 'median' gives \d+(\.\d+)?\."):
        SVC(kernel=GlobalAlignment(1e-2).normalized()).fit(walks, np.arange(20) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateKernelWarning)
        SVC(kernel=GlobalAlignment().normalized()).fit(walks, np.arange(20) % 2)


def _words(count: int) -> list[str]:
    """Texts of rare words, and two common ones."""
    names, shares = ["a", "b", *map(str, range(3000))], [0.05, 0.05, *[0.9 / 3000] * 3000]
    return [" ".join(RNG.choice(names, 12, p=shares)) for _ in range(count)]


ORDINARY = {
    "few rows": (RBF(1e-6), X[:7]),
    "as usual": (RBF(1.0), X),
    "narrow beside many rows": (RBF(1e-3), np.sort(RNG.random((4000, 1)), axis=0)),
    "wide": (RBF(1e4), X),
    "duplicates alone": (RBF(1.0), np.repeat(X[:3], 30, axis=0)),
    "one row": (Linear(), np.ones((90, 3))),
    "noise beside a kernel": (1e-3 * RBF(1.0) + White(1.0), X),
    "noise alone": (White(1.0), X),
    "a constant": (Constant(2.0), X),
    "a rare word in common": (BagOfWords(), _words(400)),
    "substrings": (Spectrum(3), ["".join(RNG.choice(list("acgt"), 30)) for _ in range(60)]),
    "sparse columns": (Linear(), sp.random(3000, 400, density=0.01, random_state=0, format="csr")),
    "other units": (Linear(), 1e-9 * X),
    "far from the origin": (Linear(), X + 1e3),
}


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ordinary_data_go_without_a_word(name: str) -> None:
    kernel, rows = ORDINARY[name]
    y = np.arange(rows.shape[0] if hasattr(rows, "shape") else len(rows)) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateKernelWarning)
        SVC(kernel=kernel, max_iter=1).fit(rows, y)


def test_strings_have_no_columns_to_scale() -> None:
    rows = ["".join(RNG.choice(list("acgt"), 30)) for _ in range(60)]
    with pytest.warns(DegenerateKernelWarning, match=r"Spectrum\(12\) is degenerate.*Change its arguments, or choose"):
        SVC(kernel=Spectrum(12)).fit(rows, np.arange(60) % 2)


WORDS = ["cat", "dog", "bird", "fish", "cow", "horse", "bat", "rat", "hen", "owl"]
EMPTY = {
    "gappy": (GappyKmers(), WORDS, r"Windows have 8 symbols, .* .* Pass (GappyKmers\(2, wildcards=1\)), or le"),
    "mismatch": (Mismatch(alphabet=26), WORDS, r"Pass (Mismatch\(2, mismatches=0, alphabet=26\)), or leave"),
    "spectrum": (Spectrum(12), WORDS, r"Windows have 12 symbols, .* Pass (Spectrum\(2\)), or leave them out"),
    "scaled": (2.0 * Spectrum(12), WORDS, r"2.0 \* Spectrum\(12\) is 0 for (?:16 of 16|5 of 5) .*Pass (Spectrum\(2\))"),
    "normalized": (Spectrum(12).normalized(), WORDS, r"Pass (Spectrum\(2\))"),
    "words": (BagOfWords(), list("abcdefghij"), r"two letters or more; .* too, for (BagOfWords\('.*'\))\."),
    "empty": (Spectrum(), [""] * 10, "They are empty; leave them out()"),
    "graphs": (ShortestPath(), [Graph(labels=[str(i)]) for i in range(10)], "Change the kernel's arguments()"),
}


@pytest.mark.parametrize(("model", "y"), LEARNERS)
@pytest.mark.filterwarnings("ignore")
def test_every_learner_tells_of_a_matrix_of_zeros(model: Any, y: np.ndarray) -> None:
    for kernel, rows, words in (
        (GappyKmers(), WORDS * 9, r"of each with itself, .*Pass GappyKmers\(2, wildcards=1\)"),
        ("precomputed", np.zeros((90, 90)), "the kernel matrix is 0 for 16 of 16 rows"),
    ):
        with pytest.warns(DegenerateKernelWarning, match=words) as caught, contextlib.suppress(ArithmeticError):
            clone(model).set_params(kernel=kernel).fit(rows, y)
        matches = [w for w in caught if issubclass(w.category, DegenerateKernelWarning)]
        assert len(matches) == 1 and type(model).__name__ in str(matches[0].message)


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("count", [30, 5])
def test_what_to_do_about_zeros(name: str, count: int) -> None:
    kernel, rows, words = EMPTY[name]
    # Of few rows, too.
    rows, y = (3 * rows)[:count], np.arange(count) % 2
    with pytest.warns(DegenerateKernelWarning, match=words) as caught:
        SVC(kernel=kernel).fit(rows, y)
    found = re.search(words, str(caught[0].message))
    if found and found[1]:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DegenerateKernelWarning)
            # Rows of one letter share none.
            warnings.filterwarnings("ignore", ".*every row resembles only itself")
            SVC(kernel=eval(found[1], vars(kernels))).fit(rows, y)


def test_some_rows_of_zeros_are_told() -> None:
    long = ["".join(RNG.choice(list("acgt"), 30)) for _ in range(60)]
    y = np.arange(60) % 2
    with pytest.warns(DegenerateKernelWarning, match=r"is 0 for 8 of 16 rows that were looked at.* Pass Spectrum\(1\)"):
        SVC(kernel=Spectrum(3)).fit([text[:2] if i % 8 < 4 else text for i, text in enumerate(long)], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateKernelWarning)
        SVC(kernel=Spectrum(3)).fit(["", *long[1:]], y)
        # Rows at the origin are ordinary vectors.
        SVC(kernel="linear").fit(np.r_[np.zeros((60, 3)), X[:30, :3]], CLASSES)
    # One empty row hides nothing.
    with pytest.warns(DegenerateKernelWarning, match="every row resembles only itself"):
        SVC(kernel=Spectrum(12)).fit(["", *long[1:]], y)


def test_duplicates_do_not_hide_it() -> None:
    with pytest.warns(DegenerateKernelWarning):
        KernelRidge(kernel=RBF(1e-6)).fit(np.repeat(X, 2, axis=0), np.repeat(NUMBERS, 2))


def test_one_pair_of_neighbours_does_not_hide_it() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)) * [1.0, 100.0, 0.01, 1000.0]
    # Rows 0 and 299 are looked at first.
    rows[299] = rows[0] + 0.1
    with pytest.warns(DegenerateKernelWarning, match="Raise length_scale: the median distance"):
        KernelRidge(kernel="rbf").fit(rows, rows[:, 0])


def test_a_search_is_judged_by_where_it_ends() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateKernelWarning)
        GaussianProcessRegressor(RBF(0.1), alpha=0.1).fit(X, NUMBERS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DegenerateKernelWarning)
        with pytest.warns(DegenerateKernelWarning):
            GaussianProcessRegressor(RBF(1e-5).bounded(length_scale=(1e-6, 1e-4)), alpha=0.1).fit(X, NUMBERS)


@pytest.mark.parametrize(("model", "y"), NEIGHBORS)
def test_neighbours_by_a_function_of_distances_are_right_at_any_width(model: Any, y: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(kernel=RBF(1e-6)).fit(X, y)
    with pytest.warns(DegenerateKernelWarning):
        KernelNeighborsClassifier(kernel="precomputed").fit(np.eye(90), CLASSES)


def _waves(n, scale):
    rng = np.random.default_rng(0)
    times = np.linspace(0.0, 1.0, 40)
    return [
        scale * rng.lognormal() * (np.sin((3 + 2 * (i % 2)) * times) + 0.1 * rng.normal(size=40))[:, None]
        for i in range(n)
    ]


@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_values_of_objects_that_grow_without_bounds(scale):
    rows, labels = _waves(40, scale), np.arange(40) % 2
    with pytest.warns(DegenerateKernelWarning, match=r"range from .* Pass kernel\.normalized\(\)"):
        SVC(kernel=GlobalAlignment()).fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SVC(kernel=GlobalAlignment().normalized()).fit(rows, labels).score(rows, labels) > 0.9
