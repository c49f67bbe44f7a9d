"""Model files: one file that contains a fitted model and never runs code when it is opened.

Names are loaded on first use, so that a look into a file needs none of the classes that it may contain.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["FORMAT_VERSION", "load", "save"]

if TYPE_CHECKING:
    from mercer.persistence.model_file import FORMAT_VERSION as FORMAT_VERSION
    from mercer.persistence.model_file import load as load
    from mercer.persistence.model_file import save as save


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mercer.persistence' has no attribute {name!r}")
    value = getattr(importlib.import_module("mercer.persistence.model_file"), name)
    globals()[name] = value
    return value
