"""Strings: text, bytes, or sequences of tokens."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer.data.objects import Objects, short

# Characters are their code points; what else a token may be has numbers from here on, in the order of first occurrence.
_FIRST_TOKEN = 0x110000
_tokens: dict[Any, int] = {}
_lock = threading.Lock()


class Strings(Objects):
    """Rows that are strings: ``str``, ``bytes`` (each byte a character), or sequences of tokens (``str`` or ``int``).

    A sequence of single characters equals the text that they form.

    Parameters
    ----------
    items : sequence
        Rows in the form that :meth:`read` returns; use :meth:`of` for any other rows.

    Examples
    --------
    >>> Strings.of(["gram", b"gram", ["a", "list", "of", "words"]])
    ['gram', 'gram', ('a', 'list', 'of', 'words')]
    >>> Strings.of(["gram", 3.5])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: row 1 of X: a string must be text, bytes or a sequence of tokens, but is 3.5.
    """

    kind = "strings"

    @staticmethod
    def read(item: Any) -> str | tuple[str | int, ...]:
        if isinstance(item, str):
            return str(item)
        if isinstance(item, bytes):
            return item.decode("latin-1")
        if isinstance(item, np.ndarray) and item.ndim == 1:
            item = item.tolist()
        if not isinstance(item, (list, tuple)):
            raise DataError(f"a string must be text, bytes or a sequence of tokens, but is {short(item)}.")
        tokens = tuple(read_token(token) for token in item)
        characters = [token for token in tokens if isinstance(token, str) and len(token) == 1]
        return "".join(characters) if len(characters) == len(tokens) else tokens

    @staticmethod
    def fingerprint(item: Any) -> bytes:
        # A byte that occurs in no text distinguishes tokens from text that prints like them.
        mark, text = (b"", item) if isinstance(item, str) else (b"\xff", repr(item))
        return mark + text.encode("utf-8", "surrogatepass")

    def codes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all symbols as numbers, string after string, and where each string begins: (total,) and (n + 1,).

        A symbol has the same number in all containers of a process.
        """
        codes: tuple[NDArray[np.int64], NDArray[np.int64]] = self.keep("codes", self._codes)
        return codes

    def _codes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        parts = [_numbers(item) for item in self]
        starts = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        return np.concatenate(parts) if parts else np.empty(0, np.int64), starts


def read_token(token: Any) -> str | int:
    """Return a token in its final form: text or a whole number; True and False are neither, although equal to 1 and 0.

    Raises
    ------
    DataError
        If it is something else.
    """
    if isinstance(token, (str, np.str_)):
        return str(token)
    if isinstance(token, (int, np.integer)) and not isinstance(token, (bool, np.bool_)):
        return int(token)
    raise DataError(f"the tokens of a string must be text or whole numbers, but one is {short(token)}.")


def _numbers(item: str | tuple[str | int, ...]) -> NDArray[np.int64]:
    if isinstance(item, str):
        return np.frombuffer(item.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    with _lock:
        return np.array(
            [
                ord(t) if isinstance(t, str) and len(t) == 1 else _tokens.setdefault(t, _FIRST_TOKEN + len(_tokens))
                for t in item
            ],
            np.int64,
        )
