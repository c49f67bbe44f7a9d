"""Texts compared by the words that they share."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects, short
from mercer.data.statements import Arrays, Floats
from mercer.data.strings import Strings, read_token
from mercer.kernels.features import FeatureKernel, Features
from mercer.kernels.parameters import flag

Word = str | int

# scikit-learn's: two or more letters, digits or underscores.
_WORDS = r"\b\w\w+\b"
# Single letters, too.
_LETTERS = r"\b\w+\b"


class WordWeights:
    """A weight for each of some words, as a value: read-only, compared and hashed by its content.

    Examples
    --------
    >>> WordWeights(["gram", "matrix"], [1.0, 1.5])
    [['gram', 1.0], ['matrix', 1.5]]
    """

    _fitted = Fitted({"words": Arrays("n"), "weights": Floats("n", least=0)})

    def __init__(self, words: Any, weights: Any) -> None:
        self.words = np.empty(len(words), object)
        self.words[:] = list(words)
        self.weights = np.array(weights, dtype=np.float64)
        self.words.setflags(write=False)
        self.weights.setflags(write=False)
        # Kernels are keys of what is kept for every tile, so the words are read once only.
        self._hash = hash((tuple(self.words), self.weights.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return WordWeights, (self.words, self.weights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordWeights):
            return NotImplemented
        return np.array_equal(self.words, other.words) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr([[word, float(weight)] for word, weight in zip(self.words, self.weights, strict=True)])

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, repr=False)
class BagOfWords(FeatureKernel):
    r"""``k(x, z) = sum_w idf_w^2 count_w(x) count_w(z)`` over words ``w``.

    The words of a text are the matches of ``pattern``; those of a sequence of tokens are the tokens. Divide by the
    lengths of the texts with ``.normalized()``: ``BagOfWords.tf_idf(texts).normalized()`` is the product of the rows
    that scikit-learn's ``TfidfVectorizer`` makes.

    Parameters
    ----------
    pattern : str, default=r"\b\w\w+\b"
        A regular expression for a word, with at most one group.
    lowercase : bool, default=True
        Whether texts are read in lower case. Tokens are not changed.
    idf : list of (word, weight), or mapping, optional
        The weight of each word, at least 0; missing words have the weight 0. By default every weight is 1.
        :meth:`tf_idf` computes the weights from documents; they belong to the kernel, so new texts are compared with
        the same weights.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``pattern`` is not a regular expression with at most one group, or ``idf`` is not a list of words with
        weights.
    DataError
        When evaluated, if a row is not a string.

    Notes
    -----
    Joachims (1998), "Text categorization with support vector machines: learning with many relevant features". A
    sequence of single letters is the same as the text that they make, and is read as a text.

    Examples
    --------
    >>> texts = ["The gram matrix", "A matrix, a kernel matrix", "the kernel"]
    >>> BagOfWords()(texts).tolist()
    [[3.0, 2.0, 1.0], [2.0, 5.0, 1.0], [1.0, 1.0, 2.0]]
    >>> BagOfWords(idf={"gram": 1.0, "kernel": 2.0})(texts).tolist()
    [[1.0, 0.0, 0.0], [0.0, 4.0, 4.0], [0.0, 4.0, 4.0]]
    """

    pattern: str = _WORDS
    lowercase: bool = True
    idf: WordWeights | None = None

    rows_of: ClassVar[type[Objects]] = Strings

    def __post_init__(self) -> None:
        super().__post_init__()
        _compiled(self.pattern)
        object.__setattr__(self, "lowercase", flag("BagOfWords", "lowercase", self.lowercase))
        if self.idf is not None and not isinstance(self.idf, WordWeights):
            object.__setattr__(self, "idf", _word_weights(self.idf))

    def advice_on_zeros(self, rows: Objects) -> str:
        single = any(isinstance(row, str) and re.search(_LETTERS, row) for row in rows)
        if self.pattern != _WORDS or self.idf is not None or not single:
            return super().advice_on_zeros(rows)
        return f"Words have two letters or more; single letters are words, too, for BagOfWords({_LETTERS!r})."

    @classmethod
    def tf_idf(cls, X: Any, pattern: str = _WORDS, lowercase: bool = True) -> BagOfWords:
        r"""The kernel with ``idf_w = ln((1 + n) / (1 + n_w)) + 1``, where ``n_w`` of the ``n`` documents ``X`` have w.

        These are the weights of scikit-learn's ``TfidfVectorizer``. Words that occur in no document have the weight 0.

        Parameters
        ----------
        X : sequence of n strings
            The documents, usually the training rows.
        pattern : str, default=r"\b\w\w+\b"
        lowercase : bool, default=True

        Returns
        -------
        BagOfWords

        Raises
        ------
        DataError
            If ``X`` holds anything other than strings.

        Examples
        --------
        >>> kernel = BagOfWords.tf_idf(["gram matrix", "kernel matrix"])
        >>> kernel(["matrix of a graph"], ["the matrix", "gram"]).tolist()
        [[1.0, 0.0]]
        """
        plain = cls(pattern, lowercase)
        objects = Strings.of(X)
        counts = Counter(word for words in plain._words(objects) for word in set(words))
        ordered = sorted(counts, key=lambda word: (isinstance(word, str), word))
        idf = np.log((1 + len(objects)) / (1 + np.array([counts[word] for word in ordered], dtype=float))) + 1
        return cls(pattern, lowercase, WordWeights(ordered, idf))

    def _expression(self) -> str:
        defaults = {"pattern": _WORDS, "lowercase": True, "idf": None}
        arguments = [f"{n}={getattr(self, n)!r}" for n, default in defaults.items() if getattr(self, n) != default]
        return f"BagOfWords({', '.join(arguments)})"

    def _words(self, objects: Strings) -> list[tuple[Word, ...]]:
        find = _compiled(self.pattern).findall
        return [
            tuple(find(item.lower() if self.lowercase else item)) if isinstance(item, str) else item for item in objects
        ]

    def _features(self, objects: Strings) -> Features:
        bags = [Counter(words) for words in self._words(objects)]
        weights: Mapping[Word, float] = {}
        if self.idf is not None:
            weights = dict(zip(self.idf.words, self.idf.weights, strict=True))
            bags = [Counter({word: n for word, n in bag.items() if word in weights}) for bag in bags]
        numbers = {word: _number(word) for word in {word for bag in bags for word in bag}}
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(bag) for bag in bags], dtype=np.int64)])
        ids = np.fromiter((numbers[word] for bag in bags for word in bag), np.uint64, starts[-1])
        counts = (n * weights.get(word, 1.0) for bag in bags for word, n in bag.items())
        return Features(ids, np.fromiter(counts, np.float64, starts[-1]), starts)

    def _packing(self) -> Hashable:
        return type(self), self.pattern, self.lowercase, self.idf


def _number(word: Word) -> int:
    digest = hashlib.blake2b(f"{type(word).__name__} {word}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _compiled(pattern: Any) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ParameterError(
            f"BagOfWords: pattern must be a regular expression, but is {short(pattern)}: {error}."
        ) from error
    if not isinstance(pattern, str) or compiled.groups > 1:
        raise ParameterError(f"BagOfWords: pattern must be text with at most one group, but is {short(pattern)}.")
    return compiled


def _word_weights(idf: Any) -> WordWeights:
    """Weights from a mapping, or from pairs of a word and its weight."""
    pairs = list(idf.items()) if isinstance(idf, Mapping) else idf
    good = isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes)) and getattr(pairs, "shape", None) != ()
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in pairs] if good else []
    good = good and all(isinstance(p, tuple) and len(p) == 2 for p in pairs)
    try:
        words = [read_token(word) for word, _ in pairs] if good else []
    except DataError as error:
        raise ParameterError(f"BagOfWords: the words in idf are tokens: {error}") from error
    if not good or len(set(words)) < len(pairs):
        raise ParameterError(
            f"BagOfWords: idf must be a list of different words, each with a weight, but is {short(idf)}."
        )
    try:
        weights = np.array([weight for _, weight in pairs], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"BagOfWords: the weights in idf must be numbers: {error}.") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ParameterError("BagOfWords: the weights in idf must be finite and at least 0.")
    return WordWeights(words, weights)
