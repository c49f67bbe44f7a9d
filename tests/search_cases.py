"""Searches that share work beside scikit-learn's, which fits every candidate alone."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

TIMES = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")


@functools.cache
def _cells() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def two_classes(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows of breast cancer cells."""
    X, y = _cells()
    return X[:n].copy(), y[:n].copy()


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X, y


def curve(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def same_results(ours: Any, peer: Any, atol: float) -> None:
    """The tables of two searches agree in all but the times."""
    assert list(ours.cv_results_) == list(peer.cv_results_)
    for key, expected in peer.cv_results_.items():
        found = ours.cv_results_[key]
        if key in TIMES:
            assert found.shape == expected.shape and (found >= 0).all()
        elif key == "params":
            assert found == expected
        elif key.startswith("param_"):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
            assert found.tolist() == expected.tolist()
        elif key.startswith("rank"):
            assert found.dtype == expected.dtype
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=key)
    assert (ours.n_splits_, ours.multimetric_) == (peer.n_splits_, peer.multimetric_)


def both(ours: Any, X: Any, y: Any, fit: dict[str, Any] | None = None, atol: float = 1e-9) -> tuple[Any, Any]:
    """Fit a search of ours, and the search of scikit-learn with the same parameters; compare them."""
    fit = fit or {}
    peer = getattr(model_selection, type(ours).__name__)(**ours.get_params(deep=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.fit(X, y, **fit)
        peer.fit(X, y, **fit)
    same_results(ours, peer, atol)
    return ours, peer
