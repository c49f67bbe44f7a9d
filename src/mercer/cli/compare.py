"""Compare the score of a fit with those of the linear and the constant model, and suggest what to try next."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from mercer._errors import MercerError
from mercer._registered import model_class
from mercer.cli.command import command_line
from mercer.cli.job import Job
from mercer.cli.learners import usage
from mercer.cli.options import FitOptions, TuneOptions
from mercer.data.date_columns import expand_dates, find_dates
from mercer.reports.score_words import TREES, score_name, score_text, with_article
from mercer.reports.scores import CLEAR, Scores, lead
from mercer.reports.scores import scores as scores_of

_METRICS = {"classification": "accuracy", "regression": "r2"}
# Decimals of a score; those that differ in later ones alone are called equal.
_DECIMALS = 4
# Kernels with the features that the linear model has of such columns; of trees, the counts of labels are among them.
_SIMPLE = {
    "text": r'BagOfWords(pattern="\\b\\w+\\b")',
    "tree": "PartialTree(0.4, 0.4).normalized()",
    "graph": "VertexHistogram()",
}
# Settings that belong to the kernel or to the learner which the proposal replaces.
_OF_THE_OLD = ("C", "alpha", "gamma", "degree", "coef0", "nu", "epsilon", "tol", "noise")

_NO_SIGNAL = " So these columns may not tell the target; look at what was left out, or add rows and columns."


def advice(
    scores: Mapping[str, Scores],
    predicted: Mapping[str, np.ndarray],
    options: FitOptions,
    job: Job,
    trial: Callable[[FitOptions], np.ndarray],
) -> dict[str, str] | None:
    """Return advice if another model scores higher on the held-out rows: ``text``, and the ``command`` to try.

    None if there is no score, or if the fitted model, the first among the scores, is at least as good as the others and
    better than the last one, the constant model. The command fits the linear model, or the kernel that comes nearest to
    it. It is tried first, and is empty unless its errors are less by more than two standard errors.

    Parameters
    ----------
    scores : dict of str to scores
        On the held-out rows.
    predicted : dict of str to ndarray of shape (m,)
        What each of these models predicts for these rows.
    options : FitOptions
    job : Job
    trial : callable
        Returns what a fit with other options predicts for the same rows.
    """
    if not scores:
        return None
    metric = _METRICS[job.target.task]
    if metric == "accuracy" and "class_weight" in _names(options):
        # Whoever counts all classes alike gives up accuracy for it.
        metric = "balanced_accuracy"
    (mine, its), *others = ((name, row[metric]) for name, row in scores.items())
    (constant, least), own = others[-1], round(its, _DECIMALS)
    y = job.target.values[job.test]
    if not np.isin(y, job.target.values[job.train]).all() and metric != "r2":
        # Of classes that no row had to learn from, no model can know.
        return None
    losses = {name: _losses(metric, y, its) for name, its in predicted.items()}
    if TREES in losses and lead(losses[TREES], losses[mine]) <= CLEAR:
        # They are no simpler model.
        others = [pair for pair in others if pair[0] != TREES]
    # The constant comes first, and is taken where another model is as good.
    rival, best = max(reversed(others), key=lambda pair: round(pair[1], _DECIMALS))
    if round(best, _DECIMALS) > own:
        difference = f"{score_text(metric, best)} against {score_text(metric, its)}"
        difference += _in_rows(metric, best - its, len(job.test))
        name = with_article(rival)
        verdict = f"{name[0].upper()}{name[1:]} scores higher than {mine} on the held-out rows ({score_name(metric)} "
        verdict += f"{difference})."
        if rival != constant and lead(losses[rival], losses[mine]) <= CLEAR:
            return {"text": f"{verdict} More rows would tell which is better.", "command": ""}
    elif round(least, _DECIMALS) == own:
        rival, score = constant, f"{score_name(metric)} {score_text(metric, least)}"
        verdict = f"The {rival} scores as high as {mine} on the held-out rows ({score})."
    else:
        return None
    if rival == constant and scores[mine].get("log_loss", math.inf) < scores[constant].get("log_loss", -math.inf):
        return _about_rare_classes(verdict, mine, scores, options, job)
    if rival == constant and len(others) > 1:
        return {"text": verdict + _NO_SIGNAL, "command": ""}
    variant = _simpler(rival, options, job)
    if variant is None:
        return {"text": verdict, "command": ""}
    try:
        other = trial(variant)
    except MercerError:
        # Such a fit may need more memory, or the table may hold what the encoding of other learners cannot read.
        return {"text": verdict, "command": ""}
    if lead(_losses(metric, y, other), losses[mine]) <= CLEAR:
        return {"text": verdict, "command": ""}
    found = scores_of(job.target.task, y, other)[metric]
    return {
        "text": f"{verdict} Try ({score_name(metric)} {score_text(metric, found)}):",
        "command": command_line(variant),
    }


def _losses(metric: str, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Whether each row is predicted wrongly, or its squared error in units of the largest, whose square is a number."""
    if metric == "r2":
        return np.square((y - predicted) / (np.abs(y - y.mean()).max() or 1.0))
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return (y != predicted) / (counts[codes] if metric == "balanced_accuracy" else 1.0)


