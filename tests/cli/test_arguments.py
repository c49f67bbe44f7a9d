"""The options that commands have in common: said once, and the same in each."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from typer.models import OptionInfo

from mercer.cli import app
from mercer.cli.arguments import fit_options, means_options, predict_options, use_options, with_options


def test_a_command_has_its_own_parameters_among_the_common_ones() -> None:
    def common(first: int, second: int = 2) -> tuple[int, int]:
        return first, second

    given: list[Any] = []

    @with_options(common, before="second")
    def command(pair: tuple[int, int], own: str = "a") -> None:
        given.append((pair, own))

    parameters = inspect.signature(command).parameters
    assert [(name, parameter.default) for name, parameter in parameters.items()] == [
        ("first", inspect.Parameter.empty),
        ("own", "a"),
        ("second", 2),
    ]
    command(first=1, second=5, own="b")
    assert given == [((1, 5), "b")]


@pytest.mark.parametrize(
    ("commands", "common"),
    [
        ((app.fit, app.tune), fit_options),
        ((app.predict,), predict_options),
        ((app.evaluate,), use_options),
        ((app.report, app.plot), means_options),
    ],
)
def test_two_commands_have_the_same_common_options(commands: Any, common: Any) -> None:
    shared = inspect.signature(common, eval_str=True).parameters
    for command in commands:
        parameters = inspect.signature(command).parameters
        assert {name: parameters[name] for name in shared} == dict(shared)


@pytest.mark.parametrize("command", [info.callback for info in app.app.registered_commands], ids=lambda c: c.__name__)
def test_an_option_whose_metavar_is_its_name_is_named(command: Any) -> None:
    # Typer 0.27 takes the name of an option from its metavar where they are the same, as in --SEED.
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        for option in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                assert isinstance(option.default, str) and option.default.startswith("--"), name
