"""
The steps of a solver
=====================

Within ``config(trace=True)`` a learner keeps the steps of its solver. The primal and the dual objective enclose the
optimum, and come together while the worst violation of an optimality condition falls.
"""

from sklearn.datasets import make_moons

from mercer import SVC, config
from mercer.plotting import ConvergenceDisplay

X, y = make_moons(1000, noise=0.3, random_state=0)
with config(trace=True):
    model = SVC(C=10.0, gamma=1.0).fit(X, y)
ConvergenceDisplay.from_estimator(model).plot()
