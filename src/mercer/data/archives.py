"""NumPy archives, ``.npz`` files: tables of numbers, and series."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mercer._errors import DataError, MemoryBudgetError
from mercer._optional import optional
from mercer.data.object_readers import column_of, usual_target
from mercer.data.series import AXES, Series, check_axes, longer_axis_is_time
from mercer.data.table import Table
from mercer.data.words import listing, shown
from mercer.engine import memory


def read_archive(path: Path, axes: str | None = None) -> Table:
    """The table of an archive: rows of numbers, or series.

    A two-dimensional array ``X`` (or the only such array) contains the columns; every array of one number per row may
    be the target. A three-dimensional ``X`` contains series, (n, times, channels) or, as in aeon and sktime, (n,
    channels, times), padded with NaN at their ends; ``lengths`` (n,), if present, gives their lengths. The longer one
    of the last two axes is time, unless ``axes`` or a text ``axes`` in the archive says another order:
    ``numpy.savez(path, X=X, y=y, axes="nct")``.

    Raises
    ------
    ParameterError
        If ``axes`` is not an order of axes.
    DataError
        If the archive does not have this form, if series have as many channels as times and ``axes`` is not given, or
        if there is a NaN within a series.
    """
    if axes is not None:
        check_axes(axes)
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(f"{path} holds a single array; save a table with numpy.savez(path, X=..., y=...).")
        with archive:
            _require_room(archive, path)
            # Arrays of the other byte order are legal in a file, but compiled code does not take them.
            arrays = {name: _native(archive[name], name, path) for name in archive.files}
    except DataError:
        raise
    except (MemoryBudgetError, zipfile.BadZipFile, zlib.error):
        raise
    except (ValueError, OSError, MemoryError, NotImplementedError, RuntimeError) as error:
        # A member may claim a shape of any size, or to be packed in a way that Python does not know.
        if "Object arrays" in str(error):
            raise DataError(
                f"{path} holds an array of Python objects, which are not read because they could run arbitrary code. "
                "Series of different lengths are saved as one array of numbers, (n, times, channels), padded with "
                "NaN at their ends; anything else as an array of numbers or text."
            ) from error
        raise DataError(f"{path} cannot be read as a NumPy archive: {error}") from error
    return _table_of_arrays(arrays, path.name, axes)


def _require_room(archive: Any, path: Path) -> None:
    """Raise unless what the members unpack to fits the memory budget: a small file may hold any number of zeros."""
    size = sum(member.file_size for member in archive.zip.infolist())
    memory.require(size, f"the arrays of {path}", "Raise the budget with mercer.config(memory=...).")


def _native(array: Any, name: str, path: Path) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise DataError(
            f"{path}: its member {shown(name)} is not an array; a NumPy archive must hold only arrays, as "
            "numpy.savez writes them. Remove that member."
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _table_of_arrays(arrays: dict[str, np.ndarray], source: str, axes: str | None) -> Table:
    """The table of a NumPy archive: the columns from ``X``, every array of one number a row as a possible target."""
    pandas = optional("pandas", f"reading {source}")
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none"
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" not in arrays and len(tables) != 1:
        raise DataError(f"{source}: the columns are read from a two-dimensional array X; the arrays are {shapes}.")
    X = arrays["X" if "X" in arrays else tables[0]]
    if X.ndim == 3:
        return _series(arrays, source, axes)
    if X.ndim == 4 and axes is None:
        raise DataError(
            f"{source}: X is of shape {X.shape}, like images (n, height, width, channels), which the command line does "
            "not read. In Python, pass them to a kernel such as mercer.kernels.SpatialPyramid(); or save each "
            "image as one row of numbers, numpy.savez(..., X=X.reshape(len(X), -1))."
        )
    if X.ndim != 2 or axes is not None:
        shape = "(rows, columns), or (rows, times, channels) for series" if axes is None else "three axes, as axes say"
        raise DataError(f"{source}: X must be of shape {shape}, but is of shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise DataError(f"{source}: X must hold numbers, but holds {X.dtype}.")
    names = [f"x{j}" for j in range(X.shape[1])]
    for key in ("columns", "feature_names", "names"):
        if key in arrays and arrays[key].shape == (X.shape[1],):
            names = [str(name) for name in arrays[key]]
    if len(set(names)) < len(names):
        raise DataError(f"{source}: column names must be unique, but are {listing(names)}.")
    targets = {name: a for name, a in arrays.items() if a.shape == (len(X),) and name != "feature_names"}
    return Table(pandas.DataFrame(X, columns=names), source, targets, usual_target(targets))


def _series(arrays: Mapping[str, np.ndarray], source: str, axes: str | None) -> Table:
    """The table of an archive whose ``X`` holds series."""
    X, axes = arrays["X"], _axes_of(arrays, source, axes)
    if X.dtype.kind not in "fiu" or 0 in X.shape:
        raise DataError(f"{source}: X must hold series (rows, times, channels), but is {X.dtype} of shape {X.shape}.")
    if axes is None:
        give = '--axes nct or --axes ntc on the command line, or a text axes in the file (numpy.savez(..., axes="nct"))'
        axes = longer_axis_is_time(X.shape, f"{source}: X", give)
    lengths = arrays.get("lengths")
    if lengths is None:
        series = Series.from_padded(X, axes)
    else:
        if lengths.shape != (len(X),) or lengths.dtype.kind not in "iu" or not (lengths >= 1).all():
            raise DataError(f"{source}: lengths must be a whole number above 0 for each of the {len(X)} series.")
        turned = X.transpose(0, 2, 1) if axes == "nct" else X
        cut = [row[:length] for row, length in zip(turned, lengths.tolist(), strict=True)]
        series = Series.from_array(cut, "ntc")
    targets = {name: a for name, a in arrays.items() if a.shape == (len(X),) and name not in ("lengths", "X")}
    frame = column_of("series", series.items.tolist())
    return Table(frame, source, targets, usual_target(targets), roles={"series": "series"})


def _axes_of(arrays: Mapping[str, np.ndarray], source: str, requested_axes: str | None) -> str | None:
    """The order of the axes as it was given, or as the archive says."""
    stored_axes = str(arrays["axes"]) if "axes" in arrays and arrays["axes"].shape == () else None
    if stored_axes is not None and stored_axes not in AXES:
        raise DataError(f"{source}: the text axes must be one of {', '.join(AXES)}, but is {stored_axes!r}.")
    if stored_axes is not None and requested_axes not in (None, stored_axes):
        raise DataError(
            f"{source} states the axes {stored_axes!r}, but {requested_axes!r} was requested; leave one of them out."
        )
    return requested_axes or stored_axes
