"""
A grid of C and gamma
=====================

Mean scores of five folds. Each kernel matrix is computed once for all penalties and folds.
"""

from sklearn.datasets import make_moons

from mercer import SVC, GridSearchCV
from mercer.plotting import SearchDisplay

X, y = make_moons(150, noise=0.3, random_state=0)
grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [0.01, 0.1, 1.0, 10.0, 100.0]}
search = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
SearchDisplay.from_search(search).plot()
print(search.sharing_)
