"""SVR on kin40k and OneClassSVM on the shuttle, against scikit-learn and scikit-learn-intelex."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR as LibSVR
from sklearn.svm import OneClassSVM as LibOneClass
from sklearnex.svm import SVR as IntelexSVR

from harness import Row, data_folder, tell
from mercer import SVR, OneClassSVM
from svm_compare import WORSE, Comparison, compare_fits, expansion_objective, relative_difference
from svm_data import Data, read

TITLE = "SVR.fit and OneClassSVM.fit, RBF, tol = 1e-3, cache_size = 1000"
LEAST = 2.0
C, GAMMA, EPSILON = 10.0, 0.2, 0.1
NU = 0.05


def kin40k(folder: Path) -> Data:
    """The standard split: tested on fold 0, fitted to the rest; columns and targets standardised by the rest."""
    archive = np.load(folder / "regression" / "kin40k.npz")
    tested = archive["test_fold"] == 0
    X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    X = StandardScaler().fit(X[~tested]).transform(X)
    y = (y - y[~tested].mean()) / y[~tested].std()
    return Data(X[~tested], y[~tested], X[tested], y[tested])


def shuttle(folder: Path) -> np.ndarray:
    """All rows of the shuttle for novelty detection, standardised; 7 % of them are anomalies."""
    X, _, _ = read(folder, "novelty", "shuttle")
    return StandardScaler().fit_transform(X)


def regression(data: Data) -> list[Row]:
    """Rows of the SVR: against the faster peer, and against scikit-learn where that is another."""
    tell("SVR, kin40k")
    kinds = {"Mercer": SVR, "scikit-learn": LibSVR, "scikit-learn-intelex": IntelexSVR}
    options = {"C": C, "gamma": GAMMA, "epsilon": EPSILON, "tol": 1e-3, "cache_size": 1000}
    comparison = compare_fits(kinds, options, data.X, data.y)
    objective = {
        label: expansion_objective(model, GAMMA, linear=data.y, tube=EPSILON)
        for label, model in comparison.made.items()
    }
    case = f"SVR, kin40k, n = {len(data.X):,}, C = {C:g}, gamma = {GAMMA:g}, epsilon = {EPSILON:g}"
    first, *others = _rows(case, comparison, objective)
    ours, peer = (comparison.made[label].predict(data.X_test) for label in (comparison.best("Mercer"), comparison.peer))
    rmse, peer_rmse = (float(np.sqrt(np.mean((f - data.y_test) ** 2))) for f in (ours, peer))
    note = f"{first.note}; RMSE {rmse:.4f} / {peer_rmse:.4f}"
    facts = first.facts | {"rmse": rmse, "peer_rmse": peer_rmse}
    return [
        Row(case, first.peer, first.ours_seconds, first.peer_seconds, first.demand, first.met, note, facts),
        *others,
    ]


def novelty(X: np.ndarray) -> list[Row]:
    """Rows of the one-class machine; scikit-learn-intelex has none of its own."""
    tell("OneClassSVM, shuttle")
    kinds = {"Mercer": OneClassSVM, "scikit-learn": LibOneClass}
    options = {"nu": NU, "gamma": "scale", "tol": 1e-3, "cache_size": 1000}
    comparison = compare_fits(kinds, options, X, np.zeros(len(X)))
    gamma = 1.0 / (X.shape[1] * X.var())
    objective = {label: expansion_objective(model, gamma) for label, model in comparison.made.items()}
    return _rows(f"OneClassSVM, shuttle, n = {len(X):,}, nu = {NU:g}", comparison, objective)


def _rows(case: str, comparison: Comparison, objective: dict[str, float]) -> list[Row]:
    ours = comparison.best("Mercer")
    model = comparison.made[ours]
    gap = float(model.certificate_.relative_gap)
    rows = []
    for peer in dict.fromkeys((comparison.peer, comparison.best("scikit-learn"))):
        difference = relative_difference(objective[ours], objective[peer])
        met = (
            comparison.seconds[peer] >= LEAST * comparison.seconds[ours]
            and difference >= -WORSE
            and model.fit_status_ == 0
        )
        note = (
            f"{ours}; dual objective {difference:+.0e} relative to the peer's; gap {gap:.0e}; "
            f"{len(model.support_):,} support vectors"
        )
        facts = {"dual_difference": difference, "relative_gap": gap, "n_support": float(len(model.support_))}
        row = Row(
            case, peer, comparison.seconds[ours], comparison.seconds[peer], f">= {LEAST:g}", bool(met), note, facts
        )
        rows.append(row)
    return rows


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    folder = data_folder()
    return [] if folder is None else [*regression(kin40k(folder)), *novelty(shuttle(folder))]
