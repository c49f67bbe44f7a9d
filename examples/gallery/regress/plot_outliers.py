"""
Outliers: squared and linear errors
===================================

The squared error follows a few wrong measurements. The ε-insensitive loss grows linearly, and the Huber loss changes
from one to the other.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVR, KernelMachine, KernelRidge
from mercer.plotting import LossDisplay

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 70))
y = np.sin(x) + 0.1 * rng.normal(size=70)
y[::9] += 3.0
line = np.linspace(0, 6, 300)
models = {
    "KernelRidge (squared)": KernelRidge(1.0, kernel="rbf", gamma=0.5),
    "SVR (ε-insensitive)": SVR(gamma=0.5, C=1.0, epsilon=0.1),
    "KernelMachine (Huber)": KernelMachine("huber", kernel="rbf", gamma=0.5),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(x, y, ".", color="grey")
left.plot(line, np.sin(line), color="black", linestyle="dotted", label="sin x")
for name, model in models.items():
    left.plot(line, model.fit(x[:, None], y).predict(line[:, None]), label=name)
left.legend()
LossDisplay.from_losses(["squared_error", "epsilon_insensitive", "huber"], limit=2.5).plot(ax=right)
plt.show()