def advice_beside_constant(scores: Mapping[str, Scores], options: FitOptions) -> dict[str, str] | None:
    """Return advice if a fit in blocks is no better than the constant on the held-out rows: ``text`` and ``command``.

    A regression is compared by R², a classifier by the log loss, against that of the shares of the classes, or by the
    accuracy if it has no probabilities. None if there is no score, or the fit, the first of the two, is better.

    >>> scores = {"KernelRidge": {"r2": -0.2}, "mean of the target": {"r2": -0.01}}
    >>> hint = advice_beside_constant(scores, FitOptions("a.csv", approximation="nystroem"))
    >>> hint["text"][:78]
    'The mean of the target scores higher than KernelRidge on the held-out rows (R²'
    >>> hint["command"]
    'mercer fit a.csv --kernel linear --approximation nystroem'
    """
    if not scores:
        return None
    (mine, its), (constant, simple) = scores.items()
    metric = next(name for name in ("r2", "log_loss", "accuracy") if name in its)
    ahead = (simple[metric] - its[metric]) * (-1 if metric == "log_loss" else 1)
    if not ahead >= 0:
        return None
    rival, verb = constant, "scores higher than" if ahead > 0 else "scores as high as"
    if metric == "log_loss":
        # As in the report, its probabilities are the shares of the classes.
        rival, verb = "share of each class", "predicts better than" if ahead > 0 else "predicts as well as"
    figures = f"{score_name(metric)} {score_text(metric, simple[metric])} against {score_text(metric, its[metric])}"
    text = f"The {rival} {verb} {mine} on the held-out rows ({figures}).{_NO_SIGNAL}"
    if options.kernel in ("linear", "Linear()"):
        return {"text": text, "command": ""}
    settings = _without_old(options)
    return {"text": f"{text} Try:", "command": command_line(replace(options, kernel="linear", settings=settings))}


def _names(options: FitOptions) -> list[str]:
    """The parameters that are set."""
    return [item.partition("=")[0].strip() for item in options.settings]


def _without_old(options: FitOptions) -> list[str]:
    """The settings that do not belong to what a proposal replaces."""
    return [item for name, item in zip(_names(options), options.settings, strict=True) if name not in _OF_THE_OLD]


def _about_rare_classes(
    verdict: str, mine: str, scores: Mapping[str, Scores], options: FitOptions, job: Job
) -> dict[str, str]:
    """What the probabilities tell of a class that is too rare to be predicted, and a fit that predicts it."""
    its, *_, constant = scores.values()
    area = f"AUC {score_text('auc', its['auc'])}, " if "auc" in its else ""
    loss = " against ".join(score_text("log_loss", one["log_loss"]) for one in (its, constant))
    text = (
        f"{verdict} But its probabilities tell the classes apart ({area}log loss {loss} of the shares of the classes): "
        f"decide by those of {mine} with a threshold of your own"
    )
    if (
        "class_weight" in _names(options)
        or "class_weight" not in model_class(job.model, job.target.task)().get_params()
    ):
        return {"text": f"{text}.", "command": ""}
    balanced = replace(options, settings=[*options.settings, "class_weight=balanced"])
    return {"text": f"{text}, or count all classes alike:", "command": command_line(balanced)}


