"""The negative log likelihood of one of several classes, from a value for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from mercer._types import Vector
from mercer.loops import losses


@dataclass(frozen=True)
class Softmax:
    r""":math:`\log \sum_c e^{f_c} - \sum_c y_c f_c` for one row of k values f and indicators y of its class.

    It looks at all k values of a row together, which a :class:`mercer.losses.Loss` does not. ``code``, ``parameter``,
    ``step_bound`` (the largest eigenvalue of the second derivatives) and ``steepest`` are as there.

    Examples
    --------
    >>> Softmax().value(np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3))).round(6)
    array([1.098612])
    """

    name = "softmax"
    code = losses.SOFTMAX
    parameter = 0.0
    step_bound = 0.5

    def value(self, y: Vector, f: Vector) -> Vector:
        """The loss of each row.

        Parameters
        ----------
        y, f : ndarray of shape (n, k)
            Indicators of the classes, and values.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.asarray(logsumexp(f, axis=1) - (y * f).sum(axis=1))

    def gradient(self, y: Vector, f: Vector) -> Vector:
        """The derivatives by the values.

        Parameters
        ----------
        y, f : ndarray of shape (n, k)
            Indicators of the classes, and values.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return np.asarray(softmax(f, axis=1) - y)

    def steepest(self, y: Vector) -> float:
        """The largest derivative by one value.

        Parameters
        ----------
        y : ndarray of shape (n, k)
            Indicators of the classes.

        Returns
        -------
        float
        """
        return 1.0
