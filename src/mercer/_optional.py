"""The one gate to optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

from mercer._errors import MissingDependencyError

_EXTRA = {
    "dask": "dask",
    "jinja2": "report",
    "matplotlib": "plots",
    "networkx": "graphs",
    "pandas": "tables",
    "pyarrow": "tables",
    "python_calamine": "workbooks",
    "rich": "cli",
    "typer": "cli",
}


def optional(name: str, purpose: str) -> ModuleType:
    """Import the optional module ``name``, or say which extra brings it and what it is needed for.

    >>> optional("math", "an example").sqrt(4.0)
    2.0
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = _EXTRA.get(package, "all")
        raise MissingDependencyError(
            f"{purpose} needs the package {package!r}, which is not installed. Install it with pip install "
            f"'mercer[{extra}]'."
        ) from error
