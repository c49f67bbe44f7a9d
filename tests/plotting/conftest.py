"""Pictures without a window, closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    from matplotlib import pyplot  # noqa: PLC0415 - after the backend is chosen

    yield
    pyplot.close("all")
