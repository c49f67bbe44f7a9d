"""Model files: one file that contains a fitted model and never runs code when it is opened.

Arrays are stored in the safetensors format, everything else as JSON in the metadata of the same file. Only classes on a
list can be stored: Mercer's kernels and estimators, scikit-learn's common transformers, arrays and plain values. The
idea of a list of trusted types instead of pickle comes from skops (https://skops.readthedocs.io).
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import sklearn

from mercer import __version__
from mercer._errors import MercerWarning, ModelFileError
from mercer.persistence import container
from mercer.persistence.container import FORMAT_VERSION
from mercer.persistence.decode import Decoder
from mercer.persistence.encode import Encoder
from mercer.persistence.registry import registry

__all__ = ["FORMAT_VERSION", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to one file, atomically.

    The model may be a fitted or unfitted estimator, a pipeline of scikit-learn's transformers with one, a kernel, or a
    certificate. The loaded model predicts bit for bit the same. Either the whole file is written or nothing is: a
    failure or Ctrl-C leaves an existing file unchanged.

    Parameters
    ----------
    model : object
        The object to save. It is not changed.
    path : str or path-like
        Where to write. The directory must exist; a file of that name is replaced.

    Raises
    ------
    ModelFileError
        If the model contains something that a model file cannot store, such as a Python function or an object of an
        unknown class (the message names the attribute), or if the file cannot be written. Nothing is written then.

    See Also
    --------
    load : The inverse.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.kernels import RBF
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(0.5 * RBF(2.0), Path(directory) / "kernel.mercer")
    ...     load(Path(directory) / "kernel.mercer")
    0.5 * RBF(2.0)
    """
    target = _path(path)
    encoder = Encoder()
    root = encoder.child(model, type(model).__name__)
    table = {"root": root, "nodes": encoder.nodes}
    try:
        # Only a model that can be read again is written. The arrays are not copied for this check.
        Decoder(encoder.arrays, __version__, encoder.known).decode(table)
    except ModelFileError as error:
        name = type(model).__name__
        raise ModelFileError(
            f"this {name} is not saved, because it could not be loaded again: {error.finding or error}. Attributes "
            "that were changed after the fit must be consistent with the others: change them back, or fit again."
        ) from error
    texts = {
        "format_version": str(FORMAT_VERSION),
        "mercer_version": __version__,
        "sklearn_version": sklearn.__version__,
        "model": json.dumps(table, separators=(",", ":"), allow_nan=False),
    }
    container.write(target, texts, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote.

    The checksum is verified before anything is built, and nothing in the file is ever executed. Arrays are read
    directly into their final memory: beyond the model itself, loading needs a fixed amount of memory and the text of
    the header.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    model : object
        Equal to the saved object.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is not a model file, is truncated, altered or of a newer version, contains a
        class that is not on the list, or has attributes that do not fit together.
    MemoryBudgetError
        If the arrays do not fit the memory budget.

    Warns
    -----
    MercerWarning
        If another version of scikit-learn wrote the file; the model is loaded nevertheless.
    """
    source = _path(path)
    try:
        texts, arrays = container.read(source)
        _check_versions(texts)
        table = container.parse_json(texts["model"], "table of objects")
        return Decoder(arrays, texts["mercer_version"], registry()).decode(table)
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from error


def _path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ModelFileError(f"{path!r} is not a file name; pass a path such as 'houses.mercer'.")
    return Path(text)


def _check_versions(texts: dict[str, str]) -> None:
    expected = {"format_version", "mercer_version", "sklearn_version", "model"}
    container.check_format(texts)
    if set(texts) != expected:
        container.malformed(f"its metadata are {sorted(texts)}")
    if texts["sklearn_version"] != sklearn.__version__:
        warnings.warn(
            f"the model was saved with scikit-learn {texts['sklearn_version'][:40]}, and {sklearn.__version__} "
            "is installed: check some predictions before you rely on it, or fit and save the model again.",
            MercerWarning,
            stacklevel=3,
        )