def _in_rows(metric: str, difference: float, held_out: int) -> str:
    if metric != "accuracy":
        return ""
    count = round(difference * held_out)
    return f", {count} of {held_out} row{'s' if held_out != 1 else ''}"


def _simpler(rival: str, options: FitOptions, job: Job) -> FitOptions | None:
    """The options of a fit of the linear model of that name, or beside trees of the default; None if there is none."""
    task, raw = job.target.task, usage(job.model, job.target.task).raw
    if rival == TREES:
        chosen = ("model", "kernel", "kernels", "settings", "normalize", "impute", "tune", "folds", "log")
        kept_options = {name: value for name, value in vars(options).items() if name not in chosen}
        return None if raw or job.schema.roles else FitOptions(**kept_options)
    model, penalty = ("logistic", "C") if task == "classification" else ("ridge", "alpha")
    names = _names(options)
    if "kinds" in names:
        # A parameter of the learners alone that encode the columns themselves.
        return None
    kept = model_class(model, task)().get_params(deep=False).keys() - set(_OF_THE_OLD)
    settings = [item for name, item in zip(names, options.settings, strict=True) if name in kept]
    kinds = job.schema.kinds
    texts = [name for name, kind in kinds.items() if kind == "text" and name not in options.text] if raw else []
    roles = {**job.schema.roles, **options.roles, **dict.fromkeys(texts, "text")}
    kernel = _linear_kernel(rival, roles, job)
    if kernel is None:
        return None
    numbers = [name for name, kind in kinds.items() if kind in ("number", "boolean")]
    gaps = raw and bool(numbers) and bool(job.columns[numbers].isna().to_numpy().any())
    changes = {
        "model": model,
        "kernel": kernel,
        # As of the linear model.
        "settings": [*settings, f"{penalty}=1"],
        "text": [*options.text, *texts],
        "impute": "median" if gaps else options.impute,
    }
    without = ("kernels", "tune", "folds", "log")
    return FitOptions(**{name: value for name, value in vars(options).items() if name not in without} | changes)


def _linear_kernel(rival: str, roles: Mapping[str, str], job: Job) -> str | None:
    """The kernel whose features the linear model has; None if there is none."""
    simple = {**_SIMPLE, **({"text": "Spectrum(1)"} if rival.endswith("letters") else {})}
    if not set(roles.values()) <= simple.keys():
        return None
    kinds = {name: kind for name, kind in job.schema.kinds.items() if name not in roles}
    if not roles:
        return "linear"
    if not kinds and len(roles) == 1:
        return simple[next(iter(roles.values()))]
    dates = [name for name, kind in kinds.items() if kind == "date"]
    plain = [name for name in kinds if name not in dates]
    if dates:
        # Each is read as several columns.
        plain += list(expand_dates(job.columns[dates], find_dates(job.columns[dates]), ""))
    parts = [f"{simple[role]}.on([{json.dumps(name, ensure_ascii=False)}])" for name, role in roles.items()]
    return " + ".join([*([f"Linear().on({json.dumps(plain, ensure_ascii=False)})"] if plain else []), *parts])


def tuning(options: FitOptions, job: Job) -> str:
    """Return the command that searches for parameters of the same learner; empty where nothing is left to search."""
    use = usage(job.model, job.target.task)
    if options.tune is not None or use.raw or use.left_open is None:
        return ""
    # A role that a column has without being asked for is lost where a model is named.
    roles = {
        role: list(dict.fromkeys([*getattr(options, role), *(n for n, its in job.schema.roles.items() if its == role)]))
        for role in ("text", "tree")
    }
    settings = _without_old(options)
    return command_line(
        TuneOptions(**{**vars(options), **roles, "tune": 60.0, "model": job.model, "settings": settings})
    )
