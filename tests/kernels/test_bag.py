"""Kernels on bags against loops over all pairs of members, and their containers."""

from __future__ import annotations

import math
import pickle
import re
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelRidge
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.data.bags import Bags
from mercer.data.columns import MixedRows
from mercer.data.objects import Anything
from mercer.data.strings import Strings
from mercer.kernels import (
    RBF,
    ConvolutionalPatches,
    HistogramIntersection,
    Kernel,
    Linear,
    Propagation,
    PyramidMatch,
    SetOf,
    Signature,
    SignaturePDE,
    SpatialPyramid,
    Spectrum,
    VertexHistogram,
    White,
    parse_kernel,
)
from mercer.kernels.bag import MeanKernel
from mercer.maps import NystroemMap

_rng = np.random.default_rng(3)
# More bags than a tile is wide, and one of more members than a part has.
SIZES = _rng.integers(1, 9, size=70)
SIZES[11] = 700
SETS = [_rng.normal(size=(size, 2)) for size in SIZES]
WORDS = [["".join(_rng.choice(list("abc"), _rng.integers(0, 6))) for _ in range(size)] for size in SIZES[:11]]


def naive(kernel, X, Z):
    return np.array([[np.mean([[kernel([a], [b])[0, 0] for b in z] for a in x]) for z in Z] for x in X])


def test_mean_over_all_pairs():
    K = SetOf(RBF(0.7))(SETS)
    for i, j in [(0, 0), (3, 11), (11, 11), (11, 69), (40, 33), (69, 69)]:
        assert K[i, j] == pytest.approx(rbf_kernel(SETS[i], SETS[j], gamma=1 / (2 * 0.7**2)).mean(), rel=1e-12)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(SetOf(RBF(0.7))(SETS[5:9], SETS), K[5:9], rtol=1e-12)
    np.testing.assert_allclose(SetOf(RBF(0.7)).diagonal(SETS), K.diagonal(), rtol=1e-12)


def test_of_linear_is_the_product_of_means():
    means = np.array([bag.mean(axis=0) for bag in SETS])
    np.testing.assert_allclose(SetOf(Linear())(SETS), means @ means.T, atol=1e-12)


@pytest.mark.parametrize("inner", [Spectrum(2) + 0.5, Spectrum(1).normalized()])
def test_of_strings(inner):
    few = WORDS[:6]
    np.testing.assert_allclose(SetOf(inner)(few), naive(inner, few, few), atol=1e-12)


def test_of_graphs_and_of_functions():
    graphs = [[nx.path_graph(2), nx.path_graph(3)], [nx.path_graph(4)]]
    assert SetOf(VertexHistogram())(graphs).tolist() == [[2.5**2, 10.0], [10.0, 16.0]]


def test_of_bags():
    nested = [SETS[0:3], SETS[3:4], SETS[4:9]]
    inner = SetOf(RBF(1.0))
    np.testing.assert_allclose(SetOf(inner)(nested), naive(inner, nested, nested), atol=1e-12)
    assert isinstance(SetOf(inner).read_rows(nested).rows, Bags)


MEMBERS = [
    (ConvolutionalPatches(2, 0.7) * SpatialPyramid(1), lambda: _rng.uniform(size=_rng.integers(3, 6, size=2))),
    (Signature(3, 0.8, time=0.5), lambda: 0.3 * _rng.normal(size=(_rng.integers(1, 5), 2))),
    (SignaturePDE(0.7, length_scale=0.9), lambda: 0.3 * _rng.normal(size=(_rng.integers(1, 5), 2))),
    (PyramidMatch(0.5), lambda: _rng.normal(size=(_rng.integers(1, 4), 2))),
    (Propagation(0.5), lambda: ([(0, 1), (1, 2)], None, None, _rng.normal(size=(3, 2)))),
    (HistogramIntersection(), lambda: _rng.gamma(1.0, size=4)),
]


