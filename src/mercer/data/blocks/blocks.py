"""Rows that need not fit into memory: read again and again, block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mercer._errors import DataError
from mercer.data.blocks.arrow_source import ArrowSource
from mercer.data.blocks.choice import Choice, check_count
from mercer.data.blocks.csv_source import CsvSource
from mercer.data.blocks.dask_source import partitions_of
from mercer.data.blocks.function_source import FunctionSource
from mercer.data.blocks.memory_source import ArraySource, FrameSource
from mercer.data.blocks.npy_source import NpySource
from mercer.data.blocks.passes import Passes
from mercer.data.blocks.reading import Plan, default_rows
from mercer.data.blocks.recognise import recognise
from mercer.data.blocks.source import Source
from mercer.data.blocks.svmlight_source import SvmlightSource


class Blocks(Passes):
    """Rows in files, in memory or from a function, which can be read again and again in blocks.

    Iteration yields ``(X, y, sample_weight)`` with ``rows_per_block`` rows each; the last block may have fewer. Only a
    few blocks are in memory at a time. Where blocks begin depends on ``rows_per_block`` alone, not on the files, so
    results have the same bits however the same rows are cut into files. Each pass is compared to the first one by
    checksums.

    Parameters
    ----------
    source : str, pathlib.Path, list of these, array, data frame, pyarrow data set or table, or callable
        Files of one format, by path, pattern (``"parts/*.parquet"``), folder or list: Parquet or Arrow, CSV or TSV,
        ``.npy`` or svmlight; the suffix tells the format. Files of patterns and folders are in alphabetical order.
        A callable returns a new iterator over the blocks for each pass.
    target : str or list of str, array-like, or path, optional
        Names of columns of a table; for arrays an array of shape (n,) or (n, t); for ``.npy`` files their paths.
        Svmlight files have their labels.
    columns : list of str, optional
        Columns of X in a table. Default: all but target and weights.
    sample_weight : str, array-like or path, optional
        As ``target``. Default: none.
    dtype : dict of str to str, optional
        Types of columns of CSV files that the first 1000 rows do not show, such as ``{"zip": "str"}``. Other sources
        have types of their own.
    encoding : str, optional
        That of CSV files. Default: UTF-8, or UTF-16 if a file has its byte order mark.
    rows_per_block : int, optional
        Default: 16 MiB of float64 by the number of columns, at most 131,072 rows; 16,384 rows of sparse matrices. It
        does not depend on the memory that is free.

    Raises
    ------
    DataError
        If there are no such rows, files do not have the same columns, or the source can be read only once.
    ParameterError
        If an argument does not fit the source.

    See Also
    --------
    write_blocks : Write predictions block by block.

    Notes
    -----
    X is float32 if all columns are, else float64; of svmlight files and sparse matrices it is CSR. Tables with text,
    categories, dates or missing values are read with :meth:`encoded`, or as data frames with :meth:`frames`. In CSV
    files, types of columns are inferred from the first 1000 rows; digits of which some begin with a zero, as in
    ``007``, are text there.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> blocks = Blocks(np.arange(10.0).reshape(5, 2), [1, 0, 1, 0, 1], rows_per_block=2)
    >>> blocks
    Blocks(an array of shape (5, 2), rows_per_block=2)
    >>> [(X.shape, y.tolist()) for X, y, sample_weight in blocks]
    [((2, 2), [1, 0]), ((2, 2), [1, 0]), ((1, 2), [1])]
    >>> survey = blocks.survey()
    >>> survey.mean.tolist(), survey.classes.tolist(), survey.class_weight.tolist()
    ([4.0, 5.0], [0, 1], [2.0, 3.0])
    """

    def __init__(
        self,
        source: Any,
        target: Any = None,
        *,
        columns: Any = None,
        sample_weight: Any = None,
        dtype: Mapping[str, str] | None = None,
        encoding: str | None = None,
        rows_per_block: int | None = None,
    ) -> None:
        self._set(recognise(source, target, columns, sample_weight, dtype, encoding), rows_per_block)

    @classmethod
    def from_parquet(
        cls,
        source: Any,
        target: Any = None,
        *,
        columns: Any = None,
        sample_weight: str | None = None,
        rows_per_block: int | None = None,
    ) -> Blocks:
        """Read Parquet or Arrow (IPC, Feather) files, or a data set of pyarrow.

        Below a folder or in a pattern, parts of paths such as ``year=2020`` are columns.

        Parameters
        ----------
        source : str, pathlib.Path, list of these, or pyarrow.dataset.Dataset
        target, columns, sample_weight, rows_per_block
            As of :class:`Blocks`, by the names of columns.

        Returns
        -------
        Blocks
        """
        return cls._of(ArrowSource.of(source, Choice.of(target, columns, sample_weight)), rows_per_block)

    @classmethod
    def from_csv(
        cls,
        source: Any,
        target: Any = None,
        *,
        columns: Any = None,
        sample_weight: str | None = None,
        dtype: Mapping[str, str] | None = None,
        encoding: str | None = None,
        rows_per_block: int | None = None,
    ) -> Blocks:
        """Read files of comma- or tab-separated values with a header each; also ``.gz``, or one in a ``.zip``.

        Parameters
        ----------
        source : str, pathlib.Path, or list of these
        target, columns, sample_weight
            As of :class:`Blocks`, by the names of columns.
        dtype : dict of str to str, optional
            Types of columns that the first 1000 rows do not show, such as ``{"zip": "str"}``.
        encoding : str, optional
            That of the files. Default: UTF-8, or UTF-16 if a file has its byte order mark.
        rows_per_block : int, optional

        Returns
        -------
        Blocks
        """
        choice = Choice.of(target, columns, sample_weight)
        return cls._of(CsvSource.of(source, choice, dtype, encoding), rows_per_block)

    @classmethod
    def from_npy(cls, X: Any, y: Any = None, *, sample_weight: Any = None, rows_per_block: int | None = None) -> Blocks:
        """Map ``.npy`` files into memory, a block at a time.

        Parameters
        ----------
        X : str, pathlib.Path, or list of these
            Files of arrays (n, d).
        y, sample_weight : str, pathlib.Path, or list of these, optional
            As many files as of X, in the same order.
        rows_per_block : int, optional

        Returns
        -------
        Blocks
        """
        return cls._of(NpySource.of(X, y, sample_weight), rows_per_block)

    @classmethod
    def from_svmlight(cls, source: Any, *, n_features: int | None = None, rows_per_block: int | None = None) -> Blocks:
        """Read files in the svmlight (libsvm) format as CSR; column ``j`` is the feature ``j`` of the files.

        Parameters
        ----------
        source : str, pathlib.Path, or list of these
        n_features : int, optional
            The number of columns. Default: found by reading all files once.
        rows_per_block : int, optional

        Returns
        -------
        Blocks
        """
        width = None if n_features is None else check_count("n_features", n_features)
        return cls._of(SvmlightSource.of(source, width), rows_per_block)

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any = None, *, sample_weight: Any = None, rows_per_block: int | None = None
    ) -> Blocks:
        """Cut arrays, sparse matrices or a data frame in memory into blocks, without a copy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or pandas.DataFrame
        y : array-like of shape (n,) or (n, t), optional
        sample_weight : array-like of shape (n,), optional
        rows_per_block : int, optional

        Returns
        -------
        Blocks
        """
        of = FrameSource.of(X, y, None, sample_weight) if hasattr(X, "iloc") else ArraySource.of(X, y, sample_weight)
        return cls._of(of, rows_per_block)

    @classmethod
    def from_function(
        cls,
        function: Callable[[], Any],
        target: Any = None,
        *,
        columns: Any = None,
        sample_weight: str | None = None,
        rows_per_block: int | None = None,
    ) -> Blocks:
        """Read what a function yields; it is called anew for each pass, and once at first for the number of columns.

        Parameters
        ----------
        function : callable
            Without arguments; returns an iterator of blocks of any size: X, (X, y) or (X, y, sample_weight), where X is
            an array, a CSR matrix or a data frame.
        target, columns, sample_weight
            As of :class:`Blocks`; for data frames only.
        rows_per_block : int, optional

        Returns
        -------
        Blocks

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Blocks
        >>> def simulations():
        ...     for seed in range(3):
        ...         rng = np.random.default_rng(seed)
        ...         X = rng.normal(size=(100, 2))
        ...         yield X, X[:, 0] ** 2
        >>> blocks = Blocks.from_function(simulations, rows_per_block=250)
        >>> [len(X) for X, y, sample_weight in blocks], blocks.n
        ([250, 50], 300)
        """
        if not callable(function) or hasattr(function, "__next__"):
            raise DataError(
                f"from_function needs a function that returns a new iterator each time, but got a "
                f"{type(function).__name__}, which can be read only once; pass the generator function itself."
            )
        return cls._of(FunctionSource(function, Choice.of(target, columns, sample_weight)), rows_per_block)

    @classmethod
    def from_dask(
        cls, X: Any, y: Any = None, *, sample_weight: Any = None, rows_per_block: int | None = None
    ) -> Blocks:
        """Fetch the partitions of collections of Dask, one at a time.

        To have sums made where the partitions are, pass the collections to ``fit`` themselves.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
        y, sample_weight : dask.array.Array or dask.dataframe.Series, optional
            With the same partitions, or any for arrays.
        rows_per_block : int, optional

        Returns
        -------
        Blocks
        """
        return cls._of(FunctionSource(partitions_of(X, y, sample_weight), Choice.of(None, None, None)), rows_per_block)

    @classmethod
    def _of(cls, source: Source, rows_per_block: int | None) -> Blocks:
        blocks = cls.__new__(cls)
        blocks._set(source, rows_per_block)
        return blocks

    def _set(self, source: Source, rows_per_block: int | None) -> None:
        rows = None if rows_per_block is None else check_count("rows_per_block", rows_per_block)
        layout = source.layout
        if layout.n == 0:
            raise DataError(f"{source} has no rows.")
        self._use(Plan(source, default_rows(layout) if rows is None else rows, width=layout.d), {})
