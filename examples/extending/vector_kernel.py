"""A kernel on vectors: the Cauchy kernel 1 / (1 + |x - z|^2 / length_scale^2), in learners, files and commands."""

from dataclasses import dataclass

import numpy as np

import mercer
from mercer.extend import VectorKernel, parameter, register
from mercer.testing import check_kernel


@register
@dataclass(frozen=True, repr=False)
class Cauchy(VectorKernel):
    """``k(x, z) = 1 / (1 + t)`` with t the squared distance in units of ``length_scale``; positive semi-definite."""

    length_scale: float = parameter(1.0, per_column=True)

    def value(self, t):
        return 1 / (1 + t)

    def derivative(self, t):
        return -1 / (1 + t) ** 2

    @staticmethod
    def compiled(t, numbers):
        return 1 / (1 + t)

    def squared_distance(self):
        # 2 k(x, x) - 2 k(x, z) without cancellation: neighbours are then ranked by t, to the last digit.
        return lambda t: 2 * t / (1 + t)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)

    check_kernel(Cauchy(2.0), X[:20])
    check_kernel(0.5 * Cauchy([1.0, 3.0]) + Cauchy(4.0).on([1]), X[:20])

    # It is tuned like every other kernel, by the gradient of the evidence.
    process = mercer.GaussianProcessRegressor(Cauchy(1.0), noise=0.1).fit(X, y)
    print("length scale moved", process.kernel_.length_scale != 1.0)

    machine = mercer.SVC(kernel="2 * Cauchy(1.5)").fit(X, y > 0)
    mercer.save(machine, "cauchy.mercer")
    print("same predictions", (mercer.load("cauchy.mercer").predict(X) == machine.predict(X)).all())
