"""Classes of user-defined kernels that cannot mean what they say are refused where they are written or first used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mercer import extend
from mercer._errors import KernelValueError, ParameterError
from mercer.gram import Gram
from mercer.kernels import Linear, program
from mercer.kernels.program import Program
from mercer.testing import check_kernel


class _Decay:
    def value(self, t: Any) -> Any:
        return np.exp(-t)

    def derivative(self, t: Any) -> Any:
        return -np.exp(-t)


def test_a_misspelt_statistic_is_an_error_with_the_words() -> None:
    with pytest.raises(ParameterError, match="statistic must be one of squared_distance, manhattan_distance, inner_p"):

        @dataclass(frozen=True, repr=False)
        class _Misspelt(_Decay, extend.VectorKernel):
            statistic = "squared distance"


@pytest.mark.parametrize("base", [extend.VectorKernel, extend.PairKernel, extend.FeatureKernel])
def test_a_misspelt_definiteness_is_an_error_with_the_words(base: type) -> None:
    with pytest.raises(ParameterError, match="Misspelt: definiteness must be one of positive, conditional, indefinite"):
        type("Misspelt", (base,), {"definiteness": "positve"})


def test_an_inner_product_has_no_length_scale() -> None:
    @dataclass(frozen=True, repr=False)
    class Scaled(_Decay, extend.VectorKernel):
        length_scale: float = extend.parameter(1.0)
        statistic = "inner_product"

    with pytest.raises(ParameterError, match=r"no length scale, .*give the number another name, such as scale"):
        Scaled(2.0)

    @dataclass(frozen=True, repr=False)
    class Renamed(_Decay, extend.VectorKernel):
        scale: float = extend.parameter(1.0)
        statistic = "inner_product"

        def value(self, t: Any) -> Any:
            return np.exp(-t / self.scale)

    np.testing.assert_allclose(Renamed(2.0)([[1.0], [3.0]]), np.exp(-np.array([[1, 3], [3, 9]]) / 2))


def test_a_class_without_its_decorator_is_an_error_that_names_it() -> None:
    class Bare(_Decay, extend.VectorKernel):
        length_scale: float = extend.parameter(1.0)

    for arguments in ((), (2.0,)):
        with pytest.raises(ParameterError, match=r"Bare .*length_scale.*@dataclass\(frozen=True, repr=False\)"):
            Bare(*arguments)
    K = dataclass(frozen=True, repr=False)(Bare)(2.0)([[0.0], [2.0]])
    np.testing.assert_allclose(K, np.exp(-np.eye(2)[::-1]))


def test_a_subclass_with_other_methods_alone_needs_no_decorator() -> None:
    @dataclass(frozen=True, repr=False)
    class First(_Decay, extend.VectorKernel):
        length_scale: float = extend.parameter(1.0)

    class Second(First):
        def value(self, t: Any) -> Any:
            return 2 * np.exp(-t)

    np.testing.assert_allclose(Second(2.0)([[0.0]], [[2.0]]), 2 * np.exp(-1))


@dataclass(frozen=True, repr=False)
class _Cauchy(extend.VectorKernel):
    length_scale: float = extend.parameter(1.0, per_column=True)
    weight: float = extend.parameter(1.0)

    def value(self, t: Any) -> Any:
        return 1 / (1 + self.weight * t)

    def derivative(self, t: Any) -> Any:
        return -self.weight / (1 + self.weight * t) ** 2

    def slopes(self, t: Any) -> Any:
        return {"weight": -t / (1 + self.weight * t) ** 2}

    @staticmethod
    def compiled(t: float, numbers: Any) -> float:
        return 1 / (1 + numbers[0] * t)


@dataclass(frozen=True, repr=False)
class _OtherValue(_Cauchy):
    def value(self, t: Any) -> Any:
        return 2 / (1 + self.weight * t)


@dataclass(frozen=True, repr=False)
class _OtherCode(_Cauchy):
    @staticmethod
    def compiled(t: float, numbers: Any) -> float:
        return 2 / (1 + numbers[0] * t)


@dataclass(frozen=True, repr=False)
class _NoCode(_Cauchy):
    @staticmethod
    def compiled(t: float, numbers: Any) -> float:
        return t.no_such_method()  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True, repr=False)
class _Raises(_Cauchy):
    @staticmethod
    def compiled(t: float, numbers: Any) -> float:
        if t > 1:
            raise ValueError("too far")
        return 1.0


def _program(kernel: Any, X: Any) -> Program | None:
    return Program.of(Gram(kernel, X)._plan, np.dtype(float), least=0)


@pytest.mark.parametrize("kernel", [_Cauchy(2.0, weight=0.5), 2 * _Cauchy([1.0, 3.0], weight=0.5) + Linear()], ids=repr)
def test_a_compiled_function_gives_the_values_of_value(kernel: Any) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert _program(kernel, X) is not None
    check_kernel(kernel, X)


def test_another_value_does_not_take_the_code_of_its_parent() -> None:
    assert _program(_OtherValue(1.0), 0.5 * np.eye(3)) is None


def test_code_that_gives_other_values_is_found() -> None:
    with pytest.raises(AssertionError, match=r"the compiled block beside that of value\(t\): values of size 1 differ"):
        check_kernel(_OtherCode(1.0), np.random.default_rng(0).normal(size=(12, 2)))


def test_code_that_numba_does_not_compile_is_an_error_with_a_remedy() -> None:
    with pytest.raises(
        ParameterError,
        match=r"cannot be compiled: Unknown attribute .*remove it, and blocks are computed by value\(t\)",
    ):
        _program(_NoCode(1.0), 0.5 * np.eye(3))


def test_an_error_of_compiled_code_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LEAST_ENTRIES", 0)
    with pytest.raises(KernelValueError, match="returned nan"):
        _Raises(0.1)(0.5 * np.eye(3))


def test_no_value_next_to_an_error_of_compiled_code_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LEAST_ENTRIES", 0)
    X = np.linspace(0, 0.4, 40)[:, None]
    X[30] = 60.0
    with pytest.raises(KernelValueError, match="returned nan"):
        _Raises(1.0)(X)
    K = Gram(_Raises(1.0), X).dense()
    assert np.isnan(K[30]).any() and set(K[~np.isnan(K)]) <= {1.0}
