"""What the kernels of a search share on objects: prepared rows, refined labels, and comparisons of pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from mercer import SVC, Gram, GridSearchCV, KernelRidge, config, extend
from mercer._errors import ParameterError
from mercer.data.graphs import Graphs
from mercer.data.strings import Strings
from mercer.kernels import RBF, Kernel, Spectrum, Subsequence, WeisfeilerLehman, product_of
from mercer.kernels.graph import weisfeiler_lehman
from mercer.kernels.stored_parts import expensive_parts
from mercer.selection.fold_rows import FoldMatrices
from mercer.testing import check_kernel
from search_cases import both

THREE = KFold(3, shuffle=True, random_state=0)


def words(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abc" if i % 2 else "bcd"), 9)) for i in range(n)]


@dataclass(frozen=True, repr=False)
class Shared(extend.PairKernel):
    """The sum of ``exp(-|difference of counts| / width)`` over the letters that both words have."""

    rows_of = Strings
    prepared_by = ()
    calls: ClassVar[Counter[str]] = Counter()

    width: float = extend.parameter(1.0)

    def prepare(self, row: Any) -> Any:
        self.calls["prepare"] += 1
        return Counter(row)

    def compare(self, x: Any, z: Any) -> float:
        self.calls["compare"] += 1
        return sum(np.exp(-abs(x[letter] - z[letter]) / self.width) for letter in sorted(x.keys() & z.keys()))


@dataclass(frozen=True, repr=False)
class Unknown(Shared):
    prepared_by = ("with",)


@dataclass(frozen=True, repr=False)
class Forgotten(Shared):
    """Prepares rows by a parameter that it does not name."""

    def prepare(self, row: Any) -> Any:
        return dict.fromkeys(row, self.width)

    def compare(self, x: Any, z: Any) -> float:
        return sum(x[letter] * z[letter] for letter in sorted(x.keys() & z.keys()))

    def slopes(self, x: Any, z: Any) -> list[float]:
        return [2.0 * self.compare(x, z) / self.width]


K = Subsequence(2)
COMPOSITES: list[Kernel] = [
    K.normalized(),
    2.0 * K + 1.0,
    (K.normalized() + 1.0) ** 2,
    K * Spectrum(2),
    0.5 * K + Subsequence(3) * K,
]


@pytest.mark.parametrize("kernel", COMPOSITES, ids=repr)
def test_values_from_stored_parts_have_the_bits_of_those_without(kernel: Kernel) -> None:
    rows = Strings.of(words(70))
    alone = Gram(kernel, rows)
    stored = alone.from_stored({use: part(rows) for use, part in expensive_parts(kernel).items()})
    assert np.array_equal(stored.dense(), alone.dense())
    assert np.array_equal(stored.diagonal(), alone.diagonal())
    some, others = np.array([40, 3, 3, 69]), slice(5, 50)
    assert np.array_equal(stored.block(some, others), alone.block(some, others))
    assert np.array_equal(stored.restrict(some, some).dense(), alone.restrict(some, some).dense())
    single = stored.astype(np.float32).dense()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, alone.dense(), rtol=1e-5)


@given(st.lists(st.text("ab", max_size=5), min_size=1, max_size=8), st.sampled_from(COMPOSITES[:3]))
def test_stored_parts_on_any_strings(texts: list[str], kernel: Kernel) -> None:
    matrices = FoldMatrices(Strings.of(texts), 1)
    whole = matrices.matrix(kernel)
    assert whole is not None and matrices.from_parts == 1
    assert np.array_equal(whole.block(), kernel(texts))


def test_parts_on_chosen_columns_and_behind_maps() -> None:
    table = pd.DataFrame({"t": words(20), "a": np.arange(20.0)})
    kernel = product_of({"t": K, "a": RBF(3.0)})
    assert list(expensive_parts(kernel).values()) == [K.on(["t"])]
    assert expensive_parts(K.warped(list) + 1.0) == {} and expensive_parts(K.on([0])) == {}
    stored = {use: part(table) for use, part in expensive_parts(kernel).items()}
    assert np.array_equal(Gram(kernel, table).from_stored(stored).dense(), kernel(table))


MADE = [Shared(2.0).normalized(), 2.0 * Shared(2.0), Shared(2.0) * Spectrum(1), Shared(2.0) ** 2]


def test_kernels_made_of_the_same_part_compare_each_pair_once() -> None:
    n = 40
    matrices = FoldMatrices(Strings.of(words(n)), None)
    Shared.calls.clear()
    for kernel in MADE:
        assert matrices.matrix(kernel) is not None
    pairs = n * (n + 1) // 2
    # And each row with itself, for the diagonals.
    assert pairs <= Shared.calls["compare"] <= pairs + len(MADE) * (n + 1)
    assert Shared.calls["prepare"] == n and (matrices.count, matrices.from_parts) == (5, 4)
    # Of matrices that the next fits do not ask for, parts are kept as long as they are used.
    matrices.begin()
    Shared.calls.clear()
    assert matrices.matrix(Shared(2.0).normalized() + 1.0) is not None
    assert Shared.calls["compare"] < pairs


def test_a_search_over_kernels_made_of_the_same_part_has_the_scores_of_fits_alone() -> None:
    texts, y = words(30), np.arange(30) % 2
    search = GridSearchCV(SVC(), {"kernel": MADE, "C": [0.1, 1.0]}, cv=THREE, refit=False)
    both(search, texts, y)
    assert search.sharing_.startswith(
        "5 kernel matrices evaluated for 24 fits; 4 of them from stored distances or values"
    )


def test_prepared_rows_are_shared_by_the_parameters_that_do_not_change_them() -> None:
    rows = Strings.of(words(12))
    Shared.calls.clear()
    for width in (0.5, 1.0, 2.0):
        Shared(width)(rows)
    assert Shared.calls["prepare"] == len(rows)
    check_kernel(Shared(0.7).fixed(), rows)
    with pytest.raises(ParameterError, match="names 'with', but the parameters are"):
        Unknown()(rows)
    with pytest.raises(AssertionError, match="prepared rows give other values"):
        check_kernel(Forgotten(0.7), rows)


def test_parts_are_not_stored_where_there_is_room_for_one_matrix_only() -> None:
    texts, y = words(300), np.sin(np.arange(300.0))
    kernels = [Spectrum(2) * Subsequence(2).normalized(), Spectrum(1) * Subsequence(2).normalized()]
    search = GridSearchCV(KernelRidge(), {"kernel": kernels}, cv=THREE, refit=False)
    with config(memory=20 * 300**2):
        search.fit(texts, y)
    assert "from stored distances or values" not in search.sharing_
    low = search.cv_results_["mean_test_score"]
    search.fit(texts, y)
    assert "2 of them from stored distances or values" in search.sharing_
    np.testing.assert_allclose(low, search.cv_results_["mean_test_score"], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("normalized", [False, True])
def test_kernels_of_several_depths_on_graphs_refine_labels_once(
    normalized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    graphs = [
        ([(i, int(rng.integers(0, i))) for i in range(1, 7 + number % 2)], rng.integers(0, 3, 7 + number % 2))
        for number in range(40)
    ]
    y = np.arange(40) % 2
    kernels = [WeisfeilerLehman(steps) for steps in (1, 2, 3)]
    times: list[int] = []
    refine = weisfeiler_lehman.refine
    monkeypatch.setattr(weisfeiler_lehman, "refine", lambda *a: times.append(len(a[0])) or refine(*a))
    rows = Graphs.of(graphs)
    for kernel in (*kernels, WeisfeilerLehman(2, "edge"), WeisfeilerLehman(3, "shortest-path")):
        assert np.array_equal(kernel(rows), kernel(graphs))
    shared, alone = 3, 1 + 2 + 3 + 2 + 3
    assert len(times) == shared + alone
    made = [kernel.normalized() for kernel in kernels] if normalized else kernels
    both(GridSearchCV(SVC(), {"kernel": made, "C": [0.01, 0.1, 1.0]}, cv=THREE), graphs, y)


def test_expensive_matrices_are_kept_while_there_is_room() -> None:
    n = 60
    for memory, count in (None, 2), (40 * n * n, 3):
        with config(memory=memory):
            matrices = FoldMatrices(Strings.of(words(n)), 1)
            for decay in (0.5, 0.7, 0.5):
                matrices.begin()
                assert matrices.matrix(Subsequence(3, decay=decay)) is not None
            assert matrices.count == count
            matrices.close()
