"""Pictures of data, kernels and fits, in the convention of scikit-learn's displays.

A display holds numbers. A class method (``from_estimator``, ``from_kernel``, ...) computes them, ``plot(ax=None)``
draws them, keeps the axes and all that it drew as attributes, and returns the display, and ``frame()`` returns them as
a pandas DataFrame. Only ``plot`` needs matplotlib (``pip install 'mercer[plots]'``), and no window is opened.
"""

from mercer.plotting.alignment import AlignmentDisplay
from mercer.plotting.boundary import BoundaryDisplay
from mercer.plotting.clusters import ClustersDisplay
from mercer.plotting.components import ComponentsDisplay
from mercer.plotting.contributions import ContributionsDisplay
from mercer.plotting.convergence import ConvergenceDisplay
from mercer.plotting.gram import GramDisplay
from mercer.plotting.losses import LossDisplay
from mercer.plotting.margins import MarginsDisplay
from mercer.plotting.ordinal import OrdinalDisplay
from mercer.plotting.path import PathDisplay
from mercer.plotting.process import ProcessDisplay
from mercer.plotting.relevance import RelevanceDisplay
from mercer.plotting.search import SearchDisplay
from mercer.plotting.spectrum import EigenfunctionsDisplay, SpectrumDisplay
from mercer.plotting.tube import TubeDisplay

__all__ = [
    "AlignmentDisplay",
    "BoundaryDisplay",
    "ClustersDisplay",
    "ComponentsDisplay",
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "EigenfunctionsDisplay",
    "GramDisplay",
    "LossDisplay",
    "MarginsDisplay",
    "OrdinalDisplay",
    "PathDisplay",
    "ProcessDisplay",
    "RelevanceDisplay",
    "SearchDisplay",
    "SpectrumDisplay",
    "TubeDisplay",
]
