"""Problems whose structure makes them cheap: few columns, rows that repeat, matrices of a size that LAPACK does."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.svm import SVR as PeerSVR

from harness import Row, in_turn
from mercer import SVR, KernelRidge, validity
from mercer.kernels import RBF

TITLE = "Few columns, repeated rows, the spectrum of a matrix"
SETTINGS = {"C": 1.0, "epsilon": 0.05, "gamma": 0.05}
TOLERANCES = (1e-3, 1e-4, 1e-6)


def repeated_rows(spread: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """16,000 rows of which 200 are different, but for normal noise of the size ``spread``."""
    rng = np.random.default_rng(0)
    different = rng.normal(size=(200, 5))
    X = different[np.minimum((200 * rng.random(16_000) ** 4).astype(int), 199)]
    X = X + spread * rng.normal(size=X.shape)
    return X, np.sin(2 * X[:, 0])


def _linear_ridge() -> list[Row]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 5))
    y = X @ rng.normal(size=5) + 0.1 * rng.normal(size=8000)
    ours, peer = KernelRidge(), PeerRidge()
    times = in_turn({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)})
    slope, exact = X.T @ ours.dual_coef_, np.linalg.solve(X.T @ X + np.eye(5), X.T @ y)
    error = float(np.abs(slope - exact).max())
    met = times["ours"] < 0.1 and error < 1e-9
    note = f"{ours.factorization_}; the slope differs from the normal equations' by {error:.0e}"
    return [Row("KernelRidge, linear, n = 8000, d = 5", "scikit-learn", *times.values(), "< 0.1 s", met, note)]


def _repeated() -> list[Row]:
    rows = []
    for spread, least, tolerances in ((0.0, 1.0, TOLERANCES), (1e-6, 2.0, (1e-4,))):
        X, y = repeated_rows(spread)
        for tol in tolerances:
            ours, peer = SVR(**SETTINGS, tol=tol), PeerSVR(**SETTINGS, tol=tol)
            times = in_turn({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}, 3, _small)
            c, K = np.zeros(len(y)), RBF.from_gamma(SETTINGS["gamma"])
            c[peer.support_] = peer.dual_coef_[0]
            theirs = float(
                c @ y
                - SETTINGS["epsilon"] * np.abs(c).sum()
                - 0.5 * peer.dual_coef_[0] @ (K(peer.support_vectors_) @ peer.dual_coef_[0])
            )
            certificate = ours.certificate_
            worse = (theirs - certificate.dual) / abs(theirs)
            met = times["peer"] >= least * times["ours"] and worse <= 10 * tol
            case = f"SVR, 16,000 rows, 200 different{f' but for {spread:g}' if spread else ''}, tol = {tol:g}"
            steps = certificate.iterations, int(np.sum(peer.n_iter_))
            note = f"{steps[0]} steps, scikit-learn {steps[1]}; dual lower by {worse:.0e}"
            rows.append(Row(case, "scikit-learn", times["ours"], times["peer"], f">= {least:g}", met, note))
    return rows


def _small(name: str) -> object:
    X, y = repeated_rows()
    return (SVR if name == "ours" else PeerSVR)(**SETTINGS).fit(X[:500], y[:500])


def _spectrum() -> list[Row]:
    rows = []
    for n in (2500, 3500, 5000):
        X = np.random.default_rng(0).normal(size=(n, 5))
        K = RBF(1.0)(X)
        times = in_turn({"ours": partial(validity.check, K), "peer": partial(np.linalg.eigvalsh, K)}, 3)
        met = times["peer"] >= 0.9 * times["ours"]
        rows.append(Row(f"validity.check, n = {n}", "eigvalsh", times["ours"], times["peer"], ">= 0.9", met))
    return rows


def _leave_one_out() -> list[Row]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=5000)
    models = {name: KernelRidge(name, kernel="rbf") for name in ("loo", "gcv")} | {"fit": KernelRidge(kernel="rbf")}
    times = in_turn({name: partial(model.fit, X, y) for name, model in models.items()}, 3)
    rows = []
    for name in ("loo", "gcv"):
        fits = times[name] / times["fit"]
        case = f'KernelRidge(alpha="{name}"), n = 5000'
        rows.append(Row(case, "one fit", times[name], times["fit"], "<= 6 fits", fits <= 6, f"{fits:.1f} fits"))
    return rows


def run() -> list[Row]:
    """All rows of the section."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*_linear_ridge(), *_repeated(), *_spectrum(), *_leave_one_out()]
