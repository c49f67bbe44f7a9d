"""
All penalties of ridge regression at once
=========================================

One factorisation serves every penalty, with the leave-one-out error, generalised cross-validation and the evidence.
"""

import numpy as np

from mercer import ridge_path
from mercer.plotting import PathDisplay

rng = np.random.default_rng(2)
x = rng.uniform(0, 6, 80)[:, None]
y = np.sin(1.5 * x[:, 0]) + 0.3 * rng.normal(size=80)
path = ridge_path(x, y, np.logspace(-6, 3, 40), kernel="rbf", gamma=1.0)
PathDisplay.from_path(path).plot()
print(f"least leave-one-out error at alpha = {path.best('loo').alpha:.3g}")
