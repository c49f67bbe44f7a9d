"""Kernel expressions of every kind: a kernel or a documented error, in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer._errors import KernelSyntaxError, MercerError
from mercer.kernels import Kernel, parse_kernel
from mercer.kernels.parse import kernel_names

NAMES = sorted(kernel_names())
NUMBERS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "2.0",
        "1e999",
        "-1e999",
        "1e-999",
        "5e-324",
        "nan",
        "inf",
        "True",
        "None",
        "0x10",
        "1_000",
        "1j",
        "9" * 400,
        "9" * 5000,
        "'a'",
        "''",
        "[1.0, 2.0]",
        "[]",
        "[[1.0]]",
        "(1,)",
        "['x', 0]",
        "[-1]",
        "{}",
        "b'a'",
    ]
)
FIELDS = st.sampled_from(
    [
        "length_scale",
        "degree",
        "tuning",
        "scale",
        "offset",
        "kernel",
        "terms",
        "factor",
        "period",
        "nu",
        "columns",
        "length",
        "decay",
        "self",
        "cls",
        "__class__",
        "bounds",
        "names",
        "gamma",
        "order",
        "weights",
        "left.factor",
    ]
)
ARGUMENTS = st.lists(
    st.one_of(
        NUMBERS,
        st.tuples(FIELDS, NUMBERS).map("=".join),
        st.tuples(FIELDS, NUMBERS).map(lambda p: f"**{{'{p[0]}': {p[1]}}}"),
    ),
    max_size=3,
).map(", ".join)
CALLS = st.tuples(st.sampled_from(NAMES), ARGUMENTS).map(lambda p: f"{p[0]}({p[1]})")


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    methods = st.sampled_from(
        ["on", "normalized", "fixed", "bounded", "centered", "with_theta", "from_gamma", "__init__"]
    )
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "*", "**", "-", "/", "@"]), st.one_of(parts, NUMBERS)).map(" ".join),
        st.tuples(parts, methods, ARGUMENTS).map(lambda p: f"{p[0]}.{p[1]}({p[2]})"),
        parts.map(lambda p: f"exp({p})"),
        st.tuples(st.sampled_from(NAMES), parts).map(lambda p: f"{p[0]}({p[1]})"),
    )


EXPRESSIONS = st.recursive(st.one_of(CALLS, st.sampled_from(NAMES), NUMBERS), _larger, max_leaves=6)


# What a text may have; a kernel's own has its parameters in it too, which a long sum may leave out.
LONGEST = 50_000


def reads_or_says_why(text: str) -> None:
    try:
        kernel = parse_kernel(text)
    except MercerError as error:
        assert str(error)
        return
    assert isinstance(kernel, Kernel)
    # What prints is read again, so that nothing was set that the text of a kernel cannot say.
    printed = repr(kernel)
    if len(printed) <= LONGEST:
        assert parse_kernel(printed) == kernel


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS)
def test_expressions(text):
    reads_or_says_why(text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=80) | st.text("RBFLinear()+*.,[]0123e' \n", max_size=80))
def test_any_text(text):
    reads_or_says_why(text)


@pytest.mark.slow
@settings(max_examples=1_700, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS | st.text(max_size=200))
def test_many_texts(text):
    reads_or_says_why(text)


LONG = [
    "(" * 10**6,
    "(" * 40_000,
    "RBF(" * 10_000,
    "-" * 49_000 + "1",
    "RBF(" + "9" * 10**6 + ")",
    "RBF(" + "9" * 40_000 + ")",
    "+".join(["RBF()"] * 8_000),
    "*".join(["RBF()"] * 1_001),
    "RBF()" + ".normalized()" * 4_000,
    "[" * 200 + "]" * 200,
    "Linear()" + "**2" * 16_000,
    "\0",
    "RBF()\0",
    "\ud800",
    "RBF(\n" * 9_000,
]


@pytest.mark.parametrize("text", LONG, ids=[f"{text[:8]!r}{len(text)}" for text in LONG])
def test_long_and_deep_texts_end_soon(text):
    start_time = time.perf_counter()
    reads_or_says_why(text)
    assert time.perf_counter() - start_time < 20


@pytest.mark.parametrize(
    "text", ["RBF(tuning=1)", "RBF(1.0, tuning=())", "RBF(**{'tuning': 1})", "Spectrum(3, tuning=2)"]
)
def test_only_public_parameters_are_parsed(text):
    with pytest.raises(KernelSyntaxError, match="tuning is not a parameter; it takes"):
        parse_kernel(text)
