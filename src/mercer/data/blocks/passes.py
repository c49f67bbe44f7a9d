"""What can be done with rows that are read block by block: passes, samples, surveys, data frames, encoded tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer.data.blocks.block import Block
from mercer.data.blocks.checksum import Ledger, Mark, fingerprint_of
from mercer.data.blocks.choice import check_count
from mercer.data.blocks.moments import Statistics
from mercer.data.blocks.reading import Plan, encode
from mercer.data.blocks.reservoir import Reservoir
from mercer.data.blocks.survey import Survey
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.seeds import generator
from mercer.engine import memory

# Rows to which an encoder is fitted.
_ENCODER_ROWS = 20_000
# Numbers for each column that statistics take: those of all rows and of a strip.
_VECTORS = 8


class Passes:
    """Rows that a plan reads, pass by pass; :class:`~mercer.Blocks` adds the sources."""

    _plan: Plan
    _counts: dict[str, int]
    _ledger: Ledger

    @property
    def n(self) -> int:
        """Number of rows; of CSV, svmlight with ``n_features`` and functions, the first use takes a pass."""
        known = self._plan.source.layout.n
        if known is None:
            known = self._counts.get("n")
        return self._end.rows if known is None else known

    @property
    def d(self) -> int:
        """Number of columns of X."""
        return self._plan.width

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``."""
        return self.n, self.d

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of X; None for arrays and encoded tables."""
        return None if self._plan.encoder is not None else self._plan.source.layout.names

    @property
    def encoder(self) -> Any:
        """What turns data frames into X, for rows that come later; None if tables are not encoded."""
        return self._plan.encoder

    @property
    def dtype(self) -> np.dtype:
        """Of X: float32 or float64; object for data frames."""
        return self._plan.dtype

    @property
    def rows_per_block(self) -> int:
        """Rows of each block but the last."""
        return self._plan.rows

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n // self._plan.rows)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of n, d, the type and the names of the columns, and all values of X, targets and weights in order.

        It does not depend on how the rows are cut into files and blocks. The first use takes a pass, unless one has
        come to its end.
        """
        layout, end = self._plan.source.layout, self._end
        return fingerprint_of(end, self.d, self.dtype.str, self.columns, layout.target_dtype)

    def __repr__(self) -> str:
        form = "frames of " if self._plan.frames else "encoded " if self._plan.encoder is not None else ""
        return f"Blocks({form}{self._plan.source}, rows_per_block={self._plan.rows})"

    def __iter__(self) -> Iterator[Block]:
        """Yield all blocks in order.

        Raises
        ------
        DataError
            If rows cannot be read as numbers, or have changed since an earlier pass.
        MemoryBudgetError
            If a few blocks do not fit the memory budget.
        """
        return self._plan.blocks(self._ledger)

    def frames(self) -> Self:
        """Return blocks of the same rows whose X are data frames of pandas, with text, dates and missing values.

        Returns
        -------
        Blocks

        Raises
        ------
        DataError
            If the rows have no named columns.
        """
        layout = self._plan.source.layout
        if layout.names is None:
            raise DataError(f"{self._plan.source} has no named columns; data frames are made of tables only.")
        return self._from(replace(self._plan, frames=True, encoder=None, width=layout.d))

    def encoded(self, encoder: Any = None, *, kinds: Mapping[str, str] | None = None, random_state: Any = 0) -> Self:
        """Return blocks whose X are the encoded features of a table with columns of any kind.

        Parameters
        ----------
        encoder : object, optional
            A fitted transformer from data frames to arrays. Default: normal scores of numbers, indicators of
            categories and of missing values, and parts of dates, fitted to a uniform sample of 20,000 rows in a pass.
        kinds : dict of str to {"number", "category", "date"}, optional
            For the default: kinds of columns that are not what they seem, such as numbers that are codes.
        random_state : int, RandomState or None, default=0
            For that sample.

        Returns
        -------
        Blocks

        Raises
        ------
        DataError
            If the rows have no named columns, or a column holds texts instead of categories.
        ParameterError
            If kinds are given beside an encoder, or for columns that do not exist.

        Examples
        --------
        >>> import pandas as pd
        >>> from mercer import Blocks
        >>> frame = pd.DataFrame({"age": [20.0, None, 60.0], "town": ["Ulm", "Zug", "Ulm"], "price": [1.0, 2.0, 3.0]})
        >>> blocks = Blocks(frame, target="price").encoded()
        >>> [X.shape for X, y, sample_weight in blocks]
        [(3, 4)]
        """
        frames = self.frames()
        if encoder is not None and kinds is not None:
            raise ParameterError("kinds are for the default encoder; leave them out, or the encoder.")
        if encoder is None:
            sample = frames.sample(_ENCODER_ROWS, random_state=random_state)
            encoder = ColumnEncoder(kinds).fit(sample.X, sample_weight=sample.sample_weight)
        first = next(piece for piece in self._plan.source.pieces(1, True) if piece.block.rows)
        width = encode(first, encoder).block.X.shape[1]
        return self._from(replace(self._plan, frames=False, encoder=encoder, width=width))

    def sample(self, size: int, *, random_state: Any = None) -> Block:
        """Draw rows uniformly without replacement, in one pass.

        Parameters
        ----------
        size : int
            Number of rows; if there are fewer of positive weight, all are returned.
        random_state : int, RandomState or None
            With an int, the sample depends on the rows alone, not on files or blocks.

        Returns
        -------
        Block
            The rows with their targets and weights, in their order.

        Raises
        ------
        DataError
            If all weights are zero.
        """
        with self._reservoir(size, random_state) as reservoir:
            for block in self:
                reservoir.add(block)
            return self._drawn(reservoir)

    def survey(self, sample: int | None = None, *, random_state: Any = None) -> Survey:
        """Collect counts, moments, labels, the fingerprint and, if ``sample`` is given, a sample in one pass.

        Parameters
        ----------
        sample : int, optional
            Number of rows to draw, as :meth:`sample` does.
        random_state : int, RandomState or None

        Returns
        -------
        Survey

        Raises
        ------
        DataError
            If X are data frames, or all weights are zero.
        """
        if self._plan.frames:
            raise DataError(
                "a survey needs numbers, but these blocks are data frames; use encoded() in place of frames()."
            )
        statistics = Statistics(self._plan.source.layout.sparse)
        vectors = memory.reserve(_VECTORS * 8 * self.d, f"statistics of {self.d:,} columns")
        with vectors, self._reservoir(sample, random_state) as reservoir:
            for block in self:
                statistics.add(block)
                if sample is not None:
                    reservoir.add(block)
            drawn = None if sample is None else self._drawn(reservoir)
        statistics.finish()
        if statistics.X.weight == 0.0:
            raise DataError(f"{self._plan.source}: all sample weights are zero.")
        classes, class_weight = statistics.classes()
        moments = statistics.y if statistics.y.weight else None
        return Survey(
            n=self.n,
            d=self.d,
            weight=statistics.X.weight,
            mean=statistics.X.mean,
            scale=statistics.X.deviation,
            target_mean=None if moments is None else moments.mean,
            target_scale=None if moments is None else moments.deviation,
            classes=classes,
            class_weight=class_weight,
            fingerprint=self.fingerprint,
            sample=drawn,
        )

    def _use(self, plan: Plan, counts: dict[str, int]) -> None:
        self._plan = plan
        self._counts = counts
        self._ledger = Ledger(plan.source.advice, counts)

    def _from(self, plan: Plan) -> Self:
        blocks = type(self).__new__(type(self))
        blocks._use(plan, self._counts)
        return blocks

    @property
    def _end(self) -> Mark:
        """All rows and their checksum, by a pass if there was none."""
        if self._ledger.end is None:
            for _ in self:
                pass
        assert self._ledger.end is not None
        return self._ledger.end

    @contextmanager
    def _reservoir(self, size: int | None, random_state: Any) -> Iterator[Reservoir]:
        """A reservoir whose rows, and the copy that adding to them takes, are reserved; of no rows for None."""
        count = 0 if size is None else check_count("the size of a sample", size)
        known = self._plan.source.layout.n
        rows = count if known is None else min(count, known)
        # How many entries sparse rows have is not known before they are read.
        row_bytes = 0 if self._plan.source.layout.sparse else self.d * max(self.dtype.itemsize, 8)
        with memory.reserve(2 * rows * row_bytes, f"a sample of {rows:,} rows with {self.d:,} columns"):
            yield Reservoir(count, generator(random_state))

    def _drawn(self, reservoir: Reservoir) -> Block:
        if reservoir.sample is None:
            raise DataError(f"{self._plan.source}: all sample weights are zero, so no row can be drawn.")
        return reservoir.sample
