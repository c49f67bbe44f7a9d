"""
Series of different lengths
===========================

Waves, steps and noise of 30 to 60 times each. In the Gram matrix of the global alignment kernel waves are similar to
waves, steps to steps, and noise to nothing but itself.
"""

import numpy as np

from mercer.kernels import GlobalAlignment
from mercer.plotting import GramDisplay

rng = np.random.default_rng(0)
shapes = {
    "wave": lambda t: np.sin(10 * t),
    "step": lambda t: np.where(t < rng.uniform(0.4, 0.6), -1.0, 1.0),
    "noise": lambda t: rng.normal(size=len(t)),
}
series, names = [], []
for name, shape in shapes.items():
    for _ in range(12):
        t = np.linspace(0, 1, rng.integers(30, 60))
        series.append(shape(t) + 0.2 * rng.normal(size=len(t)))
        names.append(name)
GramDisplay.from_kernel(GlobalAlignment(1.5).normalized(), series, names).plot()
