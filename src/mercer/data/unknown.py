"""The note about categories that a model has not seen in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from mercer._errors import MercerWarning, warn_user
from mercer.data.words import listing

_noted_columns: ContextVar[set[str] | None] = ContextVar("noted_columns", default=None)


@contextmanager
def one_note_a_column() -> Iterator[None]:
    """Note unknown categories of a column once while rows come in blocks, and not for each block."""
    token = _noted_columns.set(set() if _noted_columns.get() is None else _noted_columns.get())
    try:
        yield
    finally:
        _noted_columns.reset(token)


def note_unknown(source: str, column: str, strange: Sequence[str], rows: int, treated: str) -> None:
    """Warn of categories that were not seen in training.

    Parameters
    ----------
    source : str
        The table, in messages.
    column : str
    strange : list of str
        The categories, at least one.
    rows : int
        That hold them.
    treated : str
        How they are treated, as a sentence.

    Warns
    -----
    MercerWarning
        In blocks without the number of rows, which is that of the first block only.
    """
    noted = _noted_columns.get()
    if noted is None:
        where = f"{listing(list(strange), 3)} in {rows} row{'s' if rows > 1 else ''}"
    elif column in noted:
        return
    else:
        noted.add(column)
        where = f"categories such as {listing(list(strange), 3)}"
    warn_user(
        f"{source}: column {column!r} holds {where}, which the model has not seen in training; {treated}.",
        MercerWarning,
    )
