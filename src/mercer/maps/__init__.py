"""Explicit feature maps from rows to features whose inner products are the values of a kernel.

>>> from mercer import maps
>>> phi = maps.PolynomialMap(degree=2).fit([[1.0, 2.0]])
>>> phi.kernel, phi.n_output_features_
(Polynomial(2), 6)
"""

from mercer.maps.all_subsets import AllSubsetsMap
from mercer.maps.count_sketch import CountSketchMap
from mercer.maps.explicit import ExplicitMap
from mercer.maps.gaussian_series import GaussianSeriesMap
from mercer.maps.nystroem import NystroemMap
from mercer.maps.polynomial import PolynomialMap
from mercer.maps.random_fourier import RandomFourierMap

__all__ = [
    "AllSubsetsMap",
    "CountSketchMap",
    "ExplicitMap",
    "GaussianSeriesMap",
    "NystroemMap",
    "PolynomialMap",
    "RandomFourierMap",
]
