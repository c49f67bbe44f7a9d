"""The sections that every report has: data, scores, certificate, and how to reproduce it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mercer._types import AnyArray
from mercer.data.squares import standard_deviation
from mercer.data.words import counted
from mercer.reports.document import Section, Table
from mercer.reports.fingerprint import versions
from mercer.reports.material import WORDS_OF_KIND, Material
from mercer.reports.score_words import IN_UNITS, score_name
from mercer.reports.verdict import certificate_of, margin

_MOST_CLASSES = 30


def data(material: Material) -> Section:
    """Return what the rows and the target are."""
    facts: list[tuple[str, Any]] = []
    record, judged = material.record, material.judged
    if record is not None:
        facts += [("file of the fit", record["data"]), ("rows of the fit", record["rows"]["fitted"])]
        facts += [
            ("columns", record["columns"]),
            ("target", f"{record['target']}: {record['task']}, because {record['why']}"),
        ]
        if record["left_out"]:
            facts.append(("columns left out", ", ".join(record["left_out"])))
        gaps = [f"{name} ({counted(n, 'row')})" for name, n in record.get("missing", {}).items()]
        facts += [("gaps", ", ".join(gaps))] if gaps else []
    if material.X is not None:
        facts += _shape(material)
    tables = []
    if record is None and material.train is not None:
        facts.append(("training rows", len(material.train[1])))
    if judged is not None:
        facts.append(("judged rows", f"{judged.n}, {WORDS_OF_KIND[judged.kind]}"))
        if judged.task == "classification":
            tables.append(_classes(judged.truth, judged.predicted))
        else:
            tables.append(_numbers(judged.truth, judged.predicted))
    return Section("data", "Data and target", facts=tuple(facts), tables=tuple(tables))


def _shape(material: Material) -> list[tuple[str, Any]]:
    X = material.X
    shape = getattr(X, "shape", None) or np.shape(X[:1])
    wide = len(shape) == 2
    names = [str(name) for name in X.columns] if hasattr(X, "columns") and hasattr(X, "iloc") else []
    facts: list[tuple[str, Any]] = [
        ("rows are", counted(int(shape[1]), "column") if wide else f"objects ({type(X).__name__})")
    ]
    return facts + ([("names", ", ".join(names[:20]) + (", …" if len(names) > 20 else ""))] if names else [])


def _classes(truth: AnyArray, predicted: AnyArray) -> Table:
    counts, guesses = Counter(truth.tolist()), Counter(predicted.tolist())
    labels = sorted(counts | guesses, key=lambda label: (-counts[label], str(label)))[:_MOST_CLASSES]
    rows = [(label, counts[label], guesses[label]) for label in labels]
    more = len(counts | guesses) - len(rows)
    title = "Classes" if not more else f"Classes ({more} rarer ones left out)"
    return Table.of(title, ("class", "rows", "predicted"), [(str(a), b, c) for a, b, c in rows])


def _numbers(truth: AnyArray, predicted: AnyArray) -> Table:
    heads = ("quantity", "mean", "standard deviation", "smallest", "median", "largest")

    def row(name: str, values: AnyArray) -> tuple[Any, ...]:
        kinds = (np.mean, standard_deviation, np.min, np.median, np.max)
        return (name, *(float(kind(values)) for kind in kinds))

    return Table.of("Target and predictions", heads, [row("target", truth), row("predictions", predicted)])


def scores(material: Material) -> Section | None:
    """Return the scores beside those of the other models, or None if nothing was judged."""
    judged, record = material.judged, material.record
    if judged is None:
        if record is None or not record["scores"]:
            return None
        words = f"Scores on {record['rows']['held_out']} rows that mercer fit held out."
        return Section("scores", "Scores", (words,), tables=(_table(dict(record["scores"])),))
    text = [f"Scores on {judged.n} rows {WORDS_OF_KIND[judged.kind]}."]
    if judged.kind == "fit":
        text.append("All models have seen these rows, so the scores are better than they will be on others.")
    own = {material.subject.name: judged.scores()}
    simple_models = material.baselines
    if simple_models is None or not simple_models.models:
        text += [f"{simple_models.how}." if simple_models is not None else ""]
        return Section("scores", "Scores", tuple(line for line in text if line), tables=(_table(own),))
    text.append(f"The other models were {simple_models.how}.")
    text.append(
        "The last column says by how many standard errors of the mean difference, row by row, this model is "
        "ahead; beyond 2 a difference is clear."
    )
    by = {model.name: margin(judged, model) for model in simple_models.models}
    table = _table({**own, **{model.name: model.scores for model in simple_models.models}}, by)
    return Section("scores", "Scores", tuple(text), tables=(table,))


def _table(scores: dict[str, dict[str, float]], by: dict[str, float] | None = None) -> Table:
    metrics = list(next(iter(scores.values())))
    heads = ["model", *map(score_name, metrics)]
    rows: list[list[Any]] = [[name, *(values.get(metric) for metric in metrics)] for name, values in scores.items()]
    if by is not None:
        heads.append("ahead by (standard errors)")
        rows = [[*row, by.get(name)] for row, name in zip(rows, scores)]
    return Table.of("Scores", heads, rows, rounded=tuple(map(score_name, IN_UNITS)))


def certificate(material: Material) -> Section:
    """Return the certificate in words and numbers."""
    result = certificate_of(material)
    if result is None:
        recorded = "" if material.record is None else material.record["certificate_text"]
        text = recorded or f"{material.subject.name} has no certificate."
        return Section("certificate", "Certificate", (text,))
    lines = [line.strip() for line in result.explain().splitlines()]
    facts = (
        ("status", result.status.name),
        ("primal objective", result.primal),
        ("dual objective", result.dual),
        ("gap", result.gap),
        ("gap, of the objective", result.relative_gap),
        ("violation of optimality", result.kkt_violation),
        ("iterations", result.iterations),
        ("seconds", result.seconds),
        ("peak memory in MiB", result.peak_bytes / 2**20),
    )
    return Section("certificate", "Certificate", tuple(lines), facts)


def reproduce(material: Material) -> Section:
    """Return how to make the model and the report again."""
    facts = [*material.steps, ("seed of the report", material.seed), *versions()]
    record = material.record
    text: tuple[str, ...] = ()
    if record is not None and record.get("versions", {}).get("mercer") not in (None, dict(versions())["mercer"]):
        text = (f"The model was fitted by mercer {record['versions']['mercer']}.",)
    return Section("reproduce", "How to reproduce it", text, tuple(facts))
