"""The options that commands have in common: said once, and the same in each."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import typer
from typer.models import OptionInfo

from mercer.cli import app
from mercer.cli.arguments import with_options
from mercer.cli.options import Means, Read


@dataclass(frozen=True, kw_only=True)
class Common:
    first: Annotated[int, typer.Option()] = 2
    untyped: str = "none"


@dataclass(frozen=True, kw_only=True)
class Own(Common):
    needed: Annotated[str, typer.Option()]
    several: Annotated[list[str], typer.Option()] = field(default_factory=list)
    read: Annotated[float | None, Read(float), typer.Option()] = 0.5


def test_a_command_has_the_fields_of_its_options() -> None:
    given: list[Any] = []

    @with_options(Own)
    def command(options: Own) -> None:
        given.append(options)

    parameters = inspect.signature(command).parameters
    assert [(name, parameter.default) for name, parameter in parameters.items()] == [
        ("needed", inspect.Parameter.empty),
        ("several", None),
        ("read", None),
        ("first", 2),
    ]
    command(needed="a", several=None, read="3", first=5)
    command(needed="b", several=["c"], read=None, first=2)
    assert given == [Own(needed="a", read=3.0, first=5), Own(needed="b", several=["c"])]


def said(command: Any) -> dict[str, Any]:
    parameters = inspect.signature(command).parameters
    return {name: (one.default, vars(one.annotation.__metadata__[0])) for name, one in parameters.items()}


@pytest.mark.parametrize("command", [app.fit, app.tune, app.predict, app.evaluate, app.explain, app.report, app.plot])
def test_commands_have_the_same_common_options(command: Any) -> None:
    # What is printed where mercer predict is quiet is said there.
    differ = {"quiet"} if command is app.predict else set()
    shared = {name: its for name, its in said(with_options(Means)(print)).items() if name not in differ}
    assert {name: said(command)[name] for name in shared} == shared


@pytest.mark.parametrize("command", [info.callback for info in app.app.registered_commands], ids=lambda c: c.__name__)
def test_an_option_whose_metavar_is_its_name_is_named(command: Any) -> None:
    # Typer 0.27 takes the name of an option from its metavar where they are the same, as in --SEED.
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        for option in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                assert isinstance(option.default, str) and option.default.startswith("--"), name
