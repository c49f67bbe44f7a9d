"""Containers of rows that are not vectors: values that can be picked from like arrays."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from mercer._errors import DataError
from mercer.data.columns import MixedRows
from mercer.data.objects import Anything
from mercer.data.strings import Strings

texts = st.lists(st.one_of(st.text(max_size=4), st.lists(st.integers(0, 3), max_size=3)), min_size=1, max_size=6)


@given(texts)
def test_a_container_is_a_value(rows: list[Any]) -> None:
    one, other = Strings.of(rows), Strings.of(rows)
    assert one == other and hash(one) == hash(other) and one.keys().tolist() == other.keys().tolist()
    assert pickle.loads(pickle.dumps(one)) == one and copy.deepcopy(one) == one and one.copy() is one
    assert one.same(other).all() and one != Anything.of(rows)
    with pytest.raises(ValueError, match="read-only"):
        one.items[0] = "other"


@given(texts, st.data())
def test_rows_are_picked_as_from_an_array(rows: list[Any], data: Any) -> None:
    whole = Strings.of(rows)
    index = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=5))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    assert list(whole[index]) == [whole[i] for i in index]
    assert list(whole[start:stop]) == list(whole)[start:stop]
    assert list(whole[mask]) == [item for item, chosen in zip(whole, mask, strict=True) if chosen]
    before = whole[index].keys()
    whole.keys()
    assert np.array_equal(whole[index].keys(), before) and np.array_equal(whole[mask].keys(), whole.keys()[mask])
    assert list(whole[start:stop].joined(whole[index])) == [*list(whole)[start:stop], *(whole[i] for i in index)]


@given(st.lists(st.text(max_size=3), min_size=1), st.lists(st.text(max_size=3), min_size=1))
def test_equal_rows_and_no_others_have_equal_keys(left: list[str], right: list[str]) -> None:
    a, b = Strings.of(left), Strings.of(right)
    assert np.array_equal(a.keys()[:, None] == b.keys(), [[x == z for z in right] for x in left])
    shorter = min(len(left), len(right))
    assert a[:shorter].same(b[:shorter]).tolist() == [x == z for x, z in zip(left, right, strict=False)]


def test_parts_are_compared_without_reading_rows_whose_keys_differ(monkeypatch) -> None:
    rows = Strings.of(["ab", "cd", "ab", "ef", "".join(["a", "b"])])
    rows.keys()
    read, fingerprint = [], Strings.fingerprint
    monkeypatch.setattr(Strings, "fingerprint", staticmethod(lambda item: read.append(item) or fingerprint(item)))
    assert rows[[0, 1, 1]].same(rows[[3, 1, 2]]).tolist() == [False, True, False] and not read
    # Rows that are equal and not the same object, and different ones with equal keys, are.
    assert rows[[0, 1]].same(Strings.of(["ab", "ab"])).tolist() == [True, False]
    other = rows[[0, 1]]
    other._cache["keys"] = rows.keys()[[1, 0]]
    assert other.same(rows[[1, 0]]).tolist() == [False, False]


@pytest.mark.parametrize(
    "X",
    [
        ["ab", b"ab", ("a", "b"), np.array(["a", "b"])],
        np.array(["ab"] * 4),
        np.array([["ab"]] * 4, dtype=object),
        pd.Series(["ab"] * 4, index=[9, 8, 7, 6]),
        pd.DataFrame({"s": ["ab"] * 4}),
        ("ab",) * 4,
    ],
)
def test_whatever_holds_strings(X: Any) -> None:
    assert list(Strings.of(X)) == ["ab"] * 4


def test_tokens_are_not_the_text_that_prints_like_them() -> None:
    tokens, text = Strings.of([("a", 7)]), Strings.of(["('a', 7)"])
    assert tokens != text and not tokens.same(text).any()


def test_objects_of_ones_own_are_told_apart() -> None:
    long = np.zeros(5000)
    longer = np.append(long, 1.0)
    rows = Anything.of([long, longer, long.copy(), lambda x: x, lambda x: x])
    assert len(set(rows.keys().tolist())) == 4 and rows.same(rows).all()


def test_symbols_have_the_same_numbers_everywhere() -> None:
    codes, starts = Strings.of(["a\N{GRINNING FACE}", ["a", "word", 7]]).codes()
    assert starts.tolist() == [0, 2, 5] and codes[:2].tolist() == [ord("a"), ord("\N{GRINNING FACE}")]
    again, _ = Strings.of([["word", "a", 7], "\ud800"]).codes()
    assert again[:3].tolist() == codes[[3, 2, 4]].tolist() and len(set(codes[2:])) == 3
    assert again[3] == 0xD800


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty"),
        ("text", "pass a list of strings"),
        (3, "pass a list of strings"),
        (["a", None], "row 1 of X"),
        ([["a", 0.5]], "the tokens of a string must be text or whole numbers, but one is 0.5"),
        ({"a": 1}, "pass a list"),
        ([True], "but is True"),
        ([["a", True]], "one is True"),
        (np.array([["a", "b"]]).reshape(1, 2)[0][0], "pass a list of strings"),
    ],
)
def test_what_is_refused(X: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Strings.of(X)


def _mixed(n: int = 5) -> MixedRows:
    frame = pd.DataFrame({"text": [f"t{i % 3}" for i in range(n)], "left out": [None] * n, "number": np.arange(n) % 2})
    return MixedRows.of(frame, {0: Strings, 2: None})


def test_columns_of_several_kinds() -> None:
    rows = _mixed()
    assert rows.shape == (5, 3) and len(rows[1:3]) == 2 and rows.names == ("text", "left out", "number")
    assert list(rows[[4, 0]].on([0])) == ["t1", "t0"] and rows.on([2, 2]).tolist() == [[v, v] for v in (0, 1, 0, 1, 0)]
    assert rows == rows.copy() and rows != rows[::-1] and rows.joined(rows[:1])[[5]] == rows[[0]]
    seven = _mixed(7)
    assert np.array_equal(seven.keys()[:, None] == seven.keys(), np.arange(7)[:, None] % 6 == np.arange(7) % 6)
    with pytest.raises(DataError, match="choose one column of objects at a time"):
        rows.on([0, 2])
    with pytest.raises(DataError, match="column 'number' of X contains NaN"):
        MixedRows.of(pd.DataFrame({"number": [1.0, np.nan]}), {0: None})
    with pytest.raises(DataError, match="must be a table"):
        MixedRows.of(["a", "b"], {0: Strings})
    pickled = pickle.loads(pickle.dumps(rows))
    assert pickled == rows


@pytest.mark.parametrize("dtype", ["U", "S", "T", "O"])
def test_a_column_of_an_array_holds_a_text_a_row(dtype: str) -> None:
    words = ["gram", "matrix"]
    assert Strings.of(np.array(words, dtype)[:, None]) == Strings.of(words)


def test_what_has_no_order_of_rows_or_is_nested_without_end_is_named() -> None:
    nested: Any = "a"
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(DataError, match="the tokens of a string must be text or whole numbers"):
        Strings.of([nested])
    for wrong in (frozenset(["a"]), scipy.sparse.csr_array(np.eye(2))):
        with pytest.raises(DataError, match="X must be a sequence of strings"):
            Strings.of(wrong)


def test_a_message_is_one_line() -> None:
    with pytest.raises(DataError, match=r"^X must be a sequence of strings, .* is <.*; pass a list of strings\.$"):
        Strings.of(scipy.sparse.csr_array(np.eye(3)))
