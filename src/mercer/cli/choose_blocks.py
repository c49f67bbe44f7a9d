"""What a fit over landmarks leaves open, chosen on a sample of its rows: the encoding, the kernel and the penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._types import Matrix, Vector
from mercer.cli.learners import learner
from mercer.data.feature_table import FeatureTable
from mercer.data.rank_table import RankTable
from mercer.data.schema import Schema
from mercer.data.seeds import generator
from mercer.data.target import Target
from mercer.estimators.tabular.anova import MOST_PENALTY, AnovaSearch, HeldOut

# With fewer rows there is little to choose by, and defaults stand.
_FEWEST = 40
# Entries of the sample that are looked at: of wide tables, fewer rows.
_ENTRIES = 1_000_000
# Factors of the default rate of the Gaussian kernel.
_RATES = (1.0, 1 / 4, 4.0, 1 / 16, 1 / 64)
# The parameter that a model without one learns itself.
_PENALTY = {"ridge": "alpha", "logistic": "C", "svc": "C", "svr": "C"}

FoundTable = FeatureTable | RankTable


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of training with their targets.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : Target
        Of these rows.
    schema : Schema
        Columns that are used, and why others are not.
    seed : int
    """

    frame: Any
    target: Target
    schema: Schema
    seed: int

    @property
    def mean(self) -> float:
        """That of numbers."""
        return float(self._numbers.mean())

    @property
    def scale(self) -> float:
        """The standard deviation of numbers."""
        return float(self._numbers.std()) or 1.0

    @property
    def _numbers(self) -> Vector:
        numbers = self.target.task == "regression"
        return np.asarray(self.target.values, dtype=np.float64) if numbers else np.zeros(1)

    def contrasts(self) -> tuple[Matrix, float]:
        """Targets (n, t) as least squares takes them, and the variance of an indicator of a class, 1 for numbers."""
        if self.target.task == "regression":
            return ((self._numbers - self.mean) / self.scale)[:, None], 1.0
        classes, codes = np.unique(self.target.values, return_inverse=True)
        indicators = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
        indicators = indicators[:, 1:] if len(classes) == 2 else indicators
        shares = indicators.mean(axis=0)
        variance = float(np.mean(shares * (1.0 - shares))) or 1.0
        return (indicators - shares) / np.sqrt(variance), variance

    def drawn(self, features: Matrix) -> HeldOut:
        """Those rows that the entries allow, in two parts."""
        random = generator(self.seed)
        most = max(_FEWEST, _ENTRIES // self.frame.shape[1])
        chosen = random.permutation(len(features))[:most]
        return HeldOut.of(features[chosen], self.contrasts()[0][chosen], random)

    def features(self) -> FeatureTable:
        """Normal scores and indicators of the columns."""
        return FeatureTable().fit(self.frame, schema=self.schema)


@dataclass(frozen=True)
class Choice:
    """The encoding of the table, parameters of the learner, and words about how they were chosen."""

    table: FoundTable
    parameters: dict[str, Any] = field(default_factory=dict)
    words: str | None = None


@dataclass(frozen=True)
class _Candidate:
    """A choice with the error in the rows held out, and the penalty of least squares that has it."""

    choice: Choice
    error: float
    penalty: float
    held_out: int

    @property
    def doubt(self) -> float:
        """About one standard error of the error, as a share of it."""
        return 1.0 / np.sqrt(self.held_out)


def choose(sample: Sample, model: str, parameters: Mapping[str, Any]) -> Choice:
    """The encoding, and the parameters that are left open.

    Without a kernel, that of all subsets of the columns, on ranks and codes, is compared with the Gaussian one on
    normal scores and indicators. The penalty is that of least squares in either case. With the variance v of an
    indicator, the log loss has the second derivative v, and the penalty :math:`\\lambda` of least squares stands for
    :math:`C = 1 / (\\lambda v)`. The hinge and the epsilon-insensitive loss have slopes alone: of size 1, where half
    the squared loss has :math:`r / \\lambda` at a residual r, so that with their root mean square
    :math:`C = r / \\lambda`. A Gaussian process learns its kernel and its noise.

    Parameters
    ----------
    sample : Sample
    model : {"ridge", "logistic", "svc", "svr", "gp", "gpc"}
    parameters : dict
        Given by the user.
    """
    name, (targets, variance) = _PENALTY.get(model), sample.contrasts()
    if name is None:
        return Choice(sample.features())
    is_open = not {"kernel", "gamma"} & set(parameters)
    if len(targets) < _FEWEST or not np.square(targets).sum() > 0 or (name in parameters and not is_open):
        return Choice(sample.features())
    estimator = learner(model, sample.target.task, {**parameters, "approximation": None}, sample.seed)
    best = _of_features(sample, estimator, is_open)
    if is_open:
        of_ranks = _of_ranks(sample)
        # It is the best of many kernels: by luck alone it may seem a little better than the few Gaussian ones.
        if best is None or of_ranks.error < best.error * (1.0 - best.doubt):
            best = of_ranks
        if best.error > 1.0 - best.doubt:
            # Not certainly better than the mean: a function that stays close to that.
            best = replace(best, penalty=MOST_PENALTY)
    if best is None:
        return Choice(sample.features())
    chosen_parameters = dict(best.choice.parameters)
    if name not in parameters:
        chosen_parameters[name] = _in_units_of(model, best, variance)
    return Choice(best.choice.table, chosen_parameters, best.choice.words)


def _in_units_of(model: str, best: _Candidate, variance: float) -> float:
    """The penalty of least squares, as the parameter of a model."""
    if model == "ridge":
        return best.penalty
    if model == "logistic":
        return 1.0 / (best.penalty * variance)
    # Of labels -1 and 1 the standard deviation is twice that of the indicator.
    spread = 2.0 * np.sqrt(variance) if model == "svc" else 1.0
    return float(spread * np.sqrt(best.error)) / best.penalty


def _of_features(sample: Sample, estimator: Any, is_open: bool) -> _Candidate | None:
    """The Gaussian kernel of some width, or the one that is given; None if the fit will reject it."""
    table = sample.features()
    rows = sample.drawn(table.transform(sample.frame))
    choices: list[dict[str, Any]] = [{"gamma": rate / rows.rows.shape[1]} for rate in _RATES] if is_open else [{}]
    candidates = []
    for choice in choices:
        kernel = estimator.set_params(**choice).kernel_for(rows.rows)
        if kernel is None or kernel.definiteness != "positive":
            return None
        error, penalty = rows.error(kernel)
        candidates.append(
            _Candidate(Choice(table, choice, _words(rows, len(choices))), error, penalty, len(rows.others))
        )
    return min(candidates, key=lambda candidate: candidate.error)


def _of_ranks(sample: Sample) -> _Candidate:
    """The kernel of all subsets of the columns."""
    table = RankTable().fit(sample.frame, schema=sample.schema)
    rows = sample.drawn(table.transform(sample.frame))
    trial, count = AnovaSearch(rows, table.ordered_).best()
    choice = Choice(table, {"kernel": trial.kernel}, _words(rows, count))
    return _Candidate(choice, trial.error, trial.penalty, len(rows.others))


def _words(rows: HeldOut, count: int) -> str:
    n = len(rows.others)
    return f"the errors in {n:,} of {n + len(rows.rows):,} rows" + (f", {count} kernels" if count > 1 else "")
