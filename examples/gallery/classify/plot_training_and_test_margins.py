"""
Margins of training and test rows
=================================

The distribution of the margins of the rows shows more than the accuracy: how many rows are near the
boundary, and whether the training rows are much farther from it than new ones.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.plotting import MarginsDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)
model = SVC(C=1.0).fit(X_train, y_train)
MarginsDisplay.from_estimator(model, X_train, y_train, X_test=X_test, y_test=y_test).plot()