@pytest.mark.parametrize(("inner", "draw"), MEMBERS, ids=lambda part: repr(part) if isinstance(part, Kernel) else "")
def test_of_everything(inner, draw):
    X = [[draw() for _ in range(size)] for size in (1, 3, 2, 4)]
    K = SetOf(inner)(X)
    np.testing.assert_allclose(K, naive(inner, X, X), rtol=1e-12)
    np.testing.assert_allclose(SetOf(inner)(X[1:3], X), K[1:3], rtol=1e-12)
    kernel, weights = SetOf(inner).normalized(), _rng.normal(size=(4, 4))
    steps = 1e-5 * np.eye(len(kernel.theta))
    expected = [
        np.vdot(weights, kernel.with_theta(kernel.theta + s)(X) - kernel.with_theta(kernel.theta - s)(X)) / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(kernel.pullback(X, None, weights), expected, rtol=1e-5, atol=1e-8)


def test_intersections_are_products_of_counts_in_strokes():
    X = _rng.integers(0, 7, size=(9, 5))
    strokes = np.array([[float(stroke < count) for count in row for stroke in range(7)] for row in X])
    assert np.array_equal(HistogramIntersection()(X), strokes @ strokes.T)
    assert np.array_equal(HistogramIntersection()(X > 3), (X > 3) @ (X > 3).T.astype(float))


def test_noise_of_members():
    # A member is the same as itself alone, also in a bag of equal ones.
    bags = [[[0.0], [0.0]], [[0.0]]]
    assert SetOf(White(1.0))(bags).tolist() == [[0.5, 0.0], [0.0, 1.0]]
    assert SetOf(White(1.0))(bags, bags).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_rows_that_are_picked():
    gram = mercer.Gram(SetOf(RBF(0.7)), SETS)
    index = np.array([11, 2, 2, 40])
    np.testing.assert_allclose(gram.restrict(index, index).dense(), gram.dense()[np.ix_(index, index)], rtol=1e-12)


def test_slopes_add_up_over_tiles():
    kernel, weights = SetOf(RBF([0.7, 1.5])), _rng.normal(size=(70, 70))
    theta, steps = kernel.theta, 1e-5 * np.eye(2)
    expected = [
        np.vdot(weights, kernel.with_theta(theta + s)(SETS) - kernel.with_theta(theta - s)(SETS)) / 2e-5 for s in steps
    ]
    np.testing.assert_allclose(kernel.pullback(SETS, None, weights), expected, rtol=1e-6)


def test_arrays_of_tokens_keep_their_kinds():
    numbers, words = np.array([[1, 2], [3, 1]]), np.array([["1", "2"]])
    assert np.array_equal(SetOf(Spectrum(1))([numbers, words]), SetOf(Spectrum(1))([numbers.tolist(), words.tolist()]))
    assert SetOf(Spectrum(1))([numbers], [words]).tolist() == [[0.0]]
    with pytest.raises(DataError, match="one is True"):
        SetOf(Spectrum(1))([np.array([[True, False]]), numbers])
    flags = np.array([[True, False]])
    assert np.array_equal(SetOf(RBF(1.0))([flags, numbers]), SetOf(RBF(1.0))([flags.astype(float), numbers]))


def test_containers():
    bags = Bags.of(SETS)
    assert len(bags) == 70 and np.array_equal(bags[11], SETS[11])
    some = bags[[3, 0]]
    assert np.array_equal(some.rows, np.concatenate([SETS[3], SETS[0]])) and some == Bags.of([SETS[3], SETS[0]])
    assert bags[2:5] == Bags.of(SETS[2:5]) and bags[np.arange(70) < 2] == Bags.of(SETS[:2])
    assert bags[:3].joined(bags[3:]) == bags and pickle.loads(pickle.dumps(some)) == some
    assert bags[:2] != bags[1:3] and Bags.of([[[-0.0]]]) == Bags.of([[[0.0]]])
    assert isinstance(Bags.of(WORDS).rows, Anything) and isinstance(SetOf(Spectrum(2)).read_rows(WORDS).rows, Strings)
    assert Bags.of([Strings.of(["a"]), Strings.of(["b", "c"])]) == SetOf(Spectrum(1)).read_rows([["a"], ["b", "c"]])
    assert Bags.of([["ab"], ["c"]]) != Bags.of([["a"], ["bc"]])
    tables = Bags.of([MixedRows([np.array([1.0]), Strings.of(["a"])]), MixedRows([np.array([2.0]), Strings.of(["b"])])])
    assert tables[[1]] != tables[[0]] and tables[[1, 0]][[1]] == tables[[0]]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[[1.0]], []], "row 1 of X: the bag is empty"),
        ([[[1.0]], 3.0], "row 1 of X: a bag must be a sequence of members, but is 3.0"),
        (["word"], "row 0 of X: a bag must be a sequence of members, but is 'word'"),
        (
            [np.zeros((2, 2)), np.zeros((2, 3))],
            "row 1 of X: its vectors have length 3, but those of row 0 have length 2",
        ),
        ([[[1.0], [2.0, 3.0]]], "row 0 of X, member 1: the vector has length 2, but the first member has length 1"),
        ([[[1.0, 2.0]], [[1.0], [2.0]]], "row 1 of X, member 0: the vector has length 1"),
        ([[[1.0]], [[2.0], [np.nan]]], "row 1 of X, member 1: the vector holds nan at position 0"),
        ([np.ones((3, 2)), np.array([[1.0, 2.0], [0.0, np.inf]])], "row 1 of X, member 1: the vector holds inf at pos"),
        ([np.ones((2, 0))], "row 0 of X, member 0: the vector is empty"),
        ([[[1.0]], [[2.0], "ab"]], "row 1 of X, member 1: a member must be a vector of numbers, but is 'ab'"),
        ([[1.0, 2.0]], "member 0: a member must be a vector of numbers, but is 1.0; write a bag of numbers as [[1.0]"),
        ([[[1.0]], [[[2.0]]]], "row 1 of X, member 0: a member must be a vector of numbers, but is [[2.0]]"),
        ([np.ones((1, 1), complex)], "holds complex numbers"),
        ([np.ma.masked_array([[1.0, 2.0]], [[0, 1]])], "row 0 of X: the bag has masked entries"),
        ([pd.DataFrame({"a": [1.0]})], "pass its rows"),
        ([], "X is empty"),
    ],
)
@pytest.mark.parametrize("kernel", [SetOf(RBF(1.0)), PyramidMatch()], ids=repr)
def test_mistakes(kernel, X, words):
    for read in (kernel, kernel.read_rows):
        with pytest.raises(DataError, match=re.escape(words)):
            read(X)


