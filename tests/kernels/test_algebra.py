"""How kernels join, print, compare, and hold their parameters."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from mercer import kernels as k
from mercer._errors import ParameterError
from mercer.gram import Gram
from mercer.kernels import Kernel, program
from mercer.kernels.parse import parse_kernel
from mercer.kernels.program import Program
from mercer.kernels.statistics import SquaredDistance
from mercer.loops import programs

X = np.random.default_rng(0).normal(size=(8, 3))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (0.7 * k.RBF([1.0, 3.0]) + k.Linear(), "0.7 * RBF([1.0, 3.0]) + Linear()"),
        ((k.RBF() + k.Linear()) * k.Matern(), "(RBF(1.0) + Linear()) * Matern(1.0)"),
        (2 * (3 * k.RBF()), "6.0 * RBF(1.0)"),
        (k.RBF() * 2 * k.Linear() * 4, "8.0 * RBF(1.0) * Linear()"),
        (1 + k.RBF() + 2, "3.0 + RBF(1.0)"),
        (k.Constant(2.0) * k.Constant(3.0), "Constant(6.0)"),
        (k.Constant(2.0) + 3, "Constant(5.0)"),
        ((k.RBF() ** 2) ** 3, "(RBF(1.0) ** 2) ** 3"),
        ((2 * k.RBF()) ** 2.5, "(2.0 * RBF(1.0)) ** 2.5"),
        (k.RBF() ** np.float64(2), "RBF(1.0) ** 2"),
        (k.exp(k.Linear() + 1), "exp(Linear() + 1.0)"),
        ((k.RBF() + k.Linear()).normalized(), "(RBF(1.0) + Linear()).normalized()"),
        ((2 * k.RBF()).on(["a", 1]), "(2.0 * RBF(1.0)).on(['a', 1])"),
        (k.RBF().on("a"), "RBF(1.0).on(['a'])"),
        (k.RBF().on(np.array([2, 0])), "RBF(1.0).on([2, 0])"),
        (k.Polynomial(2.0), "Polynomial(2)"),
        (k.Polynomial(3, offset=0.5), "Polynomial(3, offset=0.5)"),
        (k.Matern(nu=np.inf), "Matern(1.0, nu=inf)"),
        (k.NegativeDistance(np.float32(1.5)), "NegativeDistance(1.5)"),
        (k.RBF(2.0).fixed(), "RBF(2.0).fixed('length_scale')"),
        (k.RBF(2.0).bounded(length_scale=(1, 5)), "RBF(2.0).bounded(length_scale=(1.0, 5.0))"),
        ((2 * k.RBF()).fixed("factor") * k.Linear(), "(2.0 * RBF(1.0)).fixed('factor') * Linear()"),
        (k.RBF([1, 2]).fixed("length_scale[1]"), "RBF([1.0, 2.0]).fixed('length_scale[1]')"),
        (
            k.RBF([1, 2]).bounded(**{"length_scale[1]": (1, 5)}),
            "RBF([1.0, 2.0]).bounded(**{'length_scale[1]': (1.0, 5.0)})",
        ),
        (k.Constant(2.0).fixed() + k.RBF() + 1, "Constant(2.0).fixed('value') + RBF(1.0) + 1.0"),
    ],
)
def test_prints_as_typed_and_what_it_prints_builds_it(kernel: Kernel, text: str) -> None:
    assert repr(kernel) == text
    assert parse_kernel(text) == kernel


def test_order_of_saying_does_not_matter() -> None:
    one = k.RationalQuadratic().bounded(alpha=(1, 2)).fixed("length_scale")
    two = k.RationalQuadratic().fixed("length_scale").bounded(alpha=(1, 2))
    assert one == two
    assert hash(one) == hash(two)
    assert parse_kernel(repr(one)) == one


def test_equality_and_hash_are_by_value() -> None:
    assert k.RBF(2) == k.RBF(2.0) == k.RBF(np.float64(2))
    assert k.RBF([1, 2]) == k.RBF((1.0, 2.0)) == k.RBF(np.array([1, 2]))
    assert k.RBF(1.0) != k.RBF([1.0])
    assert k.RBF(1.0) != k.Matern(1.0, nu=np.inf)
    assert k.RBF(1.0) != k.RBF(1.0).fixed()
    assert k.Linear() + k.RBF() != k.RBF() + k.Linear()
    assert len({k.RBF(2), k.RBF(2.0), k.Linear(), k.Linear()}) == 2
    assert k.RBF().centered(X) == k.RBF().centered(X.tolist())
    assert k.RBF().centered(X) != k.RBF().centered(X + 1)
    assert k.RBF() != 1.0


def test_kernels_never_change() -> None:
    kernel = 2.0 * k.RBF([1.0, 2.0]) + k.Linear().centered(X)
    text = repr(kernel)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.terms = ()  # type: ignore[attr-defined]
    reference = kernel.terms[1].reference  # type: ignore[attr-defined]
    for centred in (reference, copy.deepcopy(reference), pickle.loads(pickle.dumps(reference))):
        with pytest.raises(ValueError, match="read-only"):
            centred.array[0, 0] = 7.0
    kernel.with_params(left__factor=5.0)
    kernel.set_params(left__factor=5.0)
    kernel.fixed()
    kernel.with_theta(kernel.theta + 1)
    assert repr(kernel) == text


def test_centring_takes_a_copy_of_its_rows() -> None:
    reference = X.copy()
    kernel = k.Linear().centered(reference)
    before = kernel(X)
    reference += 100
    np.testing.assert_array_equal(kernel(X), before)


def test_numpy_numbers_join_and_arrays_do_not() -> None:
    assert np.float32(2) * k.RBF() == 2.0 * k.RBF()
    assert k.RBF() * np.int64(2) == 2.0 * k.RBF()
    assert np.float64(2) + k.RBF() == 2.0 + k.RBF()
    for other in (np.ones(2), "2", None, True, 1j):
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
            other * k.RBF()  # type: ignore[operator]


def test_sum_of_a_list() -> None:
    assert sum([k.RBF(), k.Linear()]) == k.RBF() + k.Linear()
    assert sum([k.RBF()]) == k.RBF()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: k.RBF() - k.RBF(), "a difference of kernels is not a kernel"),
        (lambda: 1 - k.RBF(), "a difference of kernels is not a kernel"),
        (lambda: k.RBF() ** 0, "exponent must be a finite number above 0, but is 0"),
        (lambda: k.RBF() ** -1, "exponent must be a finite number above 0, but is -1"),
        (lambda: k.RBF() ** "2", "exponent must be a finite number above 0, but is '2'"),
        (lambda: k.RBF() ** k.RBF(), "exponent must be a finite number"),
        (lambda: -2 * k.RBF(), "multiplied by, finite numbers above 0, not -2"),
        (lambda: 0.0 * k.RBF(), "not 0.0:"),
        (lambda: k.RBF() + -1.0, "not -1.0:"),
        (lambda: float("nan") * k.RBF(), "not nan:"),
        (lambda: float("inf") * k.RBF(), "not inf:"),
        (lambda: k.RBF(0.0), "RBF: length_scale must be finite and above 0, but is 0.0"),
        (lambda: k.RBF(1e-200), "must lie between 1e-150 and 1e\\+150, .* but is 1e-200"),
        (lambda: k.RBF(float("nan")), "length_scale must be finite"),
        (lambda: k.RBF("wide"), "length_scale must be a number, but is 'wide'"),
        (lambda: k.RBF(None), "length_scale must be a number, but is None"),
        (lambda: k.RBF(True), "length_scale must be a number, but is True"),
        (lambda: k.RBF(1j), "length_scale must be a number"),
        (lambda: k.RBF([]), r"a list with one number a column, but is \[\]"),
        (lambda: k.RBF([[1.0]]), "a list with one number a column"),
        (lambda: k.RBF([[1.0], [1.0, 2.0]]), "a list with one number a column"),
        (lambda: k.RBF([1.0, None]), "a list with one number a column"),
        (lambda: k.RBF([1.0, "a"]), "a list with one number a column"),
        (lambda: k.RBF([1.0, -2.0]), "above 0, but is -2.0"),
        (lambda: k.Periodic([1.0, 2.0]), r"Periodic: length_scale must be a number, but is \[1.0, 2.0\]"),
        (lambda: k.RBF.from_gamma(0), "gamma must be a finite number above 0, but is 0"),
        (lambda: k.RBF.from_gamma("scale"), "gamma must be a finite number above 0"),
        (lambda: k.Matern(nu=0), "nu must be a number above 0"),
        (lambda: k.Matern(nu=float("nan")), "nu must be a number above 0"),
        (lambda: k.Matern(nu="half"), "nu must be a number above 0"),
        (lambda: k.Polynomial(0), "degree must be a whole number of at least 1, but is 0"),
        (lambda: k.Polynomial(1.5), "degree must be a whole number"),
        (lambda: k.Polynomial("two"), "degree must be a whole number"),
        (lambda: k.Polynomial(float("inf")), "degree must be a whole number"),
        (lambda: k.Polynomial(True), "degree must be a whole number"),
        (lambda: k.Polynomial(2, offset=-1.0), "offset must be finite and at least 0, but is -1.0"),
        (lambda: k.Polynomial(2, scale=0.0), "scale must be finite and above 0"),
        (lambda: k.Sigmoid(float("inf")), "scale must be finite, but is inf"),
        (lambda: k.ArcCosine(3), "order must be 0, 1 or 2, but is 3"),
        (lambda: k.ArcCosine("one"), "order must be 0, 1 or 2"),
        (lambda: k.NegativeDistance(2.5), "exponent must be above 0 and at most 2, but is 2.5"),
        (lambda: k.NegativeDistance("one"), "exponent must be above 0 and at most 2"),
        (lambda: k.Constant(0), "value must be finite and above 0"),
        (lambda: k.White(-1), "variance must be finite and above 0"),
        (lambda: k.exp(2.0), "Exp takes a kernel, but got 2.0"),
        (lambda: k.Normalized(k.RBF), "Normalized takes a kernel, but got <class"),
        (lambda: k.RBF().on([]), "at least one column"),
        (lambda: k.RBF().on([1.5]), r"columns must be positions or names, but are \[1.5\]"),
        (lambda: k.RBF().on(None), "columns must be positions or names, but are None"),
        (lambda: k.RBF().on([True, False]), r"columns must be positions or names, but are \[True, False\]"),
        (lambda: k.RBF().on(slice(2)), "columns must be positions or names"),
        (lambda: k.RBF().scaled_by(2.0), r"scaled_by\(\) takes a function, but got 2.0"),
        (lambda: k.RBF().warped("tanh"), r"warped\(\) takes a function, but got 'tanh'"),
        (lambda: k.from_function(3), r"from_function\(\) takes a function, but got 3"),
        (lambda: k.from_function(len, definiteness="maybe"), "definiteness must be .* but is 'maybe'"),
        (lambda: k.RBF().with_theta([1.0, 2.0]), r"must be 1 finite numbers \(length_scale\), but is \[1.0, 2.0\]"),
        (lambda: k.Linear().with_theta([1.0]), r"theta must be 0 finite numbers \(none\)"),
        (lambda: k.RBF().with_theta([float("nan")]), "theta must be 1 finite numbers"),
        (lambda: k.RBF().with_theta([1000.0]), "length_scale must be finite and above 0, but is inf"),
        (lambda: k.RBF().with_theta([-1000.0]), "length_scale must be finite and above 0, but is 0.0"),
        (lambda: k.RBF().with_params(gamma=1.0), "has no parameter 'gamma'; it has length_scale"),
        (lambda: (k.RBF() + k.Linear()).with_params(terms=()), "has no parameter 'terms'; it has left, left__len"),
        (lambda: k.RBF().fixed("gamma"), "has no parameter 'gamma'; it has length_scale"),
        (lambda: k.Linear().fixed("scale"), "it has none"),
        (lambda: k.RBF([1, 2]).fixed("length_scale[2]"), r"has no parameter 'length_scale\[2\]'"),
        (lambda: (k.RBF() + k.Linear() + k.Matern()).fixed("terms"), "has no parameter 'terms'"),
        (lambda: k.RBF().bounded(length_scale=(2.0, 1.0)), r"finite with low < high, but are \(2.0, 1.0\)"),
        (lambda: k.RBF().bounded(length_scale=3.0), r"must be a pair \(low, high\), but are 3.0"),
        (lambda: k.RBF().bounded(length_scale=(0.0, 1.0)), "must be above 0, since it is tuned as a logarithm"),
        (lambda: k.RBF().bounded(length_scale=(1.0, float("inf"))), "must be finite"),
        (lambda: (2.0 * k.RBF()).bounded(**{"kernel.length_scale": (-1.0, 1.0)}), "must be above 0"),
        (lambda: k.as_kernel("rbff"), "there is no kernel 'rbff'; did you mean 'rbf'"),
        (lambda: k.as_kernel("zzz"), "there is no kernel 'zzz'; names are linear, poly"),
        (lambda: k.as_kernel(3), "kernel must be a name, a kernel or a function"),
        (lambda: k.as_kernel(k.RBF), r"kernel is the class RBF; pass a kernel, such as RBF\(\)"),
        (lambda: k.as_kernel("rbf", gamma="big"), "gamma must be a number, 'scale' or 'auto', but is 'big'"),
        (lambda: k.as_kernel("rbf", gamma=-1.0), "gamma must be a finite number above 0"),
        (lambda: k.as_kernel("rbf", gamma=0), "gamma must be a finite number above 0, 'scale' or 'auto', but is 0"),
        (lambda: k.as_kernel("linear", gamma=True), "gamma must be a finite number above 0.*is True"),
        (lambda: k.as_kernel("linear", degree=float("nan")), "degree must be a finite number of 0 or more"),
        (lambda: k.as_kernel("cosine", coef0=[1.0]), r"coef0 must be a finite number, but is \[1.0\]"),
        (lambda: k.as_kernel("rbf", gamma="scale"), "depends on the data, but there are none"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


# ---- parameters


def test_names_values_and_scales() -> None:
    kernel = 2.0 * k.RBF([1.0, 3.0]) + k.Sigmoid(0.5, offset=-1.0)
    assert [p.name for p in kernel.parameters] == [
        "left.factor",
        "left.kernel.length_scale[0]",
        "left.kernel.length_scale[1]",
        "right.scale",
        "right.offset",
    ]
    np.testing.assert_allclose(kernel.theta, [np.log(2), 0, np.log(3), 0.5, -1.0])
    np.testing.assert_allclose(np.exp(kernel.bounds[0]), (1e-5, 1e5))
    assert kernel.bounds[4].tolist() == [-1e3, 1e3]
    three = k.RBF() + k.Linear() + k.White(0.1)
    assert [p.name for p in three.parameters] == ["terms[0].length_scale", "terms[2].variance"]


def test_fixing_and_freeing() -> None:
    kernel = k.RBF([1.0, 2.0, 3.0])
    assert kernel.fixed("length_scale[1]").theta.tolist() == kernel.theta[[0, 2]].tolist()
    assert kernel.fixed("length_scale").theta.size == 0
    assert kernel.fixed() == kernel.fixed("length_scale")
    one_free = kernel.fixed().bounded(**{"length_scale[2]": (1.0, 9.0)})
    np.testing.assert_allclose(one_free.theta, [np.log(3)])
    again = one_free.fixed("length_scale")
    assert again == kernel.fixed()
    np.testing.assert_allclose(kernel.fixed().bounded(length_scale=(0.1, 9)).bounds, np.log([[0.1, 9]] * 3))
    moved = kernel.fixed("length_scale[1]").with_theta(np.log([7.0, 8.0]))
    np.testing.assert_allclose(moved.length_scale, (7.0, 2.0, 8.0))


def test_fixed_parameters_have_no_gradient() -> None:
    kernel = (2.0 * k.RBF([1.0, 2.0, 3.0]) + k.Linear()).fixed("left.factor", "left.kernel.length_scale[0]")
    free = 2.0 * k.RBF([1.0, 2.0, 3.0]) + k.Linear()
    weights = np.cos(np.arange(64.0)).reshape(8, 8)
    np.testing.assert_array_equal(kernel.pullback(X, None, weights), free.pullback(X, None, weights)[2:])
    assert kernel.fixed().pullback(X, None, weights).shape == (0,)


def test_parts_are_named_by_paths() -> None:
    kernel = 2.0 * k.RBF([1.0, 2.0]) + k.Linear() + k.White(0.1)
    bounded = kernel.bounded(**{"terms[0].kernel.length_scale": (0.5, 4.0), "terms[2].variance": (0.01, 1.0)})
    np.testing.assert_allclose(np.exp(bounded.bounds[1:]), [(0.5, 4.0), (0.5, 4.0), (0.01, 1.0)])
    assert parse_kernel(repr(bounded)) == bounded
    assert kernel.with_params(**{"terms[2]__variance": 0.5}).terms[2] == k.White(0.5)  # type: ignore[attr-defined]


def test_a_number_at_zero_stays_there() -> None:
    kernel = k.Polynomial(2, offset=0.0)
    assert [p.name for p in kernel.parameters if p.free] == ["scale"]
    assert kernel.with_theta([1.0]).offset == 0.0
    assert kernel.pullback(X, None, np.ones((8, 8))).shape == (1,)


def test_new_values_may_change_the_number_of_length_scales() -> None:
    kernel = k.RBF([1.0, 2.0]).fixed("length_scale[1]")
    short = kernel.with_params(length_scale=3.0)
    assert short == k.RBF(3.0)
    assert kernel.with_params(length_scale=[4.0, 5.0]) == k.RBF([4.0, 5.0]).fixed("length_scale[1]")
    assert k.RBF([1.0, 2.0]).fixed().with_params(length_scale=3.0) == k.RBF(3.0).fixed()


def test_replaced_parts_join_as_if_they_had_been_typed() -> None:
    product = (k.RBF() * k.Linear()).with_params(left=k.Matern() * k.RBF())
    assert product == k.Matern() * k.RBF() * k.Linear()
    total = (k.RBF() + k.Linear()).with_params(left=k.Constant(2.0) + k.Matern())
    assert total == 2.0 + k.Matern() + k.Linear()
    assert (2.0 * k.RBF()).with_params(kernel=3.0 * k.Linear()) == 6.0 * k.Linear()
    tuned = (2.0 * k.RBF()).fixed("factor")
    assert tuned.with_params(kernel=3.0 * k.Linear()) == (6.0 * k.Linear()).fixed("factor")


# ---- definiteness


@pytest.mark.parametrize(
    ("kernel", "definiteness", "part"),
    [
        (k.RBF() + 2 * k.Linear() ** 2, "positive", None),
        (k.RBF() + k.Sigmoid(), "indefinite", k.Sigmoid()),
        ((k.RBF() * (2 * k.Sigmoid())).normalized(), "indefinite", k.Sigmoid()),
        (k.NegativeDistance() + k.RBF(), "conditional", k.NegativeDistance()),
        (2 * k.NegativeDistance().on(0), "conditional", k.NegativeDistance()),
        (k.NegativeDistance() * k.RBF(), "indefinite", k.NegativeDistance() * k.RBF()),
        (k.NegativeDistance() ** 2, "indefinite", k.NegativeDistance() ** 2),
        (k.NegativeDistance() + k.Sigmoid(), "indefinite", k.Sigmoid()),
        (k.RBF() ** 0.5, "indefinite", k.RBF() ** 0.5),
        (k.exp(k.NegativeDistance()), "positive", None),
        (k.exp(k.Sigmoid()), "indefinite", k.Sigmoid()),
        (k.NegativeDistance().centered(X), "positive", None),
        (k.Sigmoid().centered(X), "indefinite", k.Sigmoid()),
        (k.NegativeDistance().normalized(), "indefinite", k.NegativeDistance().normalized()),
        (k.ExpSineSquared(), "indefinite", k.ExpSineSquared()),
    ],
)
def test_definiteness_is_carried_through(kernel: Kernel, definiteness: str, part: Kernel | None) -> None:
    assert kernel.definiteness == definiteness
    assert kernel.indefinite_part() == part


# ---- work done once


@pytest.mark.parametrize(
    ("kernel", "times"),
    [
        (k.RBF(1.0) + k.RBF(2.0), 1),
        (0.5 * k.RBF(1.0) * k.Matern(2.0) + k.RationalQuadratic() ** 2, 1),
        (k.RBF(1.0).on([0]) + k.Matern(1.0).on([0]), 1),
        (k.RBF(1.0).on([0]) + k.RBF(1.0).on([1]), 2),
        (k.RBF([1.0, 2.0, 3.0]) + k.RBF(1.0), 2),
        ((k.RBF(1.0) + k.RBF(3.0)).normalized(), 1),
    ],
)
def test_terms_share_their_distances(kernel: Kernel, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []
    fill = SquaredDistance.fill

    def counted(self: SquaredDistance, left: Any, right: Any, multiplier: float, out: Any) -> None:
        calls.append(out.shape)
        fill(self, left, right, multiplier, out)

    with monkeypatch.context() as change:
        change.setattr(program, "LEAST_ENTRIES", 0)
        lowered = Gram(kernel, X, X[:5])._plan.program(np.dtype(float))
    if lowered is not None:
        assert [code for code, _, _ in lowered.steps].count(programs.STATISTIC) == times
    monkeypatch.setattr(Program, "of", lambda plan, dtype: None)
    monkeypatch.setattr(SquaredDistance, "fill", counted)
    kernel(X, X[:5])
    assert calls.count((8, 5)) == times


def test_cost_grows_with_the_block_and_its_terms() -> None:
    assert k.RBF().cost(10, 20).nbytes == 1600
    assert (k.RBF() + k.Linear()).cost(10, 20, d=5).operations == 2 * k.RBF().cost(10, 20, d=5).operations


def test_slopes_of_a_root_where_values_underflow() -> None:
    X = [[0.0], [1.0], [100.0]]
    root = (2.0 * k.RBF(1.0)) ** 0.5
    # The root of 2 RBF(1) is sqrt(2) RBF(sqrt(2)); the slope by its factor's logarithm is half of its sum.
    same = np.sqrt(2.0) * k.RBF(np.sqrt(2.0))
    found, expected = (kernel.pullback(X, None, np.ones((3, 3))) for kernel in (root, same))
    np.testing.assert_allclose(found, expected * [0.5, 1.0], rtol=1e-12)
