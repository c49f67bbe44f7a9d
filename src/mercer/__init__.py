"""Mercer: kernel methods for Python. Any kernel, any learner, any scale, each answer with its certificate.

Names are loaded when they are first used (PEP 562), so that ``import mercer`` is quick. Which there are, and where, is
read from the imports of the stub beside this file, as type checkers do.
"""

import importlib
import re
from typing import Any

__version__ = "0.1.0"

_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import (?:\(\s+)?(\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    if _HOME[name] == "mercer":
        return importlib.import_module(f"mercer.{name}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
