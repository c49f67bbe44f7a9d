"""The section on new rows that are far from the training rows in feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.plotting.drawing import legend
from mercer.plotting.palette import COLOURS, INK
from mercer.reports.document import Figure, Section, Table
from mercer.reports.material import Material


def distance(material: Material) -> Section | None:
    """Return how many rows are far from the training rows, if that is known."""
    distances = material.far
    if distances is None:
        return None
    which = "training rows" if material.train is not None else "rows that the model keeps"
    text = (
        f"{distances.share:.1%} of these rows are far from the {which}: in the feature space of the kernel, the "
        "nearest of those is farther away than for 95 % of the rows of the fit. For rows like those of the fit this "
        "share is about 5 %. If it is much larger, the model extrapolates."
    )
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
    values = np.quantile(distances.training, levels), np.quantile(distances.new, levels)
    rows = zip(levels.tolist(), *(side.tolist() for side in values))
    table = Table.of("Quantiles of the distances", ("share of the rows", "rows of the fit up to", "these up to"), rows)

    def draw(ax: Any) -> None:
        for number, (values, name) in enumerate(((distances.training, which), (distances.new, "these rows"))):
            ordered, shares = np.sort(values), np.arange(1, len(values) + 1) / len(values)
            ax.plot(ordered, shares, color=COLOURS[number], linestyle=("-", "--")[number], label=name)
        ax.axvline(distances.limit, color=INK, linewidth=1.0, linestyle=":", label="95 % of the rows of the fit")
        ax.set(xlabel="distance to the nearest row", ylabel="share of the rows")
        legend(ax)

    picture = Figure("Distances in feature space", text, table, draw)
    facts = (("share of far rows", distances.share), ("far beyond", distances.limit))
    return Section("distance", "Rows far from the training rows", (text,), facts, (), (picture,))