@pytest.mark.parametrize(
    ("kernel", "X", "words"),
    [
        (SetOf(Spectrum(2)), [["ab"], ["a", 3.5]], "row 1 of X, member 1: a string must be text"),
        (SetOf(Spectrum(2)), Bags.of([["ab"], ["a", 3.5]]), "row 1 of X, member 1: a string must be text"),
        (
            SetOf(Signature(2)),
            [[[1.0]], [[2.0], np.ones((2, 3))]],
            "row 1 of X, member 1: all series must have the same number",
        ),
        (SetOf(SetOf(RBF(1.0))), [[[[1.0]]], [[[2.0]], [[3.0], [np.nan]]]], "row 1 of X, member 1: member 1: the vec"),
        (SetOf(HistogramIntersection()), [[[1.0]], [[2.0], [-1.0]]], "of the members of all rows, counted one row aft"),
        (PyramidMatch() + SetOf(Spectrum(2)), [["ab"]], "row 0 of X, member 0: a member must be a vector of numbers"),
    ],
    ids=str,
)
def test_members_are_named_by_their_bag(kernel, X, words):
    with pytest.raises(DataError, match=words):
        kernel(X)


def test_mistakes_of_kernels():
    with pytest.raises(ParameterError, match="SetOf takes a kernel, but got 3"):
        SetOf(3)
    with pytest.raises(ParameterError, match="columns of several kinds"):
        SetOf(Spectrum(2).on(["a"]) + RBF(1.0).on(["b"]))
    with pytest.raises(ParameterError, match="compares strings and"):
        SetOf(Spectrum(2) + RBF(1.0))
    with pytest.raises(DataError, match="a string must be text"):
        SetOf(Spectrum(2))([[3.5]])
    for rows, starts in [(np.zeros((2, 1)), [0, 0, 2]), (np.zeros((2, 1)), [0, 1]), (np.zeros((2, 1)), [1, 2])]:
        with pytest.raises(DataError, match="bags must start in ascending order"):
            Bags(rows, starts)


def test_printing_and_definiteness():
    kernel = 2.0 * SetOf(SetOf(RBF([1.0, 2.0]) + Linear())).normalized()
    assert parse_kernel(repr(kernel)) == kernel and issubclass(SetOf, MeanKernel)
    assert SetOf(RBF(1.0)).definiteness == "positive"
    assert SetOf(mercer.kernels.NegativeDistance()).definiteness == "conditional"
    assert SetOf(mercer.kernels.Sigmoid()).definiteness == "indefinite"


@pytest.mark.parametrize(("kernel", "X"), [(SetOf(RBF(1.0)), SETS[12:40]), (SetOf(Spectrum(1)), WORDS + WORDS)])
def test_learners_and_model_files(kernel, X, tmp_path):
    labels = np.arange(len(X)) % 2
    model = SVC(kernel=kernel).fit(X, labels)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(
        SVC(kernel="precomputed").fit(kernel(X), labels).decision_function(kernel(X)),
        model.decision_function(X),
        atol=1e-3,
    )
    assert len(NystroemMap(kernel, 5, random_state=0).fit_transform(X)) == len(X)


