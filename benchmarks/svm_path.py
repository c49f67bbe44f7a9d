"""``svm_path`` over ten values of C against single fits: the whole path, and the slowest of the ten."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness import Row, data_folder, in_turn, seconds_of, tell
from mercer import SVC, svm_path
from svm_compare import WORSE, relative_difference
from svm_data import SETTINGS, load, some_rows

TITLE = "svm_path, RBF, ten values of C from 1e-2 to 1e2, tol = 1e-3"
CASES = ("letter", "usps", "magic", "covtype_5000")
CS = np.logspace(-2, 2, 10)
MOST = 2.5
_WARM_UP_ROWS = 5000


def case(name: str, folder: Path) -> Row:
    """The path beside the slowest fit, and the worst of its ten answers."""
    tell(name)
    data, options = load(name, folder), {"gamma": SETTINGS[name].gamma, "tol": 1e-3}
    few = some_rows(len(data.X), _WARM_UP_ROWS)
    single = {C: SVC(C=C, **options) for C in CS}
    single[CS[-1]].fit(data.X[few], data.y[few])
    seconds = {C: seconds_of(lambda model=model: model.fit(data.X, data.y)) for C, model in single.items()}
    slowest = max(seconds, key=seconds.__getitem__)
    path = []

    def follow() -> None:
        path[:] = svm_path(data.X, data.y, CS, **options)

    times = in_turn({"path": follow, "slowest": lambda: single[slowest].fit(data.X, data.y)}, repeats=3)
    difference = min(relative_difference(p.certificate_.dual, single[C].certificate_.dual) for C, p in zip(CS, path))
    gap = max(float(p.certificate_.relative_gap) for p in path)
    note = (
        f"{times['path'] / times['slowest']:.2f} times the slowest fit, {sum(seconds.values()):.3g} s for ten single "
        f"fits; worst dual objective {difference:+.0e} relative to the single fit's; largest gap {gap:.0e}"
    )
    met = times["path"] <= MOST * times["slowest"] and difference >= -WORSE
    facts = {"dual_difference": difference, "relative_gap": gap, "single_fits_seconds": sum(seconds.values())}
    peer = f"Mercer's SVC, C = {slowest:.3g}"
    return Row(name, peer, times["path"], times["slowest"], f">= 1/{MOST}", bool(met), note, facts)


def run() -> list[Row]:
    """All rows of the section; none where the data are missing."""
    folder = data_folder()
    return [] if folder is None else [case(name, folder) for name in CASES]
