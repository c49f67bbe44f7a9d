"""Simple numeric features of rows, for the models beside which a learner is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from mercer.data.column_encoder import ColumnEncoder
from mercer.data.column_features import NumberColumn
from mercer.data.columns import MixedRows
from mercer.data.graphs import Graphs
from mercer.data.series import Series
from mercer.data.strings import Strings
from mercer.data.trees import Trees

# The features of the rows of either side, and what they are called.
_Features = tuple[list[Any], str]
# Things, one row after the other, and where the rows begin.
_Things = tuple[NDArray[Any], NDArray[np.int64]]

_MOST = 20_000


@dataclass(frozen=True, eq=False)
class Features:
    """Two sets of rows as numbers.

    Parameters
    ----------
    X, Z : ndarray or sparse matrix of shape (n, p), (m, p)
        For linear models.
    what : str
        How they were derived, as it is said after the name of a model.
    columns : tuple of ndarray of shape (n, q), (m, q), optional
        For trees: one number for each column, NaN for a gap; without text, trees, graphs and series. None if there are
        no such columns.
    codes : ndarray of shape (q,), optional
        Which of these are codes of categories.
    """

    X: Any
    Z: Any
    what: str = ""
    columns: tuple[Any, Any] | None = None
    codes: Any = None

    @classmethod
    def of_numbers(cls, X: Any, Z: Any) -> Features:
        """Of matrices; trees do not take sparse ones."""
        return cls(X, Z, columns=None if sp.issparse(X) else (X, Z))


def features(rows: Any, more: Any) -> Features:
    """Return the features of two sets of rows.

    Numbers are unchanged. For text, words are counted, or letters if there are hardly any words; for trees and graphs,
    the labels of the nodes, or their degrees if a graph has no labels. Series are stretched to one length, the median
    length of the first set.

    >>> rows = MixedRows([Strings.of(["a cat", "a dog"])], ["text"])
    >>> found = features(rows, rows)
    >>> found.X.toarray().tolist(), found.what
    ([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]], ' on counts of words')
    >>> features(*2 * [MixedRows([Series.of([[1.0, 2.0, 3.0], [4.0, 6.0]])])]).X.toarray().tolist()
    [[1.0, 3.0], [4.0, 6.0]]
    """
    if not isinstance(rows, MixedRows):
        return Features.of_numbers(rows, more)
    pairs, kinds, numbers = [], [], []
    for mine, its in zip(rows.columns, more.columns, strict=True):
        if isinstance(mine, np.ndarray):
            numbers.append((mine, its))
            pairs.append([sp.csr_matrix(column[:, None]) for column in (mine, its)])
            continue
        result = next((read(mine, its) for kind, read in _READERS.items() if isinstance(mine, kind)), None)
        if result is not None:
            pairs.append(result[0])
            kinds.append(result[1])
    if not pairs:
        return Features(np.zeros((len(rows), 0)), np.zeros((len(more), 0)))
    X, Z = (sp.hstack(side, format="csr", dtype=np.float64) for side in zip(*pairs, strict=True))
    one, other = map(np.column_stack, zip(*numbers, strict=True)) if numbers else (None, None)
    what = f" on {' and '.join(dict.fromkeys(kinds))}" if kinds else ""
    return Features(X, Z, what, None if one is None else (one, other))


def features_of_columns(encoder: ColumnEncoder, frame: Any, more: Any) -> Features:
    """Return the features of two tables: standardised numbers, and indicators of all else; for trees, the columns.

    Parameters
    ----------
    encoder : ColumnEncoder
        Fitted to ``frame`` or to a sample of it.
    frame, more : pandas.DataFrame
    """
    (one, codes), (other, _) = encoder.plain(frame), encoder.plain(more)
    found = replace(
        features(encoder.transform(frame), encoder.transform(more)),
        columns=(one, other) if one.shape[1] else None,
        codes=codes,
    )
    X, Z = found.X, found.Z
    scored = [
        place
        for place, column in enumerate(encoder.columns_)
        if isinstance(column, NumberColumn) and len(column.values)
    ]
    if not scored:
        return found
    numbers, others = (side.iloc[:, scored].to_numpy(dtype=np.float64) for side in (frame, more))
    mean, deviation = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
    deviation[~(deviation > 0)] = 1.0
    # The first feature of a column of numbers is its normal score; a linear model sees the number itself.
    present, first = np.unique(encoder.sources_, return_index=True)
    scores = first[np.searchsorted(present, scored)]
    rest = np.setdiff1d(np.arange(X.shape[1]), scores)
    stack = partial(sp.hstack, format="csr") if sp.issparse(X) else np.hstack
    sides = [(numbers, X), (others, Z)]
    X, Z = (stack([np.nan_to_num((side - mean) / deviation), more[:, rest]]) for side, more in sides)
    return replace(found, X=X, Z=Z)


def _of_texts(mine: Strings, its: Strings) -> _Features | None:
    texts, others = ([_text(item) for item in column] for column in (mine, its))
    counted = "words" if sum(text.count(" ") for text in texts) >= len(texts) else "letters"
    parts = {"token_pattern": r"\b\w+\b"} if counted == "words" else {"analyzer": "char"}
    counter = CountVectorizer(max_features=_MOST, **parts)
    try:
        return [counter.fit_transform(texts), counter.transform(others)], f"counts of {counted}"
    except ValueError:
        # There is no word in any text.
        return None


def _text(item: Any) -> str:
    return item if isinstance(item, str) else " ".join(map(str, item))


def _of_trees(mine: Trees, its: Trees) -> _Features:
    sides = [(side.nodes().labels, side.nodes().starts) for side in (mine, its)]
    return _counts(*sides), "counts of node labels"


def _of_graphs(mine: Graphs, its: Graphs) -> _Features | None:
    labelled = any(graph.labels is not None for graph in mine)
    joints = mine.joint(), its.joint()
    sides = [(joint.labels if labelled else np.diff(joint.starts), joint.nodes) for joint in joints]
    if not len(sides[0][0]):
        return None
    return _counts(*sides), f"counts of {'node labels' if labelled else 'degrees'}"


def _counts(mine: _Things, its: _Things) -> list[sp.csr_matrix]:
    """How often each thing that the first side holds, or the most frequent, is in each row of either side."""
    values, often = np.unique(mine[0], return_counts=True)
    common = np.sort(values[np.argsort(-often, kind="stable")[:_MOST]])
    return [_counted(common, *side) for side in (mine, its)]


def _counted(vocabulary: NDArray[Any], things: NDArray[Any], starts: NDArray[np.int64]) -> sp.csr_matrix:
    places = np.minimum(np.searchsorted(vocabulary, things), len(vocabulary) - 1)
    hits = vocabulary[places] == things
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[hits]
    return sp.csr_matrix((np.ones(len(rows)), (rows, places[hits])), shape=(len(starts) - 1, len(vocabulary)))


def _of_series(mine: Series, its: Series) -> _Features:
    times = int(np.median(mine.lengths))
    stretched = " stretched to" if (np.concatenate([mine.lengths, its.lengths]) != times).any() else ""
    sides = [sp.csr_matrix([_stretched(item, times) for item in side]) for side in (mine, its)]
    return sides, f"series{stretched or ' of'} {times} times"


def _stretched(item: NDArray[np.float64], times: int) -> NDArray[np.float64]:
    """A series (T, c) in straight lines between its values, at so many times, in one row."""
    if len(item) == times:
        return item.ravel()
    old, new = np.linspace(0.0, 1.0, len(item)), np.linspace(0.0, 1.0, times)
    return np.column_stack([np.interp(new, old, channel) for channel in item.T]).ravel()


_READERS: dict[type, Any] = {Strings: _of_texts, Trees: _of_trees, Graphs: _of_graphs, Series: _of_series}
