"""Parts of strings, with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mercer.data.strings import Strings
from mercer.explain.result import Part, require_copies
from mercer.explain.split import Sides, Split, split
from mercer.gram import Gram
from mercer.kernels import BagOfWords, GappyKmers, Mismatch, WeightedDegree
from mercer.kernels.inputs import Rows

Item = str | tuple[str | int, ...]

# A symbol that is in no text: of the private use area, of which another is taken if a text has it.
_BLANKS = range(0xF0000, 0xFFFFE)


def text_of(item: Item) -> str:
    """Return a string as text; tokens are separated by spaces.

    >>> text_of("gram"), text_of(("a", "word", 3))
    ('gram', 'a word 3')
    """
    return item if isinstance(item, str) else " ".join(str(token) for token in item)


def substring(item: Item, at: int, length: int) -> Part:
    """Return the part of so many symbols from a position on.

    >>> substring("gram", 1, 2)
    Part(kind='substring', name='ra', places=(1, 2), term='')
    """
    return Part("substring", text_of(item[at : at + length]), tuple(range(at, at + length)))


def words(kernel: BagOfWords, item: Item) -> Iterator[tuple[str | int, Part]]:
    """Yield the words of a text as the kernel counts them, with their positions.

    >>> [(word, part.places) for word, part in words(BagOfWords(), "A Gram of a gram")]
    [('gram', (2, 3, 4, 5)), ('of', (7, 8)), ('gram', (12, 13, 14, 15))]
    """
    if not isinstance(item, str):
        for at, token in enumerate(item):
            yield token, Part("word", str(token), (at,))
        return
    text = item.lower() if kernel.lowercase else item
    for match in re.finditer(kernel.pattern, text):
        group = match.re.groups
        first, last = match.span(group)
        # In lower case a few letters become two, after which positions are not those of the text.
        places = tuple(range(first, last)) if len(text) == len(item) else ()
        word = match[group]
        # Where the group takes no part in the match, findall says "".
        yield "" if word is None else word, Part("word", text[first:last] if first >= 0 else "", places)


@split.register(GappyKmers)
@split.register(Mismatch)
def _windows(kernel: GappyKmers | Mismatch, sides: Sides) -> Split:
    """A sum over the windows of x: each is a string of one window."""
    item = sides.x.objects(Strings)[0]
    parts = [substring(item, at, kernel.length) for at in range(len(item) - kernel.length + 1)]
    if not parts:
        return Split([], np.zeros(0), item)
    windows = Strings([item[at : at + kernel.length] for at in range(len(parts))])
    return Split(parts, np.asarray(Gram(kernel, Rows(windows), sides.Z) @ sides.weights), item)


@split.register
def _degrees(kernel: WeightedDegree, sides: Sides) -> Split:
    """A sum over substrings at their positions.

    With all symbols but those of a substring blank, the kernel is the sum over what is within the substring. A second
    difference of these sums, by the first and the last symbol, is what the substring itself adds.
    """
    item, others = sides.x.objects(Strings)[0], sides.Z.objects(Strings)
    degree, n = min(kernel.degree, len(item)), len(item)
    blank = _blank(item, others)
    sums = {(at, 0): 0.0 for at in range(n + 1)}
    places = [(at, length) for length in range(1, degree + 1) for at in range(n - length + 1)]
    if not places:
        return Split([], np.zeros(0), item)
    require_copies(len(places), n, "symbols")
    rows = Strings([Strings.read(_masked(item, at, length, blank)) for at, length in places])
    values = np.asarray(Gram(kernel, Rows(rows), sides.Z) @ sides.weights)
    sums |= dict(zip(places, values.tolist(), strict=True))
    parts, own = [], []
    for at, length in places:
        parts.append(substring(item, at, length))
        inside = sums[at + 1, length - 2] if length > 1 else 0.0
        own.append(sums[at, length] - sums[at, length - 1] - sums[at + 1, length - 1] + inside)
    return Split(parts, np.array(own), item)


def _masked(item: Item, at: int, length: int, blank: str) -> Item:
    before, after = at, len(item) - at - length
    if isinstance(item, str):
        return blank * before + item[at : at + length] + blank * after
    return (blank,) * before + item[at : at + length] + (blank,) * after


def _blank(item: Item, others: Strings) -> str:
    """A symbol that is in none of the strings."""
    used = set(item).union(*others)
    return next(chr(code) for code in _BLANKS if chr(code) not in used)
