"""From a dataclass of options to the parameters of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

from typer.models import OptionInfo

from mercer.cli.options import Read


def with_options(options: type) -> Callable[[Callable[[Any], Any]], Callable[..., Any]]:
    """Give a command the fields of a dataclass as parameters; its own is the dataclass that they make.

    Arguments come first, and then the options that only this dataclass has. Fields without ``typer.Option`` or
    ``typer.Argument`` are not typed.

    Parameters
    ----------
    options : type
        Such as :class:`mercer.cli.options.FitOptions`.

    Returns
    -------
    callable
        A decorator of commands.
    """
    hints = get_type_hints(options, include_extras=True)
    first = dict[str, int]()
    for depth, base in enumerate(reversed(options.__mro__)):
        first |= {name: depth for name in inspect.get_annotations(base) if name not in first}
    typed = [one for one in fields(options) if hasattr(hints[one.name], "__metadata__")]
    is_option = {one.name: isinstance(hints[one.name].__metadata__[-1], OptionInfo) for one in typed}
    typed.sort(key=lambda one: (is_option[one.name], -first[one.name] * is_option[one.name]))
    parameters = [_parameter(one, hints[one.name]) for one in typed]
    reads = {one.name: mark.read for one in typed for mark in hints[one.name].__metadata__ if isinstance(mark, Read)}

    def give(command: Callable[[Any], Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**given: Any) -> Any:
            known = {name: value for name, value in given.items() if value is not None}
            return command(options(**known | {name: reads[name](known[name]) for name in reads.keys() & known}))

        # Typer reads the one, and for the names of types the other.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return give


def _parameter(one: Field[Any], hint: Any) -> inspect.Parameter:
    """A field as a parameter: None stands for what only the dataclass can make."""
    *marks, option = hint.__metadata__
    is_list = one.default_factory is not MISSING
    kind = str | None if marks else hint.__origin__ | None if is_list else hint.__origin__
    default = None if is_list or marks else inspect.Parameter.empty if one.default is MISSING else one.default
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )
