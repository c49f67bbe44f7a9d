"""The three sentences at the top: how good the predictions are, how good the solution is, and what to do."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import entropy

from mercer._types import AnyArray
from mercer.data.words import counted, significant
from mercer.reports.baselines import Baseline
from mercer.reports.judged import Judged
from mercer.reports.material import WORDS_OF_KIND, Material
from mercer.reports.score_words import TREES, score_name, with_article
from mercer.reports.scores import CLEAR, lead
from mercer.reports.solution_words import SMALL_GAP, ended_early, solution_words
from mercer.solvers.solution import Certificate

# A larger share of far rows is worth a warning; 5 % are to be expected.
_MANY = 0.2


def verdict(material: Material) -> tuple[str, str, str]:
    """Return the sentences."""
    return _quality(material), _solution(material), _advice(material)


def margin(judged: Judged, baseline: Baseline) -> float:
    """Return by how many standard errors the mean loss of the model is below that of a simple one.

    Parameters
    ----------
    judged : Judged
    baseline : Baseline
        Its losses, on the same rows.
    """
    return lead(judged.losses, baseline.losses)


def _quality(material: Material) -> str:
    subject, judged = material.subject, material.judged
    if judged is None:
        return _recorded(material)
    rows = f"{counted(judged.n, 'row')} {WORDS_OF_KIND[judged.kind]}"
    if not judged.is_finite:
        bad = int((~np.isfinite(judged.predicted.reshape(judged.n, -1)).all(axis=1)).sum())
        return f"{subject.name} predicts NaN or infinity for {bad} of {rows}: it cannot be used as it is."
    scores = judged.scores()
    if judged.task == "classification":
        own = f"{subject.name} predicts the class of {scores['accuracy']:.1%} of {rows} correctly"
    else:
        known = "" if math.isnan(scores["r2"]) else f" (R² {scores['r2']:.3g})"
        own = f"The root mean squared error of {subject.name} is {significant(scores['rmse'])}{known} on {rows}"
    quality = f"{own}{_compared(material, judged)}."
    # The model has seen these rows; the score of the fit is of others.
    has_scores = judged.kind == "fit" and material.record is not None and material.record.get("scores")
    return f"{_recorded(material)} {quality}" if has_scores else quality


def _compared(material: Material, judged: Judged) -> str:
    models = material.baselines.models if material.baselines is not None else ()
    if not models:
        return ""
    best = _best(models)
    scores = best.scores
    score = f"{scores['accuracy']:.1%}" if judged.task == "classification" else significant(scores["rmse"])
    by = margin(judged, best)
    if abs(by) <= CLEAR:
        how = "which is not distinguishable from"
    else:
        size = "" if math.isinf(by) else f", by {abs(by):.1f} standard errors,"
        how = f"which is {'better' if by > 0 else 'worse'}{size} than"
    return f", {how} {with_article(best.name)} ({score})"


def _entropy(labels: AnyArray) -> float:
    """The log loss of the shares of the classes among these very rows, which is the least of any constant shares."""
    return float(entropy(np.unique(labels, return_counts=True)[1]))


def _best(models: tuple[Baseline, ...]) -> Baseline:
    """The one with the least loss; among equal ones the constant, which is the last and the simplest."""
    return min(reversed(models), key=lambda model: float(f"{model.losses.mean():.9g}"))


def _recorded(material: Material) -> str:
    """The score that the model file has, where no rows were given."""
    record = material.record
    if record is None or not record.get("scores"):
        return f"How well this {material.subject.name} predicts is not known here: no rows with targets were given."
    (name, own), *others = record["scores"].items()
    metric = next(iter(own))
    rest = ", ".join(f"{with_article(other)} {values.get(metric, math.nan):.3g}" for other, values in others)
    words = score_name(metric)
    rows = counted(record["rows"]["held_out"], "row")
    return f"On {rows} held out by mercer fit, {name} has {words} {own[metric]:.3g}{rest and '; '}{rest}."


def certificate_of(material: Material) -> Certificate | None:
    """Return the certificate of the learner, if it has one."""
    result = getattr(material.subject.learner, "certificate_", None)
    return result if isinstance(result, Certificate) else None


def _solution(material: Material) -> str:
    certificate = certificate_of(material)
    if certificate is None:
        return f"{material.subject.name} has no certificate: it solves no problem whose optimum could be bounded."
    return solution_words(certificate)


def _advice(material: Material) -> str:
    judged, certificate = material.judged, certificate_of(material)
    if judged is not None and not judged.is_finite:
        return "Fit the model again, on scaled columns and finite values."
    if certificate is not None and ended_early(certificate) and not certificate.relative_gap <= SMALL_GAP:
        return "Fit it again with a higher max_iter, a larger tol or scaled columns before relying on it."
    if judged is None:
        return "Give the report rows with targets that were not used for the fit, to learn how good it is today."
    if judged.kind == "fit":
        return "The scores flatter the model, which has seen these rows: judge it on others before relying on it."
    known = material.baselines.models if material.baselines is not None else ()
    models = tuple(model for model in known if model.name != TREES)
    by = margin(judged, best := _best(models)) if models else math.inf
    if 0 < by <= CLEAR and best is not models[-1]:
        return (
            f"More rows would tell whether it is better than the {best.name}; or search for other parameters of this "
            "one (mercer tune, KernelSearchCV)."
        )
    if by <= CLEAR and best is not models[-1]:
        return "Prefer the simpler model, or search for other parameters of this one (mercer tune, KernelSearchCV)."
    told = judged.scores()
    if by <= CLEAR and told.get("log_loss", math.inf) < _entropy(judged.truth):
        area = f"AUC {told['auc']:.3f}, " if "auc" in told else ""
        return (
            f"The probabilities tell the classes apart ({area}log loss {told['log_loss']:.3g} against "
            f"{_entropy(judged.truth):.3g} of the shares of the classes), although rare ones are not predicted: decide "
            "by a threshold of your own."
        )
    if by <= CLEAR:
        ahead = "as well" if by >= -CLEAR else "better"
        return (
            f"The {best.name} does {ahead}, so the data may not tell the target: look for other columns, add rows, or "
            "search for other parameters (mercer tune, KernelSearchCV)."
        )
    if any(margin(judged, model) < -CLEAR for model in known):
        return "Gradient boosting does better here: search for other parameters (mercer tune, KernelSearchCV)."
    far = 0.0 if material.far is None else material.far.share
    if far > _MANY:
        return f"Be careful with {far:.0%} of these rows, which are far from all training rows: there it extrapolates."
    return "This report gives no reason against using it on rows like these."
