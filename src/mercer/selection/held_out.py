"""An estimator for scikit-learn's search whose rows are positions: its fits were made together and share work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from mercer.selection.answers import ON_ROWS

if TYPE_CHECKING:
    from mercer.selection.shared_fits import SharedFits

CANDIDATE = "candidate"
"""The parameter that says which candidate of the search it is. Users read it in scikit-learn's messages."""


class HeldOut(BaseEstimator):
    """Stands for the estimator of a search: it is fitted to positions of rows, and scored on them.

    Its class has the name of the estimator's, which scikit-learn's messages quote.

    Parameters
    ----------
    estimator : estimator
        The one to stand for.
    fits : SharedFits
        Where its fits come from.
    """

    def __new__(cls, estimator: Any, fits: SharedFits) -> Self:
        return super().__new__(_named(type(estimator).__name__) if cls is HeldOut else cls)

    def __init__(self, estimator: Any, fits: SharedFits) -> None:
        self.estimator = estimator
        self.fits = fits
        self.candidate = -1

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.fits)

    def __sklearn_tags__(self) -> Any:
        tags = get_tags(self.estimator)
        tags.input_tags.pairwise = False
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and the number of the candidate."""
        self.candidate = int(params.pop(CANDIDATE))
        return self

    def fit(self, X: np.ndarray, y: Any = None, **options: Any) -> Self:
        """Take the fit to the rows at these positions."""
        self.fitted_, self.rows_ = self.fits.take(self.candidate, X[:, 0])
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "estimator" not in vars(self):
            raise AttributeError(name)
        fitted = vars(self).get("fitted_")
        if name not in ON_ROWS:
            return getattr(self.estimator if fitted is None else fitted, name)
        if fitted is None:
            return getattr(self.estimator, name)
        return self._on_positions(getattr(fitted, name))

    def _on_positions(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method of the fitted estimator, for positions instead of rows."""

        # Scorers look at its name.
        @functools.wraps(method)
        def on_positions(X: np.ndarray, *arguments: Any, **options: Any) -> Any:
            return method(self.rows_(X[:, 0]), *arguments, **options)

        return on_positions


@functools.cache
def _named(name: str) -> Any:
    return type(name, (HeldOut,), {})
