"""The pages of reference that are written by the code they describe: public names, and the command line."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import mercer
from mercer.cli.app import app
from stage import write


def modules() -> list[ModuleType]:
    """The public modules, the package itself first."""
    names = [name for name in mercer.__all__ if inspect.ismodule(getattr(mercer, name))]
    return [mercer, *(importlib.import_module(f"mercer.{name}") for name in names)]


def public_names(module: ModuleType) -> list[str]:
    """The classes and functions that a module offers."""
    return [n for n in module.__all__ if inspect.isclass(v := getattr(module, n)) or inspect.isfunction(v)]


def module_page(module: ModuleType) -> str:
    """A page that lists the names of a module, each with a page of its own; those of ``mercer`` itself only there."""
    title = f"``{module.__name__}``"
    lines = [title, "=" * len(title), "", inspect.cleandoc(module.__doc__ or ""), ""]
    lines += [f".. py:module:: {module.__name__}", f".. currentmodule:: {module.__name__}", ""]
    names_here = public_names(module)
    also = [n for n in names_here if module is not mercer and n in mercer.__all__]
    if also:
        lines += ["Also here: " + ", ".join(f":obj:`mercer.{n}`" for n in also) + ".", ""]
    for heading, wanted in (("Classes", inspect.isclass), ("Functions", inspect.isfunction)):
        names = sorted((n for n in names_here if n not in also and wanted(getattr(module, n))), key=str.lower)
        if names:
            lines += [
                heading,
                "-" * len(heading),
                "",
                ".. autosummary::",
                "   :toctree: names",
                "   :nosignatures:",
                "",
            ]
            lines += [*(f"   {name}" for name in names), ""]
    return "\n".join(lines)


def _index(pages: list[tuple[str, ModuleType]]) -> str:
    """The page that lists the modules."""
    lines = ["# API", "", "Every public name, with its formula, shapes, defaults, errors and an example.", ""]
    lines += ["| module | |", "|---|---|"]
    for page, module in pages:
        lines.append(
            f"| [`{module.__name__}`]({page}.rst) | {inspect.cleandoc(module.__doc__ or '').splitlines()[0]} |"
        )
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *(page for page, _ in pages), "```", ""])


def write_generated(folder: Path) -> set[Path]:
    """Write the pages of the public modules with their index, and of the command line; return the files."""
    pages = [("main" if module is mercer else module.__name__.removeprefix("mercer."), module) for module in modules()]
    texts = {f"api/{page}.rst": module_page(module) for page, module in pages}
    texts |= {"api/index.md": _index(pages), "command_line.md": command_line()}
    for name, text in texts.items():
        write(folder / name, text)
    return {folder / name for name in texts}


def _option(parameter: Any) -> str:
    """A row of a table: the names of an option or argument, its help, and its default."""
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name.upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    words = " ".join((parameter.help or "").split()).replace("|", "\\|")
    default = parameter.default
    shown = isinstance(default, (int, float, str)) and not isinstance(default, bool) and "default" not in words
    return f"| {names} | {words}{f' Default: `{default}`.' if shown else ''} |"


def command_line() -> str:
    """The page of the command line, from the commands themselves."""
    group = typer.main.get_command(app)
    lines = ["# Command line", "", group.help or "", "", "`mercer --help` and `mercer COMMAND --help` print the same."]
    lines += ["The [guide](guide/command_line.md) shows the commands at work.", ""]
    lines += ["| option of all commands | |", "|---|---|", *(_option(p) for p in group.params), ""]
    for name, command in group.commands.items():
        lines += [f"## mercer {name}", "", inspect.cleandoc(command.help or ""), ""]
        lines += ["| argument or option | |", "|---|---|", *(_option(p) for p in command.params), ""]
        examples = [line for line in (command.epilog or "").splitlines() if line.startswith("mercer ")]
        if examples:
            lines += ["```text", *examples, "```", ""]
    return "\n".join(lines)
