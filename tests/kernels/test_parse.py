"""Kernel expressions: what is read, what is refused, and that every printed kernel reads back."""

from __future__ import annotations

import math
import time

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mercer import kernels
from mercer._errors import KernelSyntaxError
from mercer.kernels import RBF, Constant, Linear, Matern, Polynomial, exp
from mercer.kernels.parse import kernel_names, parse_kernel


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("RBF(2.0)", RBF(2.0)),
        ("  RBF()  ", RBF()),
        ("0.5*RBF(2.0) + Linear()", 0.5 * RBF(2.0) + Linear()),
        ("Linear() + 1", Linear() + 1.0),
        ("2 * 3 * RBF()", 6.0 * RBF()),
        ("RBF([1.0, 3])", RBF([1.0, 3.0])),
        ("RBF((1.0, 3))", RBF([1.0, 3.0])),
        ("RBF(length_scale=2)", RBF(2.0)),
        ("RBF.from_gamma(0.5)", RBF.from_gamma(0.5)),
        ("Matern(1.0, nu=inf)", Matern(1.0, nu=math.inf)),
        ("(Linear() + 1.0) ** 3", (Linear() + 1.0) ** 3),
        ("exp(Linear()) * RBF()", exp(Linear()) * RBF()),
        ("Linear() + RBF() * Linear() + 2.0", Linear() + RBF() * Linear() + 2.0),
        ("RBF(2.0).on([0, 'age'])", RBF(2.0).on([0, "age"])),
        ("Linear().normalized()", Linear().normalized()),
        ("RBF(2.0).fixed()", RBF(2.0).fixed()),
        ("(2.0 * RBF()).fixed('kernel.length_scale')", (2.0 * RBF()).fixed("kernel.length_scale")),
        ("RBF(2.0).bounded(length_scale=(0.1, 10.0))", RBF(2.0).bounded(length_scale=(0.1, 10.0))),
        (
            "(2.0 * RBF()).bounded(**{'kernel.length_scale': (0.1, 10)})",
            (2.0 * RBF()).bounded(**{"kernel.length_scale": (0.1, 10)}),
        ),
        ("Polynomial(degree=2, scale=0.5, offset=+1.0)", Polynomial(degree=2, scale=0.5, offset=1.0)),
        ("Sigmoid(1.0, -2.5)", kernels.Sigmoid(1.0, -2.5)),
    ],
)
def test_expression_reads_as_the_kernel_that_python_builds(text, kernel):
    assert parse_kernel(text) == kernel


@pytest.mark.parametrize("name", sorted(kernel_names()))
def test_every_kernel_can_be_named_and_printed(name):
    try:
        kernel = getattr(kernels, name)()
    except TypeError:
        pytest.skip("has parameters without defaults")
    assert parse_kernel(repr(kernel)) == kernel


positive = st.floats(1e-3, 1e3, allow_nan=False)
leaves = st.one_of(
    st.builds(RBF, positive),
    st.builds(RBF, st.lists(positive, min_size=2, max_size=4)),
    st.builds(Matern, positive, st.sampled_from([0.5, 1.5, math.inf])),
    st.builds(Polynomial, st.integers(1, 4), positive, positive),
    st.builds(Constant, positive),
    st.just(Linear()),
)


def _composites(inner):
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, a: c * a, positive, inner),
        st.builds(lambda a, e: a**e, inner, st.integers(1, 4)),
        st.builds(exp, inner),
        st.builds(lambda a: a.normalized(), inner),
        st.builds(lambda a, c: a.on(c), inner, st.lists(st.integers(0, 5) | st.text(), min_size=1, max_size=3)),
        st.builds(lambda a: a.fixed(), inner),
    )


@settings(max_examples=50, deadline=None)
@given(st.recursive(leaves, _composites, max_leaves=6))
def test_what_a_kernel_prints_reads_back_as_an_equal_kernel(kernel):
    assert parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RBFF(2.0)", ["column 1", "no kernel 'RBFF'", "did you mean RBF?"]),
        ("Linear() + maternn(1.0)", ["column 12", "'maternn'", "Matern"]),
        ("RBF", ["write RBF()"]),
        ("RBF + Linear()", ["column 1", "write RBF()"]),
        ("RBF(", ["column 4", "never closed"]),
        ("RBF(-1)", ["column 1", "length_scale", "above 0", "-1.0"]),
        ("RBF(lenght_scale=2)", ["no parameter lenght_scale", "RBF(length_scale=2)"]),
        ("RBF(length_scale=1, length_scale=2)", ["column 34", "length_scale is given twice"]),
        ("RBF(1, 2, 3)", ["too many positional arguments", "length_scale"]),
        ("RBF() - Linear()", ["difference of kernels is not a kernel"]),
        ("-RBF()", ["minus sign"]),
        ("-2 * RBF()", ["above 0", "-2"]),
        ("RBF() / 2", ["no division"]),
        ("RBF() ** RBF()", ["number on its right"]),
        ("RBF().scaled_by(len)", ["takes a function", "in Python"]),
        ("from_function(len)", ["takes a function"]),
        ("RBF().centered(0)", ["takes data"]),
        ("RBF().normalised()", ["did you mean normalized"]),
        ("RBF.normalized()", ["write RBF(...).normalized"]),
        ("RBF.from_nothing(1)", ["no constructor 'from_nothing'", "from_gamma"]),
        ("exp(2)", ["exp takes a kernel"]),
        ("True * RBF()", ["neither a kernel nor a number"]),
        ("RBF(1j)", ["neither a number nor a text"]),
        ("2.0", ["not a kernel"]),
        ("", ["empty"]),
        ("RBF().bounded(x=(1, 2))", ["no parameter 'x'"]),
        ("RBF().bounded(**[1])", ["names and values in braces"]),
    ],
)
def test_errors_say_what_and_where(text, words):
    with pytest.raises(KernelSyntaxError) as caught:
        parse_kernel(text)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__",
        "RBF().__class__",
        "RBF.__subclasses__()",
        "RBF().get_params()",
        "[k for k in ()]",
        "lambda: RBF()",
        "RBF() if 1 else 2",
        "(k := RBF())",
        "f'{RBF()}'",
        "RBF(*[1.0])",
        "RBF(**{1: 2})",
        "open('x')",
        "exec('1')",
        "RBF()[0]",
        "RBF(); RBF()",
        "k = RBF()",
        "RBF()\0",
        "b'x'",
        "...",
    ],
)
def test_anything_but_the_algebra_is_refused(text):
    with pytest.raises(KernelSyntaxError):
        parse_kernel(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "RBF()" + ")" * 5000,
        "-" * 20_000 + "1",
        "exp(" * 150 + "Linear()" + ")" * 150,
        "9" * 20_000 + "*RBF()",
        "9**9**9**9 * RBF()",
        "RBF() ** 1e999",
        "x" * 100_000,
        "[" * 190 + "]" * 190,
        "RBF()" + ".normalized()" * 2000,
    ],
)
def test_hostile_text_is_refused_quickly(text):
    started = time.perf_counter()
    with pytest.raises(KernelSyntaxError):
        parse_kernel(text)
    # Milliseconds, unless something grows faster than the text.
    assert time.perf_counter() - started < 20.0


def test_a_long_sum_is_no_deep_expression():
    kernel = parse_kernel(" + ".join(f"RBF({i}.5)" for i in range(1, 400)))
    assert len(kernel.children()) == 399


def test_text_is_needed():
    with pytest.raises(KernelSyntaxError, match="is text, not float"):
        parse_kernel(2.0)
