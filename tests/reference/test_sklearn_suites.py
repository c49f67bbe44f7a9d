"""scikit-learn's own tests with Mercer's estimators in the place of its own."""

from __future__ import annotations

import pytest

from reference.sklearn_differences import DIFFERENCES, LEAST
from reference.sklearn_suites import documented, run, table


@pytest.mark.slow
@pytest.mark.parametrize("module", LEAST)
def test_module_of_sklearn(module: str) -> None:
    outcome = run(module)

    assert not outcome.unlisted
    assert not outcome.stale
    assert outcome.share >= LEAST[module], f"{len(outcome.passed)} of {outcome.counted}"


def test_every_difference_is_documented_once() -> None:
    assert len({(d.module, d.name) for d in DIFFERENCES}) == len(DIFFERENCES)
    assert documented() == table()
