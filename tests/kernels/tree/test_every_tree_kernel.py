"""Kernels on trees beside explicit fragments of all small trees, the recursions of the papers, and hand counts."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelPCA, kernels
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.data.trees import Trees
from mercer.gram import Gram
from mercer.kernels import Kernel, PartialTree, SubsetTree, Subtree

Tree = tuple[Any, ...]
Terms = list[tuple[Tree, float]]


@functools.cache
def forests(nodes: int) -> list[tuple[Tree, ...]]:
    """All sequences of trees over two labels with so many nodes together."""
    if nodes == 0:
        return [()]
    results = []
    for first in range(1, nodes + 1):
        for label, below, rest in itertools.product("ab", forests(first - 1), forests(nodes - first)):
            results.append(((label, *below), *rest))
    return results


ALL = [tree for nodes in range(1, 6) for (tree, *rest) in forests(nodes) if not rest]


def nodes_of(tree: Tree) -> list[Tree]:
    return [tree, *(node for child in tree[1:] for node in nodes_of(child))]


def leaves(fragment: Tree) -> int:
    return 1 if len(fragment) == 1 else sum(map(leaves, fragment[1:]))


def inner(fragment: Tree) -> int:
    return sum(len(node) > 1 for node in nodes_of(fragment))


# ---- fragments by their definition: those rooted at a node, each with a weight


def complete(node: Tree, decay: float) -> Terms:
    return [(node, decay ** (max(inner(node), 1) / 2))]


def subsets_and_leaves(node: Tree, decay: float) -> Terms:
    """Leaves are features of their own, which no fragment is."""
    return subsets(node, decay) or [(("leaf", node), decay**0.5)]


def subsets(node: Tree, decay: float) -> Terms:
    """Fragments in which a node has all of its children or none."""

    def rooted(node: Tree) -> list[Tree]:
        options = [[(child[0],), *rooted(child)] for child in node[1:]]
        return [(node[0], *chosen) for chosen in itertools.product(*options)] if options else []

    return [(fragment, decay ** (inner(fragment) / 2)) for fragment in rooted(node)]


def partials(node: Tree, decay: float, gap: float) -> Terms:
    """Fragments in which a node has some of its children or none."""

    def rooted(node: Tree) -> list[tuple[Tree, int]]:
        results = [((node[0],), 0)]
        places = range(1, len(node))
        for count in places:
            for chosen in itertools.combinations(places, count):
                left_out = chosen[-1] - chosen[0] + 1 - count
                for below in itertools.product(*(rooted(node[place]) for place in chosen)):
                    results.append(((node[0], *(f for f, _ in below)), left_out + sum(gaps for _, gaps in below)))
        return results

    return [(f, decay ** (len(nodes_of(f)) / 2) * gap ** (leaves(f) + gaps)) for f, gaps in rooted(node)]


def by_features(trees: list[Tree], terms: Any, *parameters: float) -> np.ndarray:
    """The matrix of inner products of the weights of all fragments."""
    rows: list[Counter[Tree]] = []
    for tree in trees:
        row: Counter[Tree] = Counter()
        for node in nodes_of(tree):
            for fragment, weight in terms(node, *parameters):
                row[fragment] += weight  # type: ignore[assignment]
        rows.append(row)
    places = {fragment: place for place, fragment in enumerate({f for row in rows for f in row})}
    features = np.zeros((len(trees), len(places) + 1))
    for number, row in enumerate(rows):
        features[number, [places[f] for f in row]] = list(row.values())
    return features @ features.T


CASES: list[tuple[Kernel, Any, tuple[float, ...]]] = [
    (Subtree(), complete, (1.0,)),
    (Subtree(decay=0.3), complete, (0.3,)),
    (SubsetTree(1.0), subsets, (1.0,)),
    (SubsetTree(0.3, leaves=True), subsets_and_leaves, (0.3,)),
    (SubsetTree(0.3), subsets, (0.3,)),
    (PartialTree(1.0, 1.0), partials, (1.0, 1.0)),
    (PartialTree(0.3, 0.6), partials, (0.3, 0.6)),
]


@pytest.mark.parametrize(("kernel", "terms", "parameters"), CASES, ids=[repr(case[0]) for case in CASES])
def test_all_pairs_of_all_trees_to_five_nodes(kernel: Kernel, terms: Any, parameters: tuple[float, ...]) -> None:
    assert len(ALL) == 2 + 4 + 2 * 8 + 5 * 16 + 14 * 32
    np.testing.assert_allclose(kernel(ALL), by_features(ALL, terms, *parameters), rtol=1e-12, atol=1e-12)


def test_the_smallest_subtree() -> None:
    def counted(node: Tree) -> Terms:
        return [(node, 1.0)] if len(nodes_of(node)) >= 3 else []

    np.testing.assert_array_equal(Subtree(3)(ALL), by_features(ALL, counted))


# ---- larger trees, by the recursions of the papers


def random_trees(count: int, size: int, labels: str, seed: int = 0) -> list[Tree]:
    rng = np.random.default_rng(seed)

    def grown(nodes: int) -> Tree:
        below, rest = [], nodes - 1
        while rest > 0:
            part = int(rng.integers(1, rest + 1))
            below.append(grown(part))
            rest -= part
        return (str(rng.choice(list(labels))), *below)

    return [grown(int(rng.integers(1, size))) for _ in range(count)]


def recursion(x: Tree, z: Tree, rule: Any) -> float:
    """The sum of ``C(s, t)`` over all pairs of nodes."""

    def C(s: Tree, t: Tree) -> float:
        return float(rule(s, t, C))

    return sum(C(s, t) for s in nodes_of(x) for t in nodes_of(z))


def collins_duffy(decay: float) -> Any:
    def rule(s: Tree, t: Tree, C: Any) -> float:
        if len(s) == 1 or len(t) == 1 or [c[0] for c in s[1:]] != [c[0] for c in t[1:]] or s[0] != t[0]:
            return 0.0
        return decay * float(np.prod([1.0 + C(a, b) for a, b in zip(s[1:], t[1:])]))

    return rule


def without_leaves(decay: float) -> Any:
    """The subtree kernel as SVM-light-TK has it: leaves are no factors of their parents, and no nodes to begin at."""

    def rule(s: Tree, t: Tree, C: Any) -> float:
        if len(s) == 1 or len(t) == 1 or [c[0] for c in s[1:]] != [c[0] for c in t[1:]] or s[0] != t[0]:
            return 0.0
        below = [(a, b) for a, b in zip(s[1:], t[1:]) if len(a) > 1 or len(b) > 1]
        return decay * float(np.prod([C(a, b) for a, b in below]))

    return rule


def moschitti(decay: float, gap: float, terminal: float = 1.0) -> Any:
    """Equations 4 to 7 of the paper, lengths p apart; ``terminal`` as in KeLP."""

    def rule(s: Tree, t: Tree, C: Any) -> float:
        if s[0] != t[0]:
            return 0.0
        one, two = s[1:], t[1:]
        if not one or not two:
            return decay * gap**2 * terminal
        # Sums over subsequences of p children that end at a pair.
        ends = np.array([[C(a, b) for b in two] for a in one]).reshape(len(one), len(two))
        total, pairs = 0.0, ends
        while pairs.size and pairs.any():
            total += pairs.sum()
            longer = np.zeros_like(pairs)
            for i, j in itertools.product(range(len(one)), range(len(two))):
                for r, q in itertools.product(range(i), range(j)):
                    longer[i, j] += ends[i, j] * gap ** (i - r - 1 + j - q - 1) * pairs[r, q]
            pairs = longer
        return decay * (gap**2 + total)

    return rule


@pytest.mark.parametrize("labels", ["a", "ab", "abcdef"])
def test_larger_trees_by_the_recursions(labels: str) -> None:
    X, Z = random_trees(12, 14, labels), random_trees(9, 18, labels, seed=1)
    for kernel, rule in (
        (SubsetTree(0.7), collins_duffy(0.7)),
        (SubsetTree(1.5), collins_duffy(1.5)),
        (PartialTree(0.7, 0.4), moschitti(0.7, 0.4)),
        (PartialTree(0.2, 1.5), moschitti(0.2, 1.5)),
        (PartialTree(0.7, 0.4, terminal_factor=0.3), moschitti(0.7, 0.4, 0.3)),
        (PartialTree(0.7, 0.4, terminal_factor=0), moschitti(0.7, 0.4, 0.0)),
        (Subtree(2, decay=0.6), without_leaves(0.6)),
        (Subtree(2, decay=1.4), without_leaves(1.4)),
    ):
        expected = [[recursion(x, z, rule) for z in Z] for x in X]
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-11, atol=1e-14)
        own = [recursion(x, x, rule) for x in X]
        np.testing.assert_allclose(Gram(kernel, X).diagonal(), own, rtol=1e-11, atol=1e-14)


# ---- counts by hand


def test_counts_by_hand() -> None:
    # (D a), (N cat) and (V brought) are one fragment each, the noun phrase 2 * 2, the verb phrase 2 * (1 + 4).
    phrase = "(VP (V brought) (NP (D a) (N cat)))"
    one = SubsetTree(1.0)([phrase])[0, 0]
    assert one == 17.0
    assert Subtree(2)([phrase])[0, 0] == 5.0 and Subtree()([phrase])[0, 0] == 8.0
    # A leaf counts 1, (D a), (N cat) and (V brought) count 2, the noun phrase 3 * 3, the verb phrase 3 * 10.
    assert PartialTree(1.0, 1.0)([phrase])[0, 0] == 3 + 6 + 9 + 30
    # "a" and "c" with a gap on one side, side by side on the other; three single nodes.
    value = PartialTree(0.5, 0.3)(["(S a b c)"], ["(S a c)"])[0, 0]
    mu, l2 = 0.5, 0.09
    single = mu * l2
    assert value == pytest.approx(2 * single + mu * (l2 + 2 * single + single**2 * 0.3))


def test_leaves_by_hand() -> None:
    phrases = ["(NP (D the) (N dog))", "(NP (D the) (A dog))"]
    # Shared are (D the), and as leaves "the" and "dog", which are no factors of the nodes above.
    assert SubsetTree(0.5)(phrases)[0, 1] == 0.5
    assert SubsetTree(0.5, leaves=True)(phrases)[0, 1] == 0.5 + 2 * 0.5
    assert SubsetTree(0.5, leaves=True)(["dog", "cat"], ["dog", "(N cat)"]).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    # D and N are in common with no child in common, "the" is; below D it is a child, and the end of the branch.
    single, end = 0.4 * 0.5**2, 0.4 * 0.5**2 * 0.25
    value = PartialTree(0.4, 0.5, terminal_factor=0.25)(["(D the)"], ["(D the)"])[0, 0]
    assert value == pytest.approx(end + single + 0.4 * end, rel=1e-15)
    # A leaf and a node with children have the factor too, which more than 1 would make indefinite.
    K = PartialTree(0.4, 0.5, terminal_factor=0.25)(["a", "(a b)"])
    assert K[0, 1] == K[0, 0] == end and np.linalg.eigvalsh(K)[0] > 0


def test_chains_and_single_nodes() -> None:
    chain = "(a (a (a (a b))))"
    # Of four nodes with children the fragments at the top are 4 chains, then 3, 2 and 1; those that end in b differ.
    assert SubsetTree(1.0)(["(a (a a))"])[0, 0] == 2 * 2 + 1
    assert SubsetTree(1.0)([chain])[0, 0] == sum(count**2 for count in (3, 2, 1)) + 4
    assert SubsetTree()(["a", "b"]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert SubsetTree()(["a"], [chain])[0, 0] == 0.0
    assert PartialTree(0.5, 0.2)(["a", "b"]).tolist() == [[0.5 * 0.2**2, 0.0], [0.0, 0.5 * 0.2**2]]
    assert Subtree()(["b"], [chain])[0, 0] == 1.0


# ---- what does not matter


KERNELS = [
    Subtree(),
    SubsetTree(0.5),
    PartialTree(0.5, 0.7),
    Subtree(decay=0.3),
    SubsetTree(0.5, leaves=True),
    PartialTree(0.5, 0.7, terminal_factor=0.2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_rows_may_come_in_any_order_and_alone(kernel: Kernel) -> None:
    X = random_trees(70, 20, "abc")
    K = kernel(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(kernel([X[i] for i in order]), K[np.ix_(order, order)], rtol=1e-12)
    np.testing.assert_allclose(kernel(X[:3], X), K[:3], rtol=1e-12)
    for i, j in [(0, 1), (5, 69), (7, 7)]:
        np.testing.assert_allclose(kernel([X[i]], [X[j]]), K[i : i + 1, j : j + 1], rtol=1e-12)
    equal = kernel([X[4], "z", X[4]])
    # A product of matrices may sum the last columns in another order than the first.
    np.testing.assert_allclose(equal[0], equal[2], rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_other_names_of_the_labels(kernel: Kernel) -> None:
    names = {"a": "naïve φ", "b": "( ", "c": "", "d": "\\e"}

    def renamed(tree: Tree) -> Tree:
        return (names[tree[0]], *map(renamed, tree[1:]))

    X = random_trees(30, 12, "abcd")
    np.testing.assert_allclose(kernel(list(map(renamed, X))), kernel(X), rtol=1e-12)


def test_deep_and_wide_trees() -> None:
    n, decay = 3000, 0.5
    chain = "(a " * n + "b" + ")" * n
    # The pair of nodes with i and j edges below it shares chains of up to min(i, j) of them, and (a b) if i = j.
    few = "(a " * 40 + "b" + ")" * 40
    expected = 0.0
    for i, j in itertools.product(range(1, n + 1), range(1, 41)):
        shared = min(i, j) - (i != j)
        expected += sum(decay**m for m in range(1, shared + 1))
    assert SubsetTree(decay)([chain], [few])[0, 0] == pytest.approx(expected, rel=1e-12)
    star, other = "(s" + " a" * n + ")", "(s a" + " b" * n + " a)"
    # The root; n times 2 leaves; pairs of them: one with gaps on both sides.
    single, gap = 0.5 * 0.3**2, 0.3
    pairs = sum((n - 1 - g) * gap ** (g + n) for g in range(50))
    expected = 2 * n * single + 0.5 * (gap**2 + 2 * n * single + single**2 * pairs)
    assert PartialTree(0.5, 0.3)([star], [other])[0, 0] == pytest.approx(expected, rel=1e-12)


def test_what_would_not_fit_the_memory_is_refused() -> None:
    star = "(s" + " a" * 20_000 + ")"
    with mercer.config(memory=2**28), pytest.raises(MemoryBudgetError, match="comparing the nodes of two trees"):
        PartialTree()([star])


def test_mistakes_are_named() -> None:
    for kernel in (SubsetTree, PartialTree):
        with pytest.raises(ParameterError, match="decay must be finite and above 0"):
            kernel(decay=0.0)
    with pytest.raises(ParameterError, match="horizontal_decay must be"):
        PartialTree(horizontal_decay=-1.0)
    with pytest.raises(ParameterError, match="smallest must be a whole number above 0"):
        Subtree(0)
    with pytest.raises(ParameterError, match="Subtree: decay must be a number above 0, but is 0"):
        Subtree(decay=0)
    with pytest.raises(ParameterError, match="leaves must be True or False, but is 1"):
        SubsetTree(leaves=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"terminal_factor must be a number from 0 to 1, but is 1\.5"):
        PartialTree(terminal_factor=1.5)
    with pytest.raises(DataError, match=r"row 1 of X: .* character 0"):
        SubsetTree()(["(S a)", "(S a"])


def test_values_beyond_all_numbers_are_refused() -> None:
    tree: Any = ("a",)
    for _ in range(12):
        tree = ("a", tree, tree)
    with pytest.raises(DataError, match="returned inf"):
        SubsetTree(1.0)([tree])


@pytest.mark.parametrize(
    "kernel",
    [
        SubsetTree(0.7),
        PartialTree(0.6, 0.8),
        PartialTree(0.4, 1.3),
        SubsetTree(0.7, leaves=True),
        PartialTree(0.6, 0.8, terminal_factor=0.3),
    ],
    ids=repr,
)
def test_slopes_across_tiles(kernel: Kernel) -> None:
    X, Z = random_trees(70, 16, "ab"), random_trees(66, 16, "ab", seed=1)
    # Whole rows and single pairs without weight are left out by the loop.
    weights = np.random.default_rng(0).normal(size=(70, 66)) * (np.arange(66) % 3 > 0)
    weights[5] = 0.0
    step = 1e-6
    expected = []
    for direction in np.eye(len(kernel.theta)) * step:
        more, less = (kernel.with_theta(kernel.theta + shift) for shift in (direction, -direction))
        expected.append(np.vdot(weights, more(X, Z) - less(X, Z)) / (2 * step))
    np.testing.assert_allclose(kernel.pullback(X, Z, weights), expected, rtol=1e-6)


# ---- learners


TREES = random_trees(40, 12, "abc")
SIZES = np.array([float(len(nodes_of(tree))) for tree in TREES])
COMPOSED = SubsetTree(0.5).normalized() + 0.5 * PartialTree(0.5, 0.5) * kernels.exp(Subtree().normalized())


@pytest.mark.parametrize("number", range(len(KERNELS) + 1), ids=[repr(kernel) for kernel in [*KERNELS, COMPOSED]])
def test_learners_and_their_files(number: int, tmp_path: Any) -> None:
    kernel = [*KERNELS, COMPOSED][number]
    labels = (np.median(SIZES) < SIZES).astype(int)
    learners: list[tuple[Any, np.ndarray]] = [
        (SVC(kernel=kernel), labels),
        (KernelPCA(3, kernel=kernel), labels),
        (GaussianProcessRegressor(kernel, alpha=0.1), SIZES),
    ]
    # In turn, and each for the one that has all of them in it.
    for model, y in learners if kernel is COMPOSED else [learners[number % 3]]:
        model.fit(TREES, y)
        answer = model.predict if hasattr(model, "predict") else model.transform
        mercer.save(model, tmp_path / f"{number}.mercer")
        loaded = mercer.load(tmp_path / f"{number}.mercer")
        again = loaded.predict if hasattr(loaded, "predict") else loaded.transform
        text = list(Trees.of(TREES[:9]))
        np.testing.assert_array_equal(again(text), answer(TREES[:9]))


def test_trees_beside_numbers() -> None:
    text = list(Trees.of(TREES))
    frame = pd.DataFrame({"tree": text, "v": SIZES})
    kernel = kernels.product_of({"tree": SubsetTree(0.5) + 1.0, "v": kernels.RBF(3.0)})
    expected = (SubsetTree(0.5)(TREES) + 1.0) * kernels.RBF(3.0)(SIZES[:, None])
    np.testing.assert_allclose(kernel(frame), expected, rtol=1e-12)
    model = GaussianProcessRegressor(kernel.fixed(), alpha=0.1).fit(frame, SIZES)
    assert model.score(frame, SIZES) > 0.9


def test_the_evidence_finds_the_decays() -> None:
    # Targets drawn from the process with other decays than those that the search starts from.
    rng = np.random.default_rng(0)
    X = random_trees(60, 14, "ab", seed=3)
    K = PartialTree(0.8, 0.8)(X)
    y = np.linalg.cholesky(K + 1e-3 * np.trace(K) / 60 * np.eye(60)) @ rng.normal(size=60)
    start = PartialTree(0.3, 0.3)
    model = GaussianProcessRegressor(start, alpha=1e-3 * np.trace(K) / 60).fit(X, y)
    assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood([0.0, *start.theta]) + 1.0
    for shift in np.vstack([np.eye(3), -np.eye(3)]) * 0.05:
        assert model.log_marginal_likelihood(model.kernel_.theta + shift) < model.log_marginal_likelihood_value_
