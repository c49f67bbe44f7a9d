"""Copies of rows, which leave-one-out leaves in: warned of where it chooses parameters, and only there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelRidge
from mercer._errors import MercerWarning
from mercer.kernels import RBF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=80)
TAKEN = "repeat another row and its target.*GroupKFold"


def with_copies(count):
    rows = np.r_[np.arange(80), np.arange(count)]
    return X[rows], Y[rows]


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge("loo", kernel="rbf", gamma=0.5),
        KernelRidge("loo", kernel=RBF(1.0), kernel_params="loo"),
        KernelRidge(0.1, kernel="rbf", gamma="loo"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_copies_are_told(model, form):
    rows, y = with_copies(40)
    with pytest.warns(MercerWarning, match=f"40 of the 120 rows {TAKEN}"):
        model.fit(form(rows), y)
    with pytest.warns(MercerWarning, match=TAKEN):
        model.fit(form(rows), np.column_stack([y, y**2]))


@pytest.mark.parametrize(
    "fit",
    [
        lambda: KernelRidge("loo", kernel="rbf").fit(X, Y),
        lambda: KernelRidge("loo", kernel="rbf").fit(*with_copies(8)),
        lambda: KernelRidge(0.1, kernel="rbf").fit(*with_copies(40)),
        lambda: KernelRidge("evidence", kernel="rbf").fit(*with_copies(40)),
        # Equal rows with other targets are other observations.
        lambda: KernelRidge("loo", kernel="rbf").fit(np.r_[X, X], np.r_[Y, Y + RNG.normal(size=80)]),
        # Copies of no weight are not there.
        lambda: KernelRidge("loo", kernel="rbf").fit(*with_copies(40), np.repeat([1.0, 0.0], [80, 40])),
    ],
    ids=["none", "few", "given", "evidence", "others", "weightless"],
)
def test_else_there_is_no_word(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        fit()


def test_copies_make_the_errors_too_small():
    once = KernelRidge("loo", kernel="rbf", gamma=0.5).fit(X, Y)
    with pytest.warns(MercerWarning, match="160 of the 240 rows"):
        thrice = KernelRidge("loo", kernel="rbf", gamma=0.5).fit(np.tile(X, (3, 1)), np.tile(Y, 3))
    assert once.loo_score_ < 0.9 < 0.999 < thrice.loo_score_ and thrice.alpha_ < 1e-4 < once.alpha_
