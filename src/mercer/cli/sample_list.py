"""``mercer samples``: the list of sample data sets."""

from __future__ import annotations

from mercer.cli.show import Printer
from mercer.data.samples import samples as all_samples


def samples(json: bool) -> None:
    """List the sample data sets."""
    printer = Printer(json=json)
    entries = all_samples()
    printer.object(
        {
            sample.name: {"task": sample.task, "rows": sample.rows, "columns": sample.columns, "about": sample.about}
            for sample in entries
        }
    )
    printer.listed(
        "Sample data sets",
        ["name", "task", "rows", "columns", "what it is"],
        [[s.name, s.task, str(s.rows), str(s.columns), s.about] for s in entries],
    )
    printer.say("Use one with: mercer fit sample:iris", "dim")
