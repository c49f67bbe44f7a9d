"""Classes of user-defined kernels that cannot mean what they say are refused where they are written or first used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mercer import extend
from mercer._errors import ParameterError


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
