"""A loss: log cosh of the residual, a smooth absolute error, in every learner that takes losses."""

from dataclasses import dataclass

import numpy as np

import mercer
from mercer.extend import register
from mercer.losses import Loss
from mercer.testing import check_loss


@register
@dataclass(frozen=True)
class LogCosh(Loss):
    """``log cosh(y - f)``: half the square of small residuals, and the size of large ones."""

    name = "log_cosh"
    step_bound = 1.0  # the largest second derivative; learners that take steps choose their length by it

    def value(self, y, f):
        size = np.abs(y - f)
        return size + np.log1p(np.exp(-2 * size)) - np.log(2)

    def gradient(self, y, f):
        return np.tanh(f - y)

    def curvature(self, y, f):
        return 1 - np.tanh(f - y) ** 2

    def slopes(self, y):
        return np.full(np.shape(y), -1.0), np.ones(np.shape(y))


if __name__ == "__main__":
    check_loss("log_cosh")
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(200, 1))
    clean = np.sin(X[:, 0])
    y = clean + np.where(rng.uniform(size=200) < 0.1, 20.0, 0.1) * rng.normal(size=200)

    def error(model):
        return np.sqrt(np.mean((model.predict(X) - clean) ** 2))

    # A tenth of the targets are far off: a square follows them, this loss hardly.
    ours = mercer.KernelMachine("log_cosh", alpha=0.3, gamma=0.5).fit(X, y)
    square = mercer.KernelMachine("squared", alpha=0.3, gamma=0.5).fit(X, y)
    print("a third of the error", error(ours) < error(square) / 3)
    print("relative gap below 1e-6", ours.certificate_.relative_gap < 1e-6)

    online = mercer.OnlineKernelRegressor("log_cosh", gamma=0.5, max_iter=20, random_state=0).fit(X, y)
    print("one row at a time", error(online) < 0.5)
    mercer.save(ours, "log_cosh.mercer")
    print("read again", np.array_equal(mercer.load("log_cosh.mercer").predict(X), ours.predict(X)))
