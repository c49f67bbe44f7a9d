"""Compare the score of a fit with those of the linear and the constant model, and suggest what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from mercer.cli.command import FLAGS
from mercer.cli.job import Job
from mercer.cli.learners import usage
from mercer.cli.options import FitOptions
from mercer.reports.score_words import score_name, score_text
from mercer.reports.scores import Scores

_METRICS = {"classification": "accuracy", "regression": "r2"}
# Decimals of a score; those that differ in later ones alone are called equal.
_DECIMALS = 4
# Kernels that see about what the linear model sees of such columns.
_SIMPLE = {
    "text": "BagOfWords().normalized()",
    "tree": "PartialTree(0.4, 0.4).normalized()",
    "graph": "VertexHistogram().normalized()",
}
# Settings that belong to the kernel or to the learner which the proposal replaces.
_OF_THE_OLD = ("C", "alpha", "gamma", "degree", "coef0", "nu", "epsilon", "tol", "noise")

_NO_SIGNAL = " So these columns may not tell the target; look at what was left out, or add rows and columns."

# Options of one value, in the order of the help.
_PLAIN = (
    "target",
    "task",
    "model",
    "kernel",
    "normalize",
    "impute",
    "axes",
    "encoding",
    "sheet",
    "approximation",
    "landmarks",
    "certify",
    "test_size",
    "rows",
    "seed",
    "memory",
    "n_jobs",
)


def advice(scores: Mapping[str, Scores], options: FitOptions, job: Job) -> dict[str, str] | None:
    """Return advice if a simpler model scores higher on the held-out rows: ``text``, and the ``command`` to try.

    None if there is no score, or if the fitted model, the first among the scores, is at least as good as the others and
    better than the last one, the constant model. The command, a fit with a simpler kernel, is empty where the linear
    model is no better than the constant.
    """
    if not scores:
        return None
    metric = _METRICS[job.target.task]
    (mine, its), *others = ((name, row[metric]) for name, row in scores.items())
    (constant, least), own = others[-1], round(its, _DECIMALS)
    # The constant comes first, and is taken where the linear model is as good.
    rival, best = max(reversed(others), key=lambda pair: round(pair[1], _DECIMALS))
    if round(best, _DECIMALS) > own:
        difference = f"{score_text(metric, best)} against {score_text(metric, its)}"
        difference += _in_rows(metric, best - its, len(job.test))
        verdict = f"The {rival} scores higher than {mine} on the held-out rows ({score_name(metric)} {difference})."
    elif round(least, _DECIMALS) == own:
        rival, score = constant, f"{score_name(metric)} {score_text(metric, least)}"
        verdict = f"The {rival} scores as high as {mine} on the held-out rows ({score})."
    else:
        return None
    if rival == constant and len(others) > 1:
        return {"text": verdict + _NO_SIGNAL, "command": ""}
    command = _next(options, job)
    return {"text": verdict, "command": ""} if command is None else {"text": f"{verdict} Try:", "command": command}


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
    settings = [item for item in options.settings if item.partition("=")[0].strip() not in _OF_THE_OLD]
    return {"text": f"{text} Try:", "command": command_line(replace(options, kernel="linear", settings=settings))}


def _in_rows(metric: str, difference: float, held_out: int) -> str:
    if metric != "accuracy":
        return ""
    count = round(difference * held_out)
    return f", {count} of {held_out} row{'s' if held_out != 1 else ''}"


def _next(options: FitOptions, job: Job) -> str | None:
    """The command with a simpler kernel; with the learner of the linear model where the kernel is simple already."""
    roles = sorted(set(job.schema.roles.values()))
    if usage(job.model, job.target.task).raw:
        encoded = _for_encoded(options, job)
        if encoded is None:
            return None
        options, roles = encoded, list(encoded.roles.values())
    if len(roles) > 1 or (roles and roles[0] not in _SIMPLE):
        return None
    simple = _SIMPLE[roles[0]] if roles else "linear"
    settings = [item for item in options.settings if item.partition("=")[0].strip() not in _OF_THE_OLD]
    variant = replace(options, kernel=simple, settings=settings)
    if options.kernel == simple or options.kernel == "Linear()":
        model = "logistic" if job.target.task == "classification" else "ridge"
        if job.model == model:
            return None
        variant = replace(variant, model=model)
    elif options.model is not None and not _is_advised(options.model, job.target.task):
        variant = replace(variant, model=None)
    return command_line(variant)


def _for_encoded(options: FitOptions, job: Job) -> FitOptions | None:
    """The options for learners of encoded tables, which have no dates, no gaps among numbers, and text alone or not.

    None if no column would be left.
    """
    kinds = job.schema.kinds
    texts = [name for name, kind in kinds.items() if kind == "text"]
    is_bare = bool(kinds) and set(kinds.values()) <= {"date", "text"}
    if is_bare and len(texts) != 1:
        return None
    numbers = [name for name, kind in kinds.items() if kind in ("number", "boolean")]
    gaps = bool(numbers) and bool(job.columns[numbers].isna().to_numpy().any())
    compared = texts if is_bare else []
    unread = [name for name, kind in kinds.items() if kind in ("date", "text") and name not in compared]
    drop = [*options.drop, *(name for name in unread if name not in options.drop)]
    roles = dict.fromkeys(compared, "text")
    return replace(options, impute="median" if gaps else None, drop=drop, roles=roles, model=None)


def _is_advised(model: str, task: str) -> bool:
    use = usage(model, task)
    return use.advised and not use.raw


def tuning(options: FitOptions, job: Job) -> str:
    """Return the command that searches for parameters of the same learner; empty where nothing is left to search."""
    use = usage(job.model, job.target.task)
    if options.tune is not None or use.raw or use.left_open is None:
        return ""
    settings = [item for item in options.settings if item.partition("=")[0].strip() not in _OF_THE_OLD]
    return command_line(replace(options, tune=60.0, model=job.model, settings=settings))


def command_line(options: FitOptions) -> str:
    """Return the command line of a fit, or of a search.

    >>> command_line(FitOptions("my data.csv", target="y", kernel="linear", drop=["id"]))
    "mercer fit 'my data.csv' --target y --kernel linear --drop id"
    """
    plain = FitOptions(options.data)
    words = ["mercer", "fit" if options.tune is None else "tune", options.data]
    for name in _PLAIN:
        value = getattr(options, name)
        if value != getattr(plain, name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += [option for name, option in FLAGS.items() if getattr(options, name)]
    words += [] if options.refit else ["--no-refit"]
    words += [word for kernel in options.kernels[1:] for word in ("--kernel", kernel)]
    if options.tune is not None:
        words += ["--budget", f"{options.tune:g}s"]
        words += [] if options.folds == plain.folds else ["--folds", str(options.folds)]
    for option, values in (("--set", options.settings), ("--drop", options.drop)):
        words += [word for value in values for word in (option, value)]
    for column, role in options.roles.items():
        words += [f"--{role}", column]
    if options.out is not None:
        words += ["--out", str(options.out)]
    return shlex.join(words)
