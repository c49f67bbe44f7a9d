"""
Three classes
=============

``SVC`` solves a problem for each pair of classes and takes a vote. The picture shows the regions of the three classes.
"""

from sklearn.datasets import load_iris

from mercer import SVC
from mercer.plotting import BoundaryDisplay

iris = load_iris(as_frame=True)
X, y = iris.data[["petal length (cm)", "petal width (cm)"]], iris.target_names[iris.target]
model = SVC(gamma=1.0, C=5.0).fit(X, y)
BoundaryDisplay.from_estimator(model, X, y).plot()
