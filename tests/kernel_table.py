"""An example of every kernel class, with data that it is defined on: what exists is tested by existing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as gp

from mercer import kernels as k
from mercer.kernels import Kernel

_rng = np.random.default_rng(7)


class OwnGaussian(gp.RBF):
    """A user-defined subclass of one of scikit-learn's kernels."""


VECTORS = _rng.normal(size=(14, 3)), _rng.normal(size=(9, 3))
POSITIVE = _rng.gamma(1.0, size=(14, 3)), _rng.gamma(1.0, size=(9, 3))
CODES = _rng.integers(0, 3, size=(14, 6)), _rng.integers(0, 3, size=(9, 6))
BITS = _rng.integers(0, 2, size=(14, 12)), _rng.integers(0, 2, size=(9, 12))
WORDS = ["kernel", "colonel", "gram", "grammar", "", "mercer", "merchant"], ["commerce", "gram", "ram"]
_RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]
GRAPHS = (
    [
        (_RING, list("CCCCCN"), [1, 2, 1, 2, 1, 2]),
        ([*_RING, (0, 6)], list("CCCCCCO"), [2, 1, 2, 1, 2, 1, 1]),
        (_RING[:3], list("CCCO"), [1, 1, 2]),
        ([(0, 1), (1, 1), (0, 2), (1, 2)], list("CCN"), [1, 1, 1, 1]),
        {"n": 3, "labels": list("CCO")},
        {"edges": _RING, "n": 8},
        {"n": 0},
    ],
    [(_RING[:4], list("NCCCO"), [1, 2, 1, 1]), ([(0, 1)], ["C", "O"], [2]), (_RING,)],
)
TREES = (
    [
        "(S (NP I) (VP (V see) (NP (D a) (N dog))))",
        "(S (NP (D a) (N cat)) (VP (V run)))",
        "dog",
        "(N dog)",
        "(S (NP I) (VP (V see) (NP (D a) (A red) (N dog))))",
        "(a (a (a b)))",
        ("a", ("a", "b"), ("a", ("a b", ")"))),
    ],
    ["(S (NP I) (VP (V run)))", "(N dog)", "(a (a b) (a b))"],
)
SERIES = [_rng.normal(size=(n, 2)).cumsum(axis=0) for n in (7, 1, 4, 12, 5, 30)], [_rng.normal(size=(6, 2))] * 2
# Lists, so that they stay as few as they are.
# Alignments of long series are numbers so large that the evidence of a classifier has no digits.
SHORT_SERIES = SERIES[0][:5], SERIES[1]
EVEN_SERIES = list(_rng.normal(size=(9, 12)).cumsum(axis=1)), list(_rng.normal(size=(5, 12)).cumsum(axis=1))
SETS = ([_rng.normal(size=(n, 2)) for n in (1, 3, 2, 5, 1, 4, 2)], [_rng.normal(size=(n, 2)) for n in (2, 1, 3)])
BAGS_OF_WORDS = [["kernel", "gram"], ["gram"], ["", "ram", "ram"], ["grammar"]], [["mercer"], ["gram", "ram"]]
IMAGES = (
    [_rng.integers(0, 256, size=(h, 7), dtype=np.uint8) for h in (4, 9, 5, 3, 6)],
    [_rng.uniform(size=(h, 4)) for h in (5, 8)],
)
COLOURS = [_rng.uniform(size=(5, 6, 3)) for _ in range(5)], [_rng.uniform(size=(3, 4, 3)) for _ in range(3)]

Data = tuple[Any, Any]


def one_plus_square(X: np.ndarray) -> np.ndarray:
    return 1.0 + X[:, 0] ** 2


def bent(X: np.ndarray) -> np.ndarray:
    return np.tanh(X)


