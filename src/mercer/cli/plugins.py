"""User modules that register user-defined classes, and the models among them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from mercer._errors import ParameterError


def import_modules(names: Sequence[str]) -> None:
    """Import modules by name, also from the current folder, and offer the models that they register.

    Raises
    ------
    ParameterError
        If a module does not exist, fails, or registers a model under a name that is taken.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    for name in names:
        try:
            importlib.import_module(name.removesuffix(".py"))
        # A module of a user may raise anything.
        except Exception as error:
            missing = isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]
            what = "there is none" if missing else f"{type(error).__name__}: {error}"
            raise ParameterError(
                f"--import {name}: {what}; give the name of a module as Python's import takes it, in the current "
                "folder or installed."
            ) from error
