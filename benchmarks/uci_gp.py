"""Gaussian process regression on sets of the UCI repository, over ten splits: RMSE and log density of the targets.

``python benchmarks/uci_gp.py [--write] [--splits=N] [name ...]`` measures some sets (concrete, yacht, ...), on the
first N splits alone if so asked, and with ``--write`` puts each in the results as soon as it is done; ``run.py uci_gp``
measures all of them.

The kernel is a free variance times Matern-3/2 with a length scale for each column, with free noise; both sides begin
from the same values (variance 1, length scales sqrt(d), noise 0.1), inside the same bounds, without restarts. Columns
and targets are standardised on the training part; log densities are of the standardised targets, noise included. With
more than SEARCHED training rows, the hyper-parameters are found on that many of them, drawn with a seed, and then all
rows are conditioned on exactly. The splits are those of github.com/treforevans/uci_datasets; sets without any have ten
random ones, seeded, of which a tenth is tested. Published figures: exact Gaussian processes of Wang, Pleiss, Gardner,
Tyree, Weinberger and Wilson, "Exact Gaussian processes on a million data points", NeurIPS 2019, on splits of their own
with 4/9 of the rows for training; beside them, as many rows are learned from here. Their bike set has 17 columns, two
of which give the target away; without these two it is "bike". Standard errors are those over splits, or over test rows
where there are fewer than FEW splits. Seconds are those of all processors, for one split.
"""

from __future__ import annotations

import datetime
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as their
from threadpoolctl import threadpool_limits

from harness import Row, Section, data_folder, machine, read_sections, tell, write_sections
from mercer import GaussianProcessRegressor, kernels

TITLE = "Gaussian process regression on UCI sets: RMSE and log density over ten splits"
SPLITS = 10
# Rows that the hyper-parameters are found on, where there are more.
SEARCHED = 1500
# What the published figures were trained on.
PUBLISHED_SHARE = 4 / 9
# Splits from which on errors are taken over them.
FEW = 5
NOISE, NOISE_BOUNDS, SCALE_BOUNDS = 0.1, (1e-6, 1e2), (1e-5, 1e5)
# Half of the last digit that is shown: what cannot be seen does not count as worse.
UNSEEN = 5e-5


@dataclass(frozen=True)
class Task:
    """A data set: its file, the columns to use, a published RMSE, and on how many splits scikit-learn is run.

    ``distinct`` leaves out rows that repeat others, targets included: where they are many and there are no published
    splits, the evidence has no maximum (it grows without end as the noise goes to zero), and tests repeat training.
    """

    file: str
    columns: int | None = None
    published: float | None = None
    peer_splits: int = SPLITS
    distinct: bool = False


TASKS = {
    "yacht": Task("yacht"),
    "energy": Task("energy"),
    "concrete": Task("concrete"),
    "airfoil": Task("airfoil"),
    "wine (red, distinct rows)": Task("winequality_red", distinct=True),
    "kin8nm": Task("kin8nm"),
    # scikit-learn's arrays of n x n take minutes and gigabytes for each split of these.
    "pol": Task("pol", published=0.151, peer_splits=1),
    "elevators": Task("elevators", published=0.394, peer_splits=1),
    "bike": Task("bike", columns=15, peer_splits=1),
    "bike (17 columns)": Task("bike", published=0.220, peer_splits=1),
}


