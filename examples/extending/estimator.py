"""An estimator with any kernel on any rows, also for the command line: the class whose mean is nearest."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

import mercer
from mercer.extend import register
from mercer.kernels import as_kernel


@register(model="nearest-mean")
class NearestMean(ClassifierMixin, BaseEstimator):
    """``argmin_c |phi(x) - mean_c|^2``, from kernel values alone."""

    def __init__(self, kernel="rbf"):
        self.kernel = kernel

    def fit(self, X, y):
        self.kernel_ = as_kernel(mercer.kernels.RBF(1.0) if self.kernel == "rbf" else self.kernel)
        self.X_, self.classes_ = X, np.unique(y)
        member = np.asarray(y)[:, None] == self.classes_
        self.weights_ = member / member.sum(axis=0)
        # Products are made by tiles: no matrix of all pairs is held.
        self.squares_ = np.einsum("ic,ic->c", self.weights_, mercer.Gram(self.kernel_, X) @ self.weights_)
        return self

    def decision_function(self, X):
        return 2 * (mercer.Gram(self.kernel_, X, self.X_) @ self.weights_) - self.squares_

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


if __name__ == "__main__":
    X, y = load_iris(return_X_y=True)
    model = NearestMean().fit(X[::2], y[::2])
    print("right", round(model.score(X[1::2], y[1::2]), 2))
    mercer.save(model, "mean.mercer")
    print("read again", (mercer.load("mean.mercer").predict(X) == model.predict(X)).all())
    words = NearestMean(mercer.kernels.Spectrum(2).normalized()).fit(["abab", "baba", "xyxy", "yxyx"], [0, 0, 1, 1])
    print("strings", words.predict(["ababab", "xyx"]).tolist())
