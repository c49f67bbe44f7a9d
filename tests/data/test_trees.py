"""Trees as rows: what is read, what is refused and where, the arrays made of them, and any depth."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mercer
from mercer import KernelRidge
from mercer._errors import DataError
from mercer.data.trees import Trees
from mercer.kernels import PartialTree, Subtree

DEEP = 40_000


class Node(list):
    """A tree as NLTK has it: a list of children with a label."""

    def __init__(self, label: Any, children: Any = ()) -> None:
        super().__init__(children)
        self._label = label

    def label(self) -> Any:
        return self._label


def _one(item: Any) -> str:
    return Trees.of([item])[0]


def _nested(labels: Any) -> Any:
    leaves = labels
    return st.recursive(leaves, lambda t: st.builds(lambda a, b: (a, *b), labels, st.lists(t, min_size=1, max_size=4)))


def _as_nodes(tree: Any) -> Any:
    return tree if isinstance(tree, str) else Node(tree[0], [_as_nodes(child) for child in tree[1:]])


def _as_lists(tree: Any) -> Any:
    return tree if isinstance(tree, str) else [tree[0], *map(_as_lists, tree[1:])]


@pytest.mark.parametrize(
    "item",
    [
        "(S (NP I) (VP run))",
        "(S(NP I)(VP run))",
        " \n(S\t(NP  I )\n (VP(run)) ) ",
        ("S", ("NP", "I"), ("VP", "run")),
        ["S", ["NP", ["I"]], ("VP", ("run",))],
        Node("S", [Node("NP", ["I"]), Node("VP", [Node("run")])]),
        np.str_("(S (NP I) (VP run))"),
    ],
)
def test_forms_of_one_tree(item: Any) -> None:
    assert _one(item) == "(S (NP I) (VP run))"
    assert Trees.of([item]) == Trees.of(["(S (NP I) (VP run))"])


def test_labels_may_be_any_text() -> None:
    odd = ["", " ", "(", ")", "\\", "e", "\\e", "a b", "\n", "ß", "日本", "\ud800", "😀", "(S x)"]
    for label in odd:
        leaf, node = _one((label,)), _one((label, label, ("x", label)))
        assert _one(leaf) == leaf and _one(node) == node
        assert Trees.of([leaf]).nodes().labels[0] == Trees.of([node]).nodes().labels[1]
    assert len(set(Trees.of([(label,) for label in odd])[:])) == len(odd)
    assert _one(("(S x)", "a")) != _one(("S", "x"))
    # As the Penn treebank writes fractions, and wraps sentences.
    assert _one(r"(CD 1\/2)") == _one(("CD", "1/2"))
    assert _one("( (S (NP I)))") == _one(("", ("S", ("NP", "I"))))


@given(_nested(st.text(max_size=3)))
def test_text_reads_as_the_tree_it_was_written_from(tree: Any) -> None:
    item = (tree,) if isinstance(tree, str) else tree
    text = _one(item)
    assert _one(text) == text
    assert _one(_as_lists(item)) == text and _one(_as_nodes(item)) == text


@given(st.lists(_nested(st.sampled_from("ab")), min_size=2, max_size=2))
def test_equal_if_and_only_if_the_tuples_are(pair: Any) -> None:
    one, two = ((tree,) if isinstance(tree, str) else tree for tree in pair)
    a, b = Trees.of([one]), Trees.of([two])
    assert (a == b) == (one == two) == (a.fingerprints() == b.fingerprints())
    # The root's hash stands for the whole tree.
    assert (a.nodes().subtrees[0] == b.nodes().subtrees[0]) == (one == two)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("(S (NP I)", "ends within the bracket that opens at character 0"),
        ("(S (NP I) (VP", "ends within the bracket that opens at character 10"),
        ("(S (NP I)))", "closes a bracket at character 10 that is not open"),
        (")", "closes a bracket at character 0 that is not open"),
        ("(S a) (S b)", "continues after its end, at character 6"),
        ("a b", "continues after its end, at character 2"),
        ("(S ())", "no label in the bracket at character 3"),
        ("(S a\\\\\\", "nothing after the backslash at character 6"),
        ("(S a)\\", "nothing after the backslash at character 5"),
        ("(S a\\", "nothing after the backslash at character 4"),
        ("", "no node: it is ''"),
        ("  ", "no node: it is '  '"),
        (3.5, "must be bracketed text, a tuple of a label and children, .* is 3.5"),
        (None, "must be bracketed text"),
        ((), r"one of its nodes is \(\)"),
        (("S", ("NP", 3)), "must be bracketed text, .* is 3"),
        ((1, "a"), "labels of a tree must be text, but one is 1"),
        ((("S", "a"), "b"), r"labels of a tree must be text, but one is \('S', 'a'\)"),
        (Node(None), "labels of a tree must be text, but one is None"),
        (b"(S a)", "must be bracketed text"),
    ],
)
def test_mistakes_are_named(item: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"row 1 of X: .*{message}"):
        Trees.of(["a", item])


def test_a_tree_within_itself_is_refused() -> None:
    tree = ["S", "a"]
    tree.append(["T", tree])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="its own descendant"):
        Trees.of([tree])
    twice = ("NP", "I")
    assert _one(("S", twice, twice)) == "(S (NP I) (NP I))"


def test_nodes_as_arrays() -> None:
    nodes = Trees.of(["(S (NP (D a) b) (VP c))", "d", "(S (NP (D a) b) (D a))"]).nodes()
    assert nodes.starts.tolist() == [0, 7, 8, 15]
    assert nodes.parents.tolist() == [-1, 0, 1, 2, 1, 0, 5, -1, -1, 8, 9, 10, 9, 8, 13]
    assert nodes.sizes.tolist() == [7, 4, 2, 1, 1, 2, 1, 1, 7, 4, 2, 1, 1, 2, 1]
    # Children first, and of these the largest: a, D, b, NP, c, VP, S.
    assert nodes.turns[:7].tolist() == [6, 3, 1, 0, 2, 5, 4]
    assert nodes.turns[7:].tolist() == [0, 6, 3, 1, 0, 2, 5, 4]
    same = nodes.subtrees[:, None] == nodes.subtrees[None]
    # (NP (D a) b), (D a) three times, a three times, b; within the third tree the last pairs.
    pairs = [[1, 9], [2, 10], [2, 13], [3, 11], [3, 14], [4, 12], [10, 13], [11, 14]]
    assert np.argwhere(np.triu(same, 1)).tolist() == pairs
    assert nodes.trees.tolist() == [0] * 7 + [1] + [2] * 7


def _chain(depth: int) -> Any:
    tree: Any = "x"
    for level in range(depth):
        tree = (f"l{level % 7}", tree)
    return tree


def _links(depth: int) -> Iterator[Any]:
    yield _chain(depth)
    nodes: Any = Node("x")
    for level in range(depth):
        nodes = Node(f"l{level % 7}", [nodes])
    yield nodes
    yield " ".join(f"(l{level % 7}" for level in reversed(range(depth))) + " x" + ")" * depth


@pytest.mark.slow
def test_any_depth(tmp_path: Path) -> None:
    forms = [Trees.of([form]) for form in _links(DEEP)]
    assert forms[0] == forms[1] == forms[2]
    assert hash(forms[0]) == hash(forms[2]) and (forms[0].keys() == forms[1].keys()).all()
    assert forms[0].nodes().sizes[0] == DEEP + 1
    assert pickle.loads(pickle.dumps(forms[0])) == forms[0]
    rows = [*forms[0], "(l0 x)", "(l1 (l0 x))"]
    model = KernelRidge(kernel=Subtree().normalized()).fit(rows, [0.0, 1.0, 2.0])
    mercer.save(model, tmp_path / "deep.mercer")
    assert np.array_equal(mercer.load(tmp_path / "deep.mercer").predict(rows), model.predict(rows))
    with pytest.raises(DataError, match=f"opens at character {DEEP * 4 - 4}"):
        Trees.of(["(ab " * DEEP])
    with pytest.raises(DataError, match="labels of a tree must be text"):
        Trees.of([(_chain(DEEP), "a")])


def test_a_deep_tree_is_compared() -> None:
    x = ("a", "a")
    for level in range(2000):
        x = ("a", x) if level % 3 else ("b", x)
    (value,) = PartialTree(decay=0.5, horizontal_decay=0.5)([x], [("b", "c")])[0]
    # Each b matches as a single node alone: decay times the square of the horizontal decay.
    assert value == pytest.approx(667 * 0.5 * 0.25)
