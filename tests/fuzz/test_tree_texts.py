"""Bracketed trees of any text: a tree in its one form, or a documented error, in bounded time."""

from __future__ import annotations

import io
import random
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer._errors import DataError
from mercer.data.readers import read_table
from mercer.data.roles import read_objects
from mercer.data.trees import Trees
from mercer.kernels import SubsetTree

PIECES = [
    "(",
    ")",
    "(",
    ")",
    " ",
    "\t",
    "\n",
    "\u2003",
    "\\",
    "\\e",
    "\\(",
    "\\ ",
    "\\\\",
    "S",
    "NP",
    "word",
    '"',
    ",",
    "\0",
    "\ud800",
    "\u0301",
    "(" * 50,
    ")" * 50,
    "(S (NP a) (VP b))",
]
SOUP = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)
LABELS = st.text(max_size=4) | st.sampled_from(["", "(", ")", "\\", "\\e", " ", "a b", "\n", "e", "S"])
NESTED = st.recursive(
    LABELS.map(lambda label: (label,)),
    lambda inner: st.tuples(LABELS, st.lists(inner, min_size=1, max_size=4)).map(lambda pair: (pair[0], *pair[1])),
    max_leaves=12,
)


def reads_or_says_why(text: str) -> None:
    try:
        tree = Trees.read(text)
    except DataError as error:
        assert str(error)
        return
    assert Trees.read(tree) == tree
    nodes = Trees.of([text]).nodes()
    own = np.arange(len(nodes.labels))
    assert nodes.parents[0] == -1
    assert (nodes.parents[1:] >= 0).all()
    assert (nodes.parents < own).all()
    assert nodes.sizes[0] == len(own) == nodes.starts[1]
    assert np.isfinite(SubsetTree(0.5)([text, "(S a)"])).all()


def count(tree: Any) -> int:
    return 1 + sum(count(child) for child in tree[1:])


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=SOUP)
def test_texts(text):
    reads_or_says_why(text)


def _soup(rng: random.Random) -> str:
    def piece() -> str:
        if rng.random() < 0.5:
            return rng.choice(PIECES)
        return "".join(chr(rng.randrange(rng.choice([128, 0x2100, 0x110000]))) for _ in range(rng.randrange(4)))

    return "".join(piece() for _ in range(rng.randrange(26)))


@pytest.mark.slow
def test_many_texts():
    # Other texts in every run, drawn without Hypothesis: to make one there takes ten times as long as to read it.
    rng = random.Random()
    for _ in range(7_000):
        text = _soup(rng)
        try:
            reads_or_says_why(text)
        except Exception as error:
            raise AssertionError(f"the tree is {text!r}") from error


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(one=NESTED, other=NESTED)
def test_trees_of_any_labels_are_written_and_read(one, other):
    texts = [Trees.read(tree) for tree in (one, other)]
    assert (texts[0] == texts[1]) == (one == other)
    for tree, text in zip((one, other), texts, strict=True):
        assert Trees.read(text) == text
        assert Trees.of([text]).nodes().sizes[0] == count(tree)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(SOUP, min_size=1, max_size=4))
def test_columns_of_a_file(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "trees.tsv"
    out = io.StringIO()
    out.write("tree\ty\n")
    for text in texts:
        out.write(f"{text}\t1\n")
    path.write_text(out.getvalue(), encoding="utf-8", errors="replace", newline="")
    try:
        table = read_table(path, ["tree"])
        if "tree" in table.names:
            trees = read_objects(table.columns["tree"], "tree", "tree", table.source, table.locate)
            assert len(trees) == table.n_rows
    except DataError as error:
        assert str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 10**6,
        ")" * 10**6,
        "(a " * 10**5 + ")" * 10**5,
        "\\" * 10**6,
        "\\" * (10**6 + 1),
        "(S " + "a " * 10**5 + ")",
    ],
    ids=["opened", "closed", "deep", "backslashes", "odd backslashes", "wide"],
)
def test_long_texts_end_soon(text):
    start_time = time.perf_counter()
    try:
        Trees.of([text]).nodes()
    except DataError as error:
        assert len(str(error)) < 500
    assert time.perf_counter() - start_time < 20
