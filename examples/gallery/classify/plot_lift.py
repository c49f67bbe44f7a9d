"""
A line in the feature space is an interval in the data
======================================================

No threshold on x separates :math:`|x| < 2` from the rest. The map :math:`\\varphi(x) = (x, x^2)` makes a line do it.
A polynomial kernel of degree 2 is the inner product of such a map, so that ``SVC`` finds the line without the map.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import SVC
from mercer.kernels import Polynomial

x = np.linspace(-4, 4, 25)
y = np.where(np.abs(x) >= 2, 1, -1)
model = SVC(kernel=Polynomial(2), C=np.inf).fit(x[:, None], y)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for label, marker in ((-1, "o"), (1, "s")):
    left.plot(x[y == label], 0 * x[y == label], marker, label=f"class {label}")
    right.plot(x[y == label], x[y == label] ** 2, marker)
line = np.linspace(-4.3, 4.3, 400)
decision = model.decision_function(line[:, None])
left.plot(line, decision, color="black", label="decision function")
left.axhline(0, color="grey", linewidth=0.8)
left.set(xlabel="x", ylim=(-3, 8))
left.legend()
root = np.abs(line[np.argmin(np.abs(decision))])
right.axhline(root**2, color="black")
right.set(xlabel="x", ylabel="x²", title="the same rows in the feature space")
plt.show()

# %%
# The boundary lies half way between the squares of the nearest rows of both classes.
print(f"boundary at |x| = {root:.3f}; support vectors: {np.sort(x[model.support_]).round(2).tolist()}")
