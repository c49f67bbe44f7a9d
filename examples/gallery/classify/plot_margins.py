"""
A support vector machine and its margins
========================================

The decision function of ``SVC`` is 0 on the boundary and ±1 on the margins. Only the rows on or inside the margins, the
support vectors, enter the solution.
"""

from sklearn.datasets import make_moons

from mercer import SVC
from mercer.plotting import BoundaryDisplay

X, y = make_moons(150, noise=0.2, random_state=3)
model = SVC(kernel="rbf", gamma=1.0, C=10.0).fit(X, y)
BoundaryDisplay.from_estimator(model, X, y).plot()

# %%
# The certificate says how far the solution is from the optimum.
print(f"{len(model.support_)} support vectors; relative gap {model.certificate_.relative_gap:.1e}")
