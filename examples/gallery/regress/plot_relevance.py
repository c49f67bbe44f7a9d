"""
Which columns matter: permutation
=================================

Shuffle one column of held-out rows and see how much the score falls. It works for every model, and says what this
model uses.
"""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from mercer import KernelRidge
from mercer.plotting import RelevanceDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = KernelRidge(alpha="loo", kernel="rbf").fit(X_train, y_train)
RelevanceDisplay.from_permutation(model, X_test, y_test).plot()
