"""SVC against scikit-learn and scikit-learn-intelex on nine data sets: time, dual objective, accuracy."""

from __future__ import annotations

from pathlib import Path

from sklearn.svm import SVC as LibSVC
from sklearnex.svm import SVC as IntelexSVC

from harness import Row, data_folder, tell
from mercer import SVC
from svm_compare import WORSE, Comparison, classifier_objective, compare_fits, geometric_mean, relative_difference
from svm_data import SETTINGS, Data, load

TITLE = "SVC.fit, RBF, tol = 1e-3, cache_size = 1000"
KINDS = {"Mercer": SVC, "scikit-learn": LibSVC, "scikit-learn-intelex": IntelexSVC}
# Against the faster peer: for each data set, for some of them, and for the geometric mean; against scikit-learn for the
# mean.
LEAST, MORE, MEAN, MEAN_SCIKIT_LEARN = 1.1, {"magic": 2.5, "covtype_5000": 1.5, "shuttle": 1.5}, 3.0, 5.0


def case(name: str, folder: Path) -> list[Row]:
    """Two rows: against the faster peer, and against scikit-learn."""
    tell(name)
    setting, data = SETTINGS[name], load(name, folder)
    options = {"C": setting.C, "gamma": setting.gamma, "tol": 1e-3, "cache_size": 1000}
    comparison = compare_fits(KINDS, options, data.X, data.y)
    least = MORE.get(name, LEAST)
    against_faster = row(name, comparison, comparison.peer, setting.gamma, least, f">= {least}", data)
    return [against_faster, row(name, comparison, comparison.best("scikit-learn"), setting.gamma, 0.0, "in the mean")]


def row(
    name: str, comparison: Comparison, peer: str, gamma: float, least: float, demand: str, data: Data | None = None
) -> Row:
    """How Mercer stands against one peer; with ``data`` the accuracies must agree, too."""
    ours = comparison.best("Mercer")
    model, other = comparison.made[ours], comparison.made[peer]
    difference = relative_difference(classifier_objective(model, gamma), classifier_objective(other, gamma))
    gap = float(model.certificate_.relative_gap)
    facts = {"dual_difference": difference, "relative_gap": gap, "n_support": float(len(model.support_))}
    note = f"{ours}; dual objective {difference:+.0e} relative to the peer's; gap {gap:.0e}"
    met = (
        comparison.seconds[peer] >= least * comparison.seconds[ours] and difference >= -WORSE and model.fit_status_ == 0
    )
    if data is not None:
        accuracy, other_accuracy = (float(m.score(data.X_test, data.y_test)) for m in (model, other))
        facts |= {"accuracy": accuracy, "peer_accuracy": other_accuracy}
        note += f"; accuracy {accuracy:.4f} / {other_accuracy:.4f}; {len(model.support_):,} support vectors"
        met &= abs(accuracy - other_accuracy) < 2e-3
    return Row(name, peer, comparison.seconds[ours], comparison.seconds[peer], demand, bool(met), note, facts)


def mean_row(case: str, rows: list[Row], peer: str, least: float, each: float, demand: str) -> Row:
    """The geometric mean of the ratios of rows; none of them may be below ``each``."""
    ratios = [row.peer_seconds / row.ours_seconds for row in rows]
    ours, theirs = (geometric_mean([getattr(r, which) for r in rows]) for which in ("ours_seconds", "peer_seconds"))
    note = f"smallest {min(ratios):.2f}, largest {max(ratios):.2f}"
    met = theirs >= least * ours and min(ratios) >= each
    return Row(case, peer, ours, theirs, demand, met, note)


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    folder = data_folder()
    if folder is None:
        return []
    rows = [row for name in SETTINGS for row in case(name, folder)]
    faster, plain = rows[::2], rows[1::2]
    mean = f"geometric mean of the {len(faster)}"
    return [
        *rows,
        mean_row(mean, faster, "the faster of each", MEAN, LEAST, f">= {MEAN:g}, none below {LEAST}"),
        mean_row(mean, plain, "scikit-learn", MEAN_SCIKIT_LEARN, 0.0, f">= {MEAN_SCIKIT_LEARN:g}"),
    ]