def block_of_products(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return (X @ Z.T) ** 2


def smaller(x: np.ndarray, z: np.ndarray) -> float:
    return float(np.minimum(x, z).sum())


def common_letters(x: str, z: str) -> float:
    return float(len(set(x) & set(z)))


EXAMPLES: list[tuple[Kernel, Data]] = [
    # functions of the inner product
    (k.Linear(), VECTORS),
    (k.Polynomial(), VECTORS),
    (k.Polynomial(1), VECTORS),
    (k.Polynomial(3, scale=0.5, offset=0.7), VECTORS),
    (k.Polynomial(2, offset=0.0), VECTORS),
    (k.ExponentialDot(0.3), VECTORS),
    (k.Sigmoid(0.3, offset=-0.2), VECTORS),
    (k.ArcCosine(0), VECTORS),
    (k.ArcCosine(1), VECTORS),
    (k.ArcCosine(2), VECTORS),
    (k.Tanimoto(), BITS),
    (k.Tanimoto(), VECTORS),
    (k.Linear() + k.ArcCosine(1), BITS),
    # functions of a distance
    (k.RBF(1.3), VECTORS),
    (k.RBF(1.3) + k.Matern([1.0] * 12), BITS),
    (k.RBF([1.0, 2.0, 0.5]), VECTORS),
    (k.RBF.from_gamma(0.7), VECTORS),
    (k.Laplacian(1.5), VECTORS),
    (k.Laplacian([1.0, 2.0, 0.5]), VECTORS),
    (k.Matern(1.2, nu=0.5), VECTORS),
    (k.Matern([1.0, 2.0, 0.5], nu=0.5), VECTORS),
    (k.Matern([1.0, 2.0, 3.0]), VECTORS),
    (k.Matern(1.1, nu=2.5), VECTORS),
    # The sum of weighted values, which the factor needs, comes with the slopes.
    (0.7 * k.Matern(1.1) + 2.0 * k.Matern([1.0, 2.0, 0.5], nu=2.5), VECTORS),
    (k.Matern(1.2, nu=0.8), VECTORS),
    (k.Matern([1.2, 0.7, 2.0], nu=3.5), VECTORS),
    (k.Matern(1.2, nu=float("inf")), VECTORS),
    (k.RationalQuadratic(1.1, alpha=0.7), VECTORS),
    (k.RationalQuadratic([1.0, 2.0, 0.5], alpha=2.0), VECTORS),
    (k.Periodic(1.2, period=1.7), VECTORS),
    (k.ExpSineSquared(1.2, period=1.7), VECTORS),
    (k.NegativeDistance(), VECTORS),
    (k.NegativeDistance(1.5), VECTORS),
    (k.NegativeDistance(2), VECTORS),
    # sums and products over columns
    (k.AllSubsets(), VECTORS),
    # No difference is near the width, where the slope by it jumps.
    (k.Anova(0.3, 1.41), VECTORS),
    (k.Anova([0.3, 0.1, 2.0], [0.5, 2.0, 1.0]), VECTORS),
    (k.Anova(0.5, 0.7) * k.RBF(2.0), CODES),
    (k.ChiSquared(0.7), POSITIVE),
    (k.AdditiveChiSquared(), POSITIVE),
    (k.exp(k.AdditiveChiSquared()), POSITIVE),
    (k.HistogramIntersection(), POSITIVE),
    (k.Hamming(), CODES),
    (k.White(0.3), VECTORS),
    # functions of one's own
    (k.from_function(block_of_products), VECTORS),
    (k.from_function(smaller, pairwise=True), POSITIVE),
    (k.from_function(common_letters, pairwise=True, definiteness="positive"), WORDS),
    (k.from_function(block_of_products, definiteness="indefinite"), VECTORS),
    (k.from_sklearn(OwnGaussian([1.0, 2.0, 0.5])), VECTORS),
    # objects
    (k.Spectrum(2), WORDS),
    (k.BlendedSpectrum(3, decay=0.8), WORDS),
    (k.BlendedSpectrum(3, weights=[0.5, 0.0, 2.0]).fixed("decay").normalized(), WORDS),
    (k.Subsequence(3, decay=0.7), WORDS),
    (k.Subsequence(3, decay=0.7, weights=[0.5, 0.0, 2.0]), WORDS),
    (k.Subsequence(1, decay=1.5), WORDS),
    (k.EditDistance(0.3), WORDS),
    (k.BagOfWords(r"\w"), WORDS),
    (k.BagOfWords.tf_idf(["gram mercer", "kernel gram"]).normalized(), WORDS),
    (k.GappyKmers(3, wildcards=1), WORDS),
    (k.Mismatch(3, mismatches=1, alphabet=26), WORDS),
    (k.WeightedDegree(3), WORDS),
    (k.WeightedDegree(3, shift=2, weights=[1.0, 2.0, 0.5]), WORDS),
    (2.0 * k.Spectrum(2).normalized() + k.Subsequence(2), WORDS),
    (k.exp(k.Subsequence(2)).centered(WORDS[1]), WORDS),
    (k.VertexHistogram(), GRAPHS),
    (k.EdgeHistogram(), GRAPHS),
    (k.ShortestPath(), GRAPHS),
    (k.ShortestPath(labels=False), GRAPHS),
    (k.ShortestPath(ordered=False), GRAPHS),
    (k.WeisfeilerLehman(2), GRAPHS),
    (k.WeisfeilerLehman(2, "edge", edge_labels=False), GRAPHS),
    (k.WeisfeilerLehman(1, "shortest-path") + 0.5, GRAPHS),
    (k.Graphlet(3, connected=False), GRAPHS),
    (k.Graphlet(5, connected=False, samples=40, seed=3), GRAPHS),
    (k.Propagation(0.2, 2, source="labels", distance="l2"), GRAPHS),
    (k.RandomWalk(0.1), GRAPHS),
    (k.exp(0.01 * k.RandomWalk(0.05, edge_labels=False)) + k.Graphlet(4), GRAPHS),
    (k.Subtree(), TREES),
    (k.Subtree(smallest=2), TREES),
    (k.Subtree(decay=0.6), TREES),
    (k.SubsetTree(0.6), TREES),
    (k.SubsetTree(0.6, leaves=True), TREES),
    (k.PartialTree(0.6, terminal_factor=0.4), TREES),
    (k.PartialTree(0.6, horizontal_decay=0.8), TREES),
    (2.0 * k.SubsetTree(0.6).normalized() + k.exp(k.PartialTree(0.3)) * k.Subtree(), TREES),
    # series
    (k.GlobalAlignment(1.5), SHORT_SERIES),
    (k.GlobalAlignment(2.0, triangular=6), EVEN_SERIES),
    (k.GlobalAlignment(0.8).normalized(), SERIES),
    (2.0 * k.GlobalAlignment(1.0, triangular=3).normalized() + 0.5, EVEN_SERIES),
    (k.DynamicTimeWarping(), SERIES),
    (k.Elementwise(0.5 * k.RBF(3.0) + k.Matern(2.0)), EVEN_SERIES),
    (k.Elementwise(k.Polynomial(2)).normalized() * k.GlobalAlignment(2.0).normalized(), EVEN_SERIES),
    (k.Signature(3, scale=0.5), SERIES),
    (k.Signature(2, time=0.7).normalized(), EVEN_SERIES),
    (k.SignaturePDE(0.1), SERIES),
    (k.SignaturePDE(0.5, length_scale=2.0, time=0.7).normalized(), EVEN_SERIES),
    (k.exp(0.1 * k.DynamicTimeWarping(window=2, exponent=2.0)), EVEN_SERIES),
    # bags
    (k.SetOf(k.RBF(1.2)), SETS),
    (k.SetOf(0.5 * k.RBF([1.0, 2.0]) + k.Linear()).normalized(), SETS),
    (k.SetOf(k.RBF(1.2).on([1]) * k.Matern(0.7)), SETS),
    (k.SetOf(k.RBF(1.0) + k.White(0.3)), SETS),
    (k.SetOf(k.NegativeDistance()), SETS),
    (k.SetOf(k.Spectrum(2)) + k.SetOf(k.Subsequence(2).normalized()), BAGS_OF_WORDS),
    (k.SetOf(k.from_function(common_letters, pairwise=True, definiteness="positive")), BAGS_OF_WORDS),
    (k.SetOf(k.SetOf(k.RBF(0.8))) ** 2, ([SETS[0][:2], SETS[0][2:3], SETS[0][3:]], [SETS[1][:2], SETS[1][2:]])),
    (k.PyramidMatch(0.3, levels=4), SETS),
    (k.PyramidMatch(0.5, levels=0).normalized(), SETS),
    # images
    (k.SpatialPyramid(), IMAGES),
    (k.SpatialPyramid(1, bins=5, values=(-1.0, 2.0)), COLOURS),
    (k.ConvolutionalPatches(), IMAGES),
    (2.0 * k.ConvolutionalPatches(2, length_scale=0.6) + k.SpatialPyramid(0, bins=4), COLOURS),
    # the algebra
    (k.Constant(2.0), VECTORS),
    (0.7 * k.RBF([1.0, 3.0, 2.0]) + k.Linear(), VECTORS),
    (0.5 * k.RBF(1.0) + k.RBF(2.0) * k.Linear() + 0.3, VECTORS),
    (k.RBF(1.0) * k.Matern(2.0) * k.Linear(), VECTORS),
    (2.0 * (k.RBF(1.0) * k.Linear()), VECTORS),
    ((k.RBF(1.0) + k.Linear()) ** 3, VECTORS),
    (k.RBF(1.0) ** 1, VECTORS),
    (k.RBF(1.0) ** 0.5, VECTORS),
    ((2.0 * k.RBF(1.0)) ** 2 + k.Linear() ** 2, VECTORS),
    (k.exp(0.1 * k.Linear() + k.RBF(1.0)), VECTORS),
    (k.exp(k.NegativeDistance()), VECTORS),
    (k.NegativeDistance() + k.RBF(1.0), VECTORS),
    (3.0 * k.NegativeDistance(), VECTORS),
    (k.NegativeDistance() * k.RBF(1.0), VECTORS),
    (k.RBF(1.0) + k.White(0.1), VECTORS),
    # seen through something
    (k.RBF(1.0).on([0, 2]) * k.Matern(1.0).on(1), VECTORS),
    (k.RBF([1.0, 2.0]).on([-1, 0]) + k.RBF([1.0, 2.0]).on([0, 1]), VECTORS),
    (k.Linear().on([1]).on([2, 0]), VECTORS),
    (k.Polynomial(2).scaled_by(one_plus_square), VECTORS),
    (k.RBF(1.2).warped(bent), VECTORS),
    ((k.RBF(1.2).on([0]) + k.Linear()).warped(bent).scaled_by(one_plus_square), VECTORS),
    ((k.Polynomial(2) + k.Constant(0.5)).normalized(), VECTORS),
    ((k.Linear() + k.White(0.5)).normalized(), VECTORS),
    (k.Linear().normalized().on([0, 1]) + k.Linear().on([0, 1]).normalized(), VECTORS),
    (k.RBF(1.5).centered(VECTORS[0][:5]), VECTORS),
    (k.RBF([1.5, 1.0, 2.0]).centered(VECTORS[0]), VECTORS),
    ((k.RBF(1.5) + k.White(0.5)).centered(VECTORS[0][:5]), VECTORS),
    (k.RBF(1.5).on([0, 1]).centered(VECTORS[0][:5]) * k.Linear().centered(VECTORS[0][:5, :2]).on([1, 2]), VECTORS),
    (k.NegativeDistance().centered(VECTORS[1]), VECTORS),
    ((0.5 * k.Polynomial(2) + k.RBF(2.0)).normalized().centered(VECTORS[1]), VECTORS),
    (k.RBF(1.5).centered(VECTORS[0]).normalized().normalized(), VECTORS),
    # tuned
    (k.RBF(2.0).fixed(), VECTORS),
    (k.RationalQuadratic().bounded(alpha=(1.0, 2.0)).fixed("length_scale"), VECTORS),
    (k.RBF([1.0, 2.0, 3.0]).fixed("length_scale[1]").bounded(**{"length_scale[0]": (0.5, 9.0)}), VECTORS),
    ((2.0 * k.RBF(1.0)).fixed("factor") + k.Constant(2.0).fixed() + 1.0, VECTORS),
    ((2.0 * k.RBF(1.0)).bounded(factor=(0.1, 10.0)) * k.Linear() ** 2, VECTORS),
    (0.5 * (k.Polynomial(2) * k.Sigmoid().bounded(offset=(-1.0, 1.0))), VECTORS),
]
