"""Every public docstring describes every parameter, in the order of the signature."""

import enum
import functools
import inspect
import re
import textwrap
from pathlib import Path

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import mercer

# No docstring; a parameter that is not described; a description of no parameter; another order than the signature's.
CODES = ("GL08", "PR01", "PR02", "PR03")


def public_names():
    """``{name: class or function}`` for what ``__all__`` of the package and of its public modules names."""
    named = {}
    for name in mercer.__all__:
        item = getattr(mercer, name)
        within = {f"{name}.{n}": getattr(item, n) for n in item.__all__} if inspect.ismodule(item) else {name: item}
        for path, value in within.items():
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("mercer."):
                named.setdefault(value, path)
    return {path: value for value, path in named.items()}


def definitions(cls):
    """``{name: definitions}`` of the public methods and properties that Mercer defines, the one in use first."""
    names = {name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}
    entries = {}
    for name in sorted(names):
        owners = [base for base in cls.__mro__ if name in vars(base)]
        if owners[0].__module__.startswith("mercer.") and hasattr(vars(owners[0])[name], "__get__"):
            entries[name] = [plain(vars(base)[name]) for base in owners if base.__module__.startswith("mercer.")]
    return entries


def plain(member):
    """The function of a class method or static method; other members as they are."""
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def parameters(member):
    return list(inspect.signature(member).parameters) if inspect.isfunction(member) else []


def documented(overrides):
    """The definition whose docstring counts: an override without one has that of its base, if their parameters agree.

    ``help`` and ``inspect.getdoc`` show it, and numpydoc does not.
    """
    first = overrides[0]
    return next((m for m in overrides if m.__doc__ and parameters(m) == parameters(first)), first)


@functools.cache
def complaints(item):
    # The members of an enumeration are not made by calls.
    codes = CODES[:1] if inspect.isclass(item) and issubclass(item, enum.Enum) else CODES
    return [f"{code} {message}" for code, message in validate(get_doc_object(item))["errors"] if code in codes]


PUBLIC = public_names()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_documented(name):
    item = PUBLIC[name]
    problems = [f"{name}: {message}" for message in complaints(item)]
    if inspect.isclass(item):
        for member, overrides in definitions(item).items():
            problems += [f"{name}.{member}: {message}" for message in complaints(documented(overrides))]
    assert not problems, "\n".join(problems)


# From a rule to the same rule before a blank line.
TABLE = re.compile(r"^( *)(=+(?: +=+)+|\+[-+]+\+)\n(?:.*\n)*?\1\2\n(?=\n)", re.M)


def tables(text):
    """The tables of docstrings, with rules of ``=`` or in a grid."""
    return [textwrap.dedent(found.group()) for found in TABLE.finditer(text)]


def malformed(table):
    """What docutils, by which the site is made, says against a table."""
    settings = {"report_level": 5, "halt_level": 6}
    said = publish_doctree(table, settings_overrides=settings).findall(nodes.system_message)
    return [message.astext() for message in said if "table" in message.astext()]


def test_tables_are_tables():
    sources = Path(mercer.__file__).parent.rglob("*.py")
    found = [table for path in sources for table in tables(path.read_text(encoding="utf-8"))]
    assert len(found) >= 3
    assert [malformed(table) for table in found if malformed(table)] == []


def test_a_malformed_table_is_seen():
    (table,) = tables("Text.\n\n    ===  ===\n    a    b\n    ===  ===\n    long text\n    ===  ===\n\nText.\n")
    assert table.startswith("===") and "Malformed table" in malformed(table)[0]


class Base:
    def documented(self, x):
        """Return x.

        Parameters
        ----------
        x : float
        """

    def undocumented(self, x):
        """Return x."""


class Override(Base):
    def documented(self, x):
        return x

    def undocumented(self, x, y):
        return x


def swapped(a, b):
    """Return both.

    Parameters
    ----------
    b, a : float
    """


def renamed(a):
    """Return it.

    Parameters
    ----------
    a, b : float
    """


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (Override.documented, "GL08"),
        (Base.undocumented, "PR01"),
        (renamed, "PR02"),
        (swapped, "PR03"),
        (documented([Override.undocumented, Base.undocumented]), "GL08"),
    ],
)
def test_what_is_missing_is_found(item, code):
    assert [complaint.split()[0] for complaint in complaints(item)] == [code]


def test_an_override_has_the_docstring_of_its_base():
    assert documented([Override.documented, Base.documented]) is Base.documented