def test_widths_are_learned_from_bags():
    means = np.array([bag.mean() for bag in SETS[12:40]])
    model = GaussianProcessRegressor(1.0 * SetOf(RBF(3.0)), alpha=1e-2).fit(SETS[12:40], means)
    assert (
        model.log_marginal_likelihood_value_
        > GaussianProcessRegressor(1.0 * SetOf(RBF(3.0)), alpha=1e-2, optimizer=None)
        .fit(SETS[12:40], means)
        .log_marginal_likelihood_value_
    )


def test_a_column_of_bags_in_a_table():
    frame = pd.DataFrame({"bag": WORDS, "size": np.array([float(len(bag)) for bag in WORDS])})
    kernel = SetOf(Spectrum(1)).on(["bag"]) * RBF(2.0).on(["size"])
    model = KernelRidge(kernel=kernel).fit(frame, frame["size"])
    reference = SetOf(Spectrum(1))(WORDS) * RBF(2.0)(frame[["size"]])
    np.testing.assert_allclose(kernel(frame), reference, atol=1e-12)
    expected = reference @ np.linalg.solve(reference + np.eye(11), frame["size"])
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-6)


# ---- the pyramid match


def match_of_grids(A, B, side, levels):
    """The kernel as the paper writes it, by counting in dictionaries."""
    total, before = 0.0, 0.0
    for level in range(levels + 1):
        width = side * 2**level
        one, other = (Counter(map(tuple, (S // width).tolist())) for S in (A, B))
        matches = (one & other).total()
        total, before = total + 0.5**level * (matches - before), matches
    return total


@pytest.mark.parametrize(("side", "levels"), [(0.3, 6), (0.05, 3), (2.0, 0)])
def test_pyramid_match_by_counting(side, levels):
    some = SETS[:14]
    expected = [[match_of_grids(A, B, side, levels) for B in some] for A in some]
    np.testing.assert_allclose(PyramidMatch(side, levels=levels)(some), expected, rtol=1e-13)
    assert PyramidMatch(side, levels=levels).diagonal(some).tolist() == [float(size) for size in SIZES[:14]]


def exact_match(A, B, side, levels):
    """Grauman and Darrell's sum in rational numbers: what is matched on a level, less what was on finer ones."""

    def cells(S, level):
        return Counter(tuple(math.floor(Fraction(float(v)) / (Fraction(side) * 2**level)) for v in row) for row in S)

    results = [(cells(A, level) & cells(B, level)).total() for level in range(levels + 1)]
    return float(
        sum(Fraction(new - old, 2**i) for i, (old, new) in enumerate(zip([0, *results], results, strict=False)))
    )


def test_pyramid_match_on_the_edges_of_cells_and_with_repeated_vectors():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        side, levels, d = float(rng.choice([0.25, 0.5, 2.0])), int(rng.integers(0, 9)), int(rng.integers(1, 4))
        bags = [side * rng.integers(-6, 7, size=(size, d)) / 2 for size in rng.integers(1, 9, size=6)]
        bags = [bag[rng.integers(0, len(bag), size=len(bag))] for bag in bags]
        expected = [[exact_match(A, B, side, levels) for B in bags] for A in bags]
        np.testing.assert_allclose(PyramidMatch(side, levels=levels)(bags), expected, rtol=1e-14)
        np.testing.assert_allclose(PyramidMatch(side, levels=levels)(bags[2:4], bags), expected[2:4], rtol=1e-14)


def test_pyramid_match_divides_single_precision_in_double():
    single = np.arange(1, 200, dtype=np.float32)[:, None, None] / np.float32(10)
    for side in (0.1, 0.3, 0.7):
        kernel = PyramidMatch(side, levels=2)
        np.testing.assert_array_equal(kernel(list(single)), kernel(list(single.astype(np.float64))))


def test_pyramid_match_far_away_and_mistakes():
    assert PyramidMatch(1.0, levels=3)([[[-0.5]], [[0.5]]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(DataError, match="choose a larger side"):
        PyramidMatch(1e-3)([[[1e14]]])
    with pytest.raises(DataError, match="choose a larger side"):
        PyramidMatch(1e-300)([[[1e14]]])
    with pytest.raises(DataError, match="vectors of one side are of length 2, and those of the other of 1"):
        PyramidMatch()([[[1.0, 2.0]]], [[[1.0]]])
    with mercer.config(memory="100KB"), pytest.raises(MemoryBudgetError, match="cells of 1000 vectors on 9 levels"):
        PyramidMatch()(list(np.ones((10, 100, 1))))
    with pytest.raises(ParameterError, match="from 0 to 50"):
        PyramidMatch(levels=51)
    with pytest.raises(ParameterError, match="side must be"):
        PyramidMatch(0.0)
