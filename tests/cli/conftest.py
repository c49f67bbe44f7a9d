"""What all tests of the command line share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import typer.main


@pytest.fixture(scope="session", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """typer makes the commands and their options anew at each call, which is most of what a short one takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield
