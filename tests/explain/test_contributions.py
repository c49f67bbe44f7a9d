"""The parts of a row: which there are, where they are, and what each contributes, against brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, SVR, Graph, KernelRidge
from mercer import kernels as k
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.engine.settings import config
from mercer.explain import Contributions, Part, contributions
from mercer.explain.result import runs_of

TEXTS = ["kernel", "colonel", "gram", "grammar", "", "mercer", "merchant"]
Y = np.array([1.0, -1.0, 2.0, 0.5, 0.0, -0.5, 1.5])
TREES = ["(S (NP I) (VP (V see) (NP (D a) (N dog))))", "(S (NP (D a) (N cat)) (VP run))", "dog", "(N dog)"]
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
GRAPHS = [Graph(RING, list("CCCCCN")), Graph(RING[:3], list("CCCO")), Graph([(0, 1), (1, 1)], list("CN")), Graph(n=3)]


def ridge(kernel: k.Kernel, X: Any) -> KernelRidge:
    return KernelRidge(1.0, kernel=kernel).fit(X, np.linspace(-1.0, 2.0, len(X)))


def by_part(found: Contributions) -> dict[tuple[str, tuple[int, ...]], float]:
    return {(part.name, part.places): float(value) for part, value in zip(found.parts, found.values, strict=True)}


def test_a_substring_contributes_the_weighted_counts_of_the_fit() -> None:
    model = KernelRidge(1.0, kernel=k.Spectrum(2)).fit(TEXTS, Y)
    found = by_part(contributions(model, "grammer"))
    for (name, places), value in found.items():
        counts = [sum(text[i : i + 2] == name for i in range(len(text))) for text in TEXTS]
        assert "grammer"[places[0] : places[0] + 2] == name and places == (places[0], places[0] + 1)
        assert value == pytest.approx(model.dual_coef_ @ counts, abs=1e-12)
    assert ("gr", (0, 1)) in found and all(value != 0 for value in found.values())


def test_lengths_have_their_own_weights() -> None:
    model = ridge(k.BlendedSpectrum(2, decay=0.5, weights=[1.0, 3.0]), TEXTS)
    found = by_part(contributions(model, "gra"))
    letters = sum(a * text.count("g") for a, text in zip(model.dual_coef_, TEXTS, strict=True))
    pairs = sum(a * text.count("gr") for a, text in zip(model.dual_coef_, TEXTS, strict=True))
    assert found["g", (0,)] == pytest.approx(0.25 * letters)
    assert found["gr", (0, 1)] == pytest.approx(3.0 * 0.0625 * pairs)


def test_a_window_contributes_to_its_positions_equally() -> None:
    model = ridge(k.Mismatch(3, mismatches=1, alphabet=26), TEXTS)
    found = contributions(model, "gramma")
    places = found.by_place()
    expected = np.zeros(6)
    for at in range(4):
        window = "gramma"[at : at + 3]
        expected[at : at + 3] += (model.kernel_([window], TEXTS)[0] @ model.dual_coef_) / 3
    np.testing.assert_allclose(places, expected, atol=1e-12)
    assert places.sum() == pytest.approx(model.predict(["gramma"])[0], abs=1e-12)


@pytest.mark.parametrize("shift", [0, 2])
def test_substrings_at_their_positions(shift: int) -> None:
    model = ridge(k.WeightedDegree(3, shift=shift), TEXTS)
    x = "grammel"
    expected: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for a, z in zip(model.dual_coef_, TEXTS, strict=True):
        for length in (1, 2, 3):
            weight = 2.0 * (3 - length + 1) / (3 * 4)
            for p in range(len(x) - length + 1):
                for q in range(len(z) - length + 1):
                    s = abs(p - q)
                    if s <= shift and x[p : p + length] == z[q : q + length]:
                        key = x[p : p + length], tuple(range(p, p + length))
                        expected[key] += a * weight * (1.0 if s == 0 else 0.5 / (s + 1))
    found = by_part(contributions(model, x))
    assert {key for key, value in expected.items() if abs(value) > 1e-9} <= found.keys()
    assert all(value == pytest.approx(expected[key], abs=1e-12) for key, value in found.items())


def test_words_are_found_where_they_stand() -> None:
    texts = ["The gram matrix", "A matrix, a kernel matrix", "the kernel"]
    model = ridge(k.BagOfWords.tf_idf(texts), texts)
    row = "Gram and gram, and the KERNEL of a matrix"
    found = contributions(model, row)
    assert [row[part.places[0] : part.places[-1] + 1].lower() for part in found.parts] == [
        "gram",
        "gram",
        "the",
        "kernel",
        "matrix",
    ]
    assert found.values[0] == found.values[1] and found.sum == pytest.approx(model.predict([row])[0], abs=1e-12)


def test_tokens_are_symbols() -> None:
    texts = [["to", "be", "or"], ["not", "to", "be"], ["be"]]
    model = ridge(k.Spectrum(2), texts)
    (part,) = contributions(model, ["to", "be", "sure"]).parts
    assert (part.name, part.places) == ("to be", (0, 1))


def test_letters_that_grow_in_lower_case_have_no_positions() -> None:
    model = ridge(k.BagOfWords(), ["istanbul word", "word"])
    parts = contributions(model, "\u0130stanbul word").parts
    assert [(part.name, part.places) for part in parts] == [("word", ())]


def test_subtrees_and_the_nodes_that_they_contain() -> None:
    model = ridge(k.Subtree(), TREES)
    found = contributions(model, "(S (N dog) (VP run))")
    assert {(part.name, part.places) for part in found.parts} == {
        ("(N dog)", (1, 2)),
        ("dog", (2,)),
        ("(VP run)", (3, 4)),
        ("run", (4,)),
    }


@pytest.mark.parametrize("kernel", [k.SubsetTree(0.6), k.PartialTree(0.6, horizontal_decay=0.8)])
def test_fragments_begin_at_a_node(kernel: k.Kernel) -> None:
    """The subtrees of leaves alone have the fragments that begin at their root and at leaves."""
    model = ridge(kernel, TREES)
    found = by_part(contributions(model, "(S (N dog) (D a))"))
    leaf, node = (float(model.predict([text])[0]) for text in ("dog", "(N dog)"))
    assert found["fragments from N", (1,)] == pytest.approx(node - leaf, abs=1e-12)


def test_neighbourhoods_grow_with_the_steps() -> None:
    model = ridge(k.WeisfeilerLehman(2), GRAPHS)
    found = contributions(model, GRAPHS[0])
    around = {part.places for part in found.parts if part.name.startswith("N")}
    assert around == {(5,), (5, 0, 4), (5, 0, 4, 1, 3)} or around == {(5,), (5, 4, 0), (5, 4, 0, 3, 1)}
    assert found.by_place().sum() == pytest.approx(model.predict(GRAPHS[:1])[0])


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("labels", [True, False])
def test_paths_contribute_by_their_ends(ordered: bool, labels: bool) -> None:
    model = ridge(k.ShortestPath(labels, ordered=ordered), GRAPHS)
    found = contributions(model, GRAPHS[1])
    assert found.sum == pytest.approx(model.predict(GRAPHS[1:2])[0], abs=1e-12)
    lengths = {part.places: int(part.name.rpartition(" ")[2]) for part in found.parts}
    assert all(length == abs(one - other) for (one, other), length in lengths.items())


def test_a_loop_is_an_edge_of_one_node() -> None:
    model = ridge(k.EdgeHistogram(), GRAPHS)
    assert {part.places for part in contributions(model, GRAPHS[2]).parts} == {(0, 1), (1,)}


def test_graphlets_are_named_by_their_edges() -> None:
    model = ridge(k.Graphlet(3), GRAPHS)
    (part,) = contributions(model, GRAPHS[0]).parts
    assert part.name.startswith("6 of 3 nodes with edges") and part.name.count("-") == 2


def test_monomials_have_their_columns() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = ridge(k.Polynomial(2).on([2, 0]), X)
    found = {part.name: part for part in contributions(model, X[0]).parts}
    assert found["x2 x0"].places == (2, 0) and found["x0^2"].places == (0,)
    assert found["constant"] == Part("constant", "constant")


def test_a_kernel_with_too_many_monomials_is_explained_by_leaving_columns_out() -> None:
    X = np.random.default_rng(0).normal(size=(20, 60))
    found = contributions(ridge(k.Polynomial(3), X), X[0])
    assert found.method == "left out" and len(found.parts) == 60


def test_centring_and_norms_are_exact() -> None:
    kernel = k.Spectrum(2).normalized().centered(TEXTS[:3])
    model = ridge(kernel, TEXTS)
    found = contributions(model, "grammer")
    assert found.method == "exact" and found.sum == pytest.approx(model.predict(["grammer"])[0], abs=1e-12)
    assert [part.kind for part in found.parts].count("constant") == 1
    # Normalised, the values are those of the plain kernel with other coefficients, divided by the norm of the row.
    one = by_part(contributions(ridge(k.Spectrum(2).normalized(), TEXTS), "gra"))
    two = by_part(contributions(ridge(k.Spectrum(2).normalized(), TEXTS), "gram"))
    assert one["gr", (0, 1)] == pytest.approx(two["gr", (0, 1)] * np.sqrt(3 / 2))


def test_a_sum_names_its_terms_and_keeps_one_without_parts_whole() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = ridge(k.Linear().on([0]) + 0.5 * k.RBF(1.0).on([1, 2]) + 2.0, X)
    found = contributions(model, X[3])
    assert [(part.kind, part.places) for part in found.parts] == [("column", (0,)), ("term", (1, 2)), ("constant", ())]
    assert found.parts[1].term == "0.5 * RBF(1.0).on([1, 2])"
    f = model.dual_coef_ @ (0.5 * k.RBF(1.0)(X[:, 1:], X[3:4, 1:]))[:, 0]
    assert found.values[1] == pytest.approx(f)


def test_a_kernel_and_noise_or_a_constant_has_parts_left_out() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    for kernel in (k.RBF(1.0) + k.White(0.1), k.RBF(1.0) + 2.0):
        assert contributions(ridge(kernel, X), X[0]).method == "left out"


def test_a_column_is_left_out_by_those_of_other_rows() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = ridge(k.RBF(1.0), X)
    found = contributions(model, X[0])
    other = X.copy()
    other[:, 1] = X[0, 1]
    assert found.values[0] == pytest.approx(model.predict(X[:1])[0] - model.predict(other).mean(), abs=1e-12)
    assert "need not sum" in repr(found)


def test_a_symbol_is_left_out() -> None:
    model = ridge(k.Subsequence(2), TEXTS)
    found = contributions(model, "gram")
    without = model.predict(["ram", "gam", "grm", "gra"])
    np.testing.assert_allclose(found.values, model.predict(["gram"])[0] - without, atol=1e-12)
    assert [part.places for part in found.parts] == [(0,), (1,), (2,), (3,)]


def test_a_subtree_is_left_out_and_the_root_stays() -> None:
    model = ridge(k.exp(0.1 * k.SubsetTree(0.5)), TREES)
    found = contributions(model, "(S (N dog) (D a))")
    assert {part.name for part in found.parts} <= {"(N dog)", "dog", "(D a)", "a"}
    without = model.predict(["(S (D a))"])[0]
    assert by_part(found)["(N dog)", (1, 2)] == pytest.approx(model.predict(["(S (N dog) (D a))"])[0] - without)
    assert contributions(model, "dog").parts == ()


def test_a_node_is_left_out_with_its_edges() -> None:
    graphs = [Graph(RING, list("CCCCCN"), [1, 2, 1, 2, 1, 2]), Graph(RING[:3], list("CCCO"), [1, 1, 2])]
    model = ridge(k.RandomWalk(0.1), graphs)
    found = contributions(model, graphs[1])
    without = Graph([(0, 1)], list("CCO"), [1])
    difference = model.predict(graphs[1:])[0] - model.predict([without])[0]
    assert by_part(found)["C at 2", (2,)] == pytest.approx(difference, abs=1e-12)


def test_a_time_is_put_on_the_line_between_its_neighbours() -> None:
    series = [np.array([0.0, 1.0, 4.0, 2.0]), np.array([1.0, 0.0, 1.0, 3.0]), np.array([2.0, 2.0, 0.0, 1.0])]
    model = ridge(k.GlobalAlignment(1.0).normalized(), series)
    found = contributions(model, series[0])
    without = model.predict([np.array([0.0, 1.0, 1.5, 2.0])])[0]
    assert found.values[2] == pytest.approx(model.predict(series[:1])[0] - without, abs=1e-12)
    assert contributions(model, np.array([3.0])).parts == ()


def test_members_patches_and_blocks() -> None:
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 2)) for n in (3, 2, 4)]
    found = contributions(ridge(k.SetOf(k.RBF(1.0)), bags), bags[0])
    assert [part.places for part in found.parts] == [(0,), (1,), (2,)]
    power = contributions(ridge(k.SetOf(k.RBF(1.0)) ** 2, bags), bags[1])
    model = ridge(k.SetOf(k.RBF(1.0)) ** 2, bags)
    assert power.values[0] == pytest.approx(model.predict(bags[1:2])[0] - model.predict([bags[1][1:]])[0], abs=1e-12)
    images = [rng.integers(0, 256, size=(h, 7), dtype=np.uint8) for h in (4, 9, 5)]
    blocks = contributions(ridge(k.exp(k.SpatialPyramid()), images), images[0])
    assert blocks.method == "left out" and blocks.parts[0].name.startswith("rows 0 to 0, columns 0")
    patches = contributions(ridge(k.ConvolutionalPatches(3), images), images[0])
    assert len(patches.parts) == 2 * 5 and patches.parts[-1].name == "patch at row 1, column 4"


def test_a_text_in_a_table_is_left_out_symbol_by_symbol() -> None:
    rows = [["gram"], ["kernel"], ["mercer"]]
    model = KernelRidge(1.0, kernel=k.Subsequence(2).on([0])).fit(rows, [1.0, 2.0, 0.5])
    found = contributions(model, ["grim"])
    assert found.item == "grim"
    assert found.values[0] == pytest.approx(model.predict([["grim"]])[0] - model.predict([["rim"]])[0], abs=1e-12)


def test_objects_without_parts_are_named() -> None:
    model = SVC(kernel=k.from_function(lambda x, z: float(x == z), pairwise=True, definiteness="positive"))
    model.fit([{"a"}, {"b"}, {"a", "b"}], [0, 1, 1])
    with pytest.raises(ParameterError, match='by="rows"'):
        contributions(model, {"a"})
    assert contributions(model, {"a"}, by="rows").method == "exact"


def test_empty_objects_have_no_parts() -> None:
    counted = k.Spectrum(2), k.BagOfWords(r"\w")
    for kernel in (*counted, k.Mismatch(3, alphabet=26), k.WeightedDegree(2), k.Subsequence(2)):
        found = contributions(ridge(kernel, TEXTS), "")
        assert found.parts == () and found.sum == found.intercept == found.decision == 0.0
        assert len(found.frame()) == 0 and len(found.by_place()) == 0


@pytest.mark.parametrize("kernel", [k.Subsequence(2), k.WeightedDegree(3)])
def test_copies_of_a_long_text_are_asked_of_the_memory_budget(kernel: k.Kernel) -> None:
    model = ridge(kernel, TEXTS)
    with config(memory="64MiB"), pytest.raises(MemoryBudgetError, match="changed copies of a row of 5000 symbols"):
        contributions(model, "gram " * 1000)


def test_a_machine_without_support_vectors_has_no_parts() -> None:
    model = SVR(kernel=k.Spectrum(2), epsilon=10.0).fit(TEXTS, Y)
    found = contributions(model, "gram")
    assert found.parts == () and found.decision == found.intercept == pytest.approx(model.predict(["gram"])[0])
    assert contributions(model, "gram", by="rows").parts == ()


def test_rows_of_the_fit_have_their_numbers() -> None:
    model = SVC(kernel=k.Spectrum(2)).fit(TEXTS, Y > 0.2)
    found = contributions(model, "grammer", by="rows")
    used = {part.places[0] for part in found.parts}
    assert used <= set(model.support_.tolist()) and "" not in [TEXTS[i] for i in used]
    with pytest.raises(DataError, match="no common positions"):
        found.by_place()


def test_large_values_are_first_and_the_rest_is_summed_in_the_text() -> None:
    model = ridge(k.Linear(), np.random.default_rng(0).normal(size=(30, 14)))
    found = contributions(model, np.arange(14.0))
    sizes = np.abs(found.values[found.top(14)])
    assert (np.diff(sizes) <= 0).all()
    text = repr(found)
    assert "(3 other parts)" in text or "(4 other parts)" in text
    assert text.endswith("sum, exact")


def test_places_as_ranges() -> None:
    assert runs_of((9, 1, 2, 3, 3)) == "1-3, 9"


def test_a_sparse_fit_and_a_dense_row() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = SVC(kernel="rbf").fit(sp.csr_matrix(X), X[:, 0] > 0)
    found = contributions(model, X[0])
    dense = contributions(SVC(kernel="rbf").fit(X, X[:, 0] > 0), X[0])
    np.testing.assert_allclose(found.values, dense.values, atol=1e-6)