@dataclass(frozen=True)
class Split:
    """Standardised training and test rows, and the training rows that hyper-parameters are found on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    searched: np.ndarray


@dataclass(frozen=True)
class Score:
    """Squared errors and log densities of the test rows; log evidence of the training rows; processor seconds."""

    squares: np.ndarray
    densities: np.ndarray
    evidence: float
    seconds: float

    @property
    def figures(self) -> tuple[float, float]:
        """RMSE and mean log density."""
        return float(np.sqrt(self.squares.mean())), float(self.densities.mean())


def splits(folder: Path, task: Task, share: float = 1.0) -> list[Split]:
    """The ten splits of a data set; with a ``share``, that part of all rows, drawn from the others, for training."""
    data = np.load(folder / "regression" / f"{task.file}.npz")
    X, y = data["X"][:, : task.columns].astype(float), data["y"].astype(float)
    if task.distinct:
        first = np.sort(np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1])
        X, y = X[first], y[first]
    parts = []
    for number, test in enumerate(_tests(data, len(y))):
        rows = np.flatnonzero(~test)
        if share < 1.0:
            rows = np.random.default_rng(number).permutation(rows)[: int(share * len(y))]
        parts.append(_standardised(X, y, rows, test, number))
    return parts


def _tests(data: np.lib.npyio.NpzFile, n: int) -> list[np.ndarray]:
    """Masks of the test rows: published ones, or seeded ones."""
    if "test_fold" in data:
        return [data["test_fold"] == number for number in range(SPLITS)]
    orders = [np.random.default_rng(number).permutation(n)[: n // 10] for number in range(SPLITS)]
    return [np.isin(np.arange(n), rows) for rows in orders]


def _standardised(X: np.ndarray, y: np.ndarray, rows: np.ndarray, test: np.ndarray, number: int) -> Split:
    deviation = X[rows].std(axis=0)
    Z = ((X - X[rows].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))[:, deviation > 0]
    t = (y - y[rows].mean()) / y[rows].std()
    searched = np.sort(np.random.default_rng(number).permutation(len(rows))[:SEARCHED])
    return Split(Z[rows], t[rows], Z[test], t[test], searched)


def ours(split: Split) -> Score:
    """Mercer on one split."""
    start, d = time.process_time(), split.X.shape[1]
    kernel = kernels.Constant(1.0) * kernels.Matern([np.sqrt(d)] * d, nu=1.5)
    kernel = kernel.bounded(**{p.name: SCALE_BOUNDS for p in kernel.parameters})
    model = GaussianProcessRegressor(kernel, noise=NOISE, noise_bounds=NOISE_BOUNDS, n_jobs=1)
    model.fit(split.X[split.searched], split.y[split.searched])
    if len(split.searched) < len(split.y):
        model = GaussianProcessRegressor(model.kernel_, noise=model.noise_, optimizer=None, n_jobs=1)
        model.fit(split.X, split.y)
    mean, deviation = model.predict(split.X_test, return_std=True)
    variance = deviation**2 + model.noise_
    return _score(split, mean, variance, model.log_marginal_likelihood_value_, start)


def theirs(split: Split) -> Score:
    """scikit-learn on one split; its White term counts as noise of new rows, too."""
    start, d = time.process_time(), split.X.shape[1]
    kernel = their.ConstantKernel(1.0, SCALE_BOUNDS) * their.Matern([np.sqrt(d)] * d, SCALE_BOUNDS, nu=1.5)
    model = Peer(kernel + their.WhiteKernel(NOISE, NOISE_BOUNDS))
    model.fit(split.X[split.searched], split.y[split.searched])
    if len(split.searched) < len(split.y):
        model = Peer(model.kernel_, optimizer=None, copy_X_train=False).fit(split.X, split.y)
    mean, deviation = model.predict(split.X_test, return_std=True)
    return _score(split, mean, deviation**2, model.log_marginal_likelihood_value_, start)


def _score(split: Split, mean: np.ndarray, variance: np.ndarray, evidence: float, start: float) -> Score:
    squares = (split.y_test - mean) ** 2
    densities = -0.5 * (np.log(2.0 * np.pi * variance) + squares / variance)
    return Score(squares, densities, float(evidence), time.process_time() - start)


def over(function: Callable[[Split], Score], parts: list[Split], at_once: int) -> list[Score]:
    """Scores of splits, each on one thread."""

    def one(number: int, split: Split) -> Score:
        with threadpool_limits(1), warnings.catch_warnings():
            # Length scales of columns that do not matter end at their bounds, on both sides.
            warnings.simplefilter("ignore")
            score = function(split)
        rmse, density = score.figures
        tell(f"  {function.__name__} {number}: {rmse:.4f}, {density:.4f}, {score.seconds:.0f} s")
        return score

    return Parallel(n_jobs=at_once)(delayed(one)(number, split) for number, split in enumerate(parts))


def error_of_mean(values: np.ndarray) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def error_of(scores: list[Score], measure: int) -> float:
    """The standard error of a figure over splits, or over test rows where there are few splits.

    An RMSE is, to first order, a mean over rows: that of the squared errors over twice the RMSE.
    """
    if len(scores) >= FEW:
        return error_of_mean(np.array([score.figures[measure] for score in scores]))
    rows = [score.densities if measure else score.squares / (2.0 * score.figures[0]) for score in scores]
    return error_of_mean(np.concatenate(rows))


def worse_by(mine: list[Score], other: list[Score], measure: int) -> tuple[float, float]:
    """How much worse the first is on the splits that both have, and the standard error of the paired differences.

    The difference of two RMSE is exactly a mean over rows: that of the differences of the squared errors over the sum
    of both.
    """
    pairs = list(zip(mine, other, strict=False))
    sign = (1.0, -1.0)[measure]
    over_splits = sign * np.array([a.figures[measure] - b.figures[measure] for a, b in pairs])
    if len(pairs) >= FEW:
        return float(over_splits.mean()), error_of_mean(over_splits)
    rows = [
        b.densities - a.densities if measure else (a.squares - b.squares) / (a.figures[0] + b.figures[0])
        for a, b in pairs
    ]
    return float(over_splits.mean()), error_of_mean(np.concatenate(rows))


def rows_of(folder: Path, name: str, count: int = SPLITS) -> list[Row]:
    """What the first ``count`` splits of a data set give: rows for the RMSE, the log density, a published figure."""
    task = TASKS[name]
    parts = splits(folder, task)[:count]
    n = len(parts[0].y)
    tell(f"{name}: {n} training rows, {parts[0].X.shape[1]} columns")
    mine = over(ours, parts, 2)
    # Two at once, but for what takes four arrays of n x n and more.
    other = over(theirs, parts[: task.peer_splits], 2 if n <= 5000 else 1)
    rows = [_beside_peer(name, n, mine, other, measure) for measure in (0, 1)]
    if task.published is not None:
        rows.append(_beside_published(folder, name, task.published, count))
    return rows


def _beside_published(folder: Path, name: str, published: float, count: int) -> Row:
    """With as many training rows as the published figure had."""
    mine = over(ours, splits(folder, TASKS[name], PUBLISHED_SHARE)[:count], 2)
    mean, error = float(np.mean([score.figures[0] for score in mine])), error_of(mine, 0)
    seconds = float(np.mean([score.seconds for score in mine]))
    note = f"{mean:.4f} +- {error:.4f} from 4/9 of the rows; published {published:.3f} from as many, on other splits"
    if count < SPLITS:
        note += f"; only {count} of {SPLITS} splits"
    case, peer, demand = f"{name}, RMSE, published", "exact GP of Wang et al.", "within a standard error"
    return Row(case, peer, seconds, None, demand, mean <= published + error, note, {"ours": mean, "error": error})


def _beside_peer(name: str, n: int, mine: list[Score], other: list[Score], measure: int) -> Row:
    own, rival = (float(np.mean([score.figures[measure] for score in scores])) for scores in (mine, other))
    seconds, peer_seconds = (float(np.mean([score.seconds for score in scores])) for scores in (mine, other))
    error, (worse, worse_error) = error_of(mine, measure), worse_by(mine, other, measure)
    note = f"{own:.4f} +- {error:.4f}; scikit-learn {rival:.4f}"
    if len(other) < len(mine):
        note += f" on split {'0' if len(other) == 1 else f'0 to {len(other) - 1}'}"
    note += f"; there worse by {worse:.5f} +- {worse_error:.5f}"
    gains = [a.evidence - b.evidence for a, b in zip(mine, other, strict=False)]
    note += f"; log evidence above by {min(gains):.2g} to {max(gains):.2g}"
    if n > SEARCHED:
        note += f"; hyper-parameters from {SEARCHED} of {n} rows"
    if len(mine) < SPLITS:
        note += f"; only {len(mine)} of {SPLITS} splits"
    if len(mine) < FEW:
        note += ", errors over test rows"
    facts = {"ours": own, "error": error, "peer": rival, "worse": worse, "worse_error": worse_error}
    label, met = ("RMSE", "log density")[measure], worse <= worse_error + UNSEEN
    demand = "within a standard error"
    return Row(f"{name}, {label}", "scikit-learn", seconds, peer_seconds, demand, met, note, facts)


def run() -> list[Row]:
    """All rows of the section."""
    folder = data_folder()
    if folder is None:
        return []
    return [row for name in TASKS for row in rows_of(folder, name)]


def write(name: str, rows: list[Row]) -> None:
    """Put the rows of one data set in the results, in the place of its last ones."""
    sections = read_sections()
    before = sections["uci_gp"].rows if "uci_gp" in sections else []
    by_set = {task: [row for row in before if row.case.startswith(f"{task}, ")] for task in TASKS} | {name: rows}
    command = "python benchmarks/uci_gp.py --write"
    together = [row for task in TASKS for row in by_set[task]]
    write_sections(sections | {"uci_gp": Section(TITLE, machine(), str(datetime.date.today()), command, together)})


def main(arguments: list[str]) -> int:
    """Measure the sets that are named, or all; 1 if a demand is not met, 2 if there is no such set."""
    names = [a for a in arguments if not a.startswith("--")] or list(TASKS)
    unknown = [name for name in names if name not in TASKS]
    folder = data_folder()
    if unknown or folder is None:
        print(f"no set {unknown[0]!r}; there are {', '.join(TASKS)}" if unknown else "there are no data sets")
        return 2
    count = next((int(a.split("=", 1)[1]) for a in arguments if a.startswith("--splits=")), SPLITS)
    all_met = True
    for name in names:
        rows = rows_of(folder, name, count)
        print(*rows, sep="\n", flush=True)
        all_met &= all(row.met for row in rows)
        if "--write" in arguments:
            write(name, rows)
    return 0 if all_met else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
