"""Why a model decides as it does: what parts of a row, and rows of the fit, contribute to a decision value.

>>> from mercer import SVC, explain
>>> from mercer.kernels import Spectrum
>>> model = SVC(kernel=Spectrum(2)).fit(["abab", "abba", "cdcd", "ddcc"], [1, 1, 0, 0])
>>> explanation = explain.contributions(model, "abcd")
>>> explanation.method, abs(explanation.sum - model.decision_function(["abcd"]).item()) < 1e-12
('exact', True)
"""

from mercer.explain.contributions import contributions
from mercer.explain.influence import influence
from mercer.explain.result import Contributions, Part

__all__ = ["Contributions", "Part", "contributions", "influence"]
