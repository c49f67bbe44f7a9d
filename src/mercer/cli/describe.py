"""``mercer inspect`` and ``mercer samples``: what a model file holds, and what there is to try."""

from __future__ import annotations

from pathlib import Path

from mercer.cli.show import Printer
from mercer.cli.use import load_model
from mercer.data.samples import samples as all_samples
from mercer.data.schema import Schema


def inspect(path: Path, json: bool) -> None:
    """Show the kernel, parameters, columns, scores and certificate of a model."""
    model = load_model(path)
    report = {**model.report_, "file": str(path), "file_bytes": path.stat().st_size}
    Printer(json=json).inspected(report, _columns(model.schema_))


def _columns(schema: Schema) -> dict[str, str]:
    if schema.width is not None:
        return {f"0 to {schema.width - 1}": "numbered columns of a libsvm file"}
    described = {}
    for name, kind in schema.kinds.items():
        values = schema.categories.get(name, [])
        more = ", ..." if len(values) > 8 else ""
        described[name] = kind if kind != "category" else f"category: {', '.join(values[:8])}{more}"
    return described


def samples(json: bool) -> None:
    """List the sample data sets."""
    printer = Printer(json=json)
    known = all_samples()
    printer.object(
        {
            sample.name: {"task": sample.task, "rows": sample.rows, "columns": sample.columns, "about": sample.about}
            for sample in known
        }
    )
    printer.listed(
        "Sample data sets",
        ["name", "task", "rows", "columns", "what it is"],
        [[s.name, s.task, str(s.rows), str(s.columns), s.about] for s in known],
    )
    printer.say("Use one as: mercer fit sample:iris", "dim")
