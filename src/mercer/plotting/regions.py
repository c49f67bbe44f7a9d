"""Regions of one or two features: pale colours behind the rows, and the lines between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import AnyArray, Vector
from mercer.plotting.palette import INK, pale


def fill(ax: Any, grid: tuple[Vector, ...], codes: AnyArray, count: int, heights: tuple[float, float]) -> Any:
    """Draw regions by number; ``heights`` is the range of the second axis where there is one feature."""
    colours = np.array([pale(number) for number in range(count)])
    low, high = heights if len(grid) == 1 else (grid[1][0], grid[1][-1])
    return ax.imshow(
        colours[np.atleast_2d(codes)],
        origin="lower",
        extent=(grid[0][0], grid[0][-1], low, high),
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )


def border(ax: Any, grid: tuple[Vector, ...], surface: AnyArray, height: float, *, dashed: bool = False) -> list[Any]:
    """Draw where a surface over two features has a height; an empty list if it has it nowhere."""
    # matplotlib warns of a level that a surface does not reach.
    if not surface.min() < height < surface.max():
        return []
    options = {"linestyles": ["--"], "linewidths": [1.0]} if dashed else {"linestyles": ["-"], "linewidths": [1.4]}
    return [ax.contour(*grid, surface, levels=[height], colors=[INK], **options)]


def borders(ax: Any, grid: tuple[Vector, ...], codes: AnyArray, count: int) -> list[Any]:
    """Draw the lines between regions over two features."""
    return [line for code in range(count) for line in border(ax, grid, (codes == code).astype(float), 0.5)]
