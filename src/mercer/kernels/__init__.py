"""Kernels and their algebra.

>>> from mercer import kernels
>>> k = 0.7 * kernels.RBF([1.0, 3.0]) + kernels.Linear()
>>> k.theta.shape
(3,)
"""

from mercer.kernels.algebra import Constant, exp
from mercer.kernels.bag import SetOf
from mercer.kernels.centring import Centered
from mercer.kernels.convert import as_kernel, from_sklearn
from mercer.kernels.foreign_names import explain_calls
from mercer.kernels.function import from_function
from mercer.kernels.graph.graphlet import Graphlet
from mercer.kernels.graph.histograms import EdgeHistogram, VertexHistogram
from mercer.kernels.graph.propagation import Propagation
from mercer.kernels.graph.random_walk import RandomWalk
from mercer.kernels.graph.shortest_path import ShortestPath
from mercer.kernels.graph.weisfeiler_lehman import WeisfeilerLehman
from mercer.kernels.image.patches import ConvolutionalPatches
from mercer.kernels.image.pyramid_match import PyramidMatch
from mercer.kernels.image.spatial_pyramid import SpatialPyramid
from mercer.kernels.kernel import PUBLIC, Cost, Kernel
from mercer.kernels.mixed import product_of
from mercer.kernels.modifiers import Normalized, On, ScaledBy, Warped
from mercer.kernels.parse import kernel_names, parse_kernel
from mercer.kernels.series.alignment import GlobalAlignment, NormalizedGlobalAlignment
from mercer.kernels.series.elementwise import Elementwise
from mercer.kernels.series.signature import Signature, SignaturePDE
from mercer.kernels.series.warping import DynamicTimeWarping
from mercer.kernels.string.bag_of_words import BagOfWords
from mercer.kernels.string.edit_distance import EditDistance
from mercer.kernels.string.spectrum import BlendedSpectrum, Spectrum
from mercer.kernels.string.subsequence import Subsequence
from mercer.kernels.string.weighted_degree import WeightedDegree
from mercer.kernels.string.windows import GappyKmers, Mismatch
from mercer.kernels.target_alignment import alignment
from mercer.kernels.tree.partial import PartialTree
from mercer.kernels.tree.subset import SubsetTree
from mercer.kernels.tree.subtree import Subtree
from mercer.kernels.vector.anova import Anova
from mercer.kernels.vector.columnwise import (
    AdditiveChiSquared,
    AllSubsets,
    ChiSquared,
    Hamming,
    HistogramIntersection,
    White,
)
from mercer.kernels.vector.dot import ArcCosine, ExponentialDot, Linear, Polynomial, Sigmoid, Tanimoto
from mercer.kernels.vector.periodic import ExpSineSquared, Periodic
from mercer.kernels.vector.stationary import RBF, Laplacian, Matern, NegativeDistance, RationalQuadratic

__all__ = [
    "RBF", "AdditiveChiSquared", "AllSubsets", "Anova", "ArcCosine", "BagOfWords", "BlendedSpectrum", "Centered",
    "ChiSquared", "Constant", "ConvolutionalPatches", "Cost", "DynamicTimeWarping", "EdgeHistogram", "EditDistance",
    "Elementwise", "ExpSineSquared", "ExponentialDot", "GappyKmers", "GlobalAlignment", "Graphlet", "Hamming",
    "HistogramIntersection", "Kernel", "Laplacian", "Linear", "Matern", "Mismatch", "NegativeDistance",
    "Normalized", "NormalizedGlobalAlignment", "On", "PartialTree", "Periodic", "Polynomial", "Propagation",
    "PyramidMatch", "RandomWalk", "RationalQuadratic", "ScaledBy", "SetOf", "ShortestPath", "Sigmoid", "Signature",
    "SignaturePDE", "SpatialPyramid", "Spectrum", "Subsequence", "SubsetTree", "Subtree", "Tanimoto",
    "VertexHistogram", "Warped", "WeightedDegree", "WeisfeilerLehman", "White", "alignment", "as_kernel", "exp",
    "from_function", "from_sklearn", "parse_kernel", "product_of",
]  # fmt: skip

PUBLIC.update((name, globals()[name]) for name in __all__)
for _kernel in kernel_names().values():
    explain_calls(_kernel)
