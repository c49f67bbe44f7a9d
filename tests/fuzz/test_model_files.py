"""Model files that lie: refused with words, or the same bits, or another consistent model; never anything else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("model_worker.py")


def outcomes(cases: int, seed: int, *more: str) -> tuple[Counter[str], list[Any]]:
    """Counts of outcomes and the failures; a case that ends its process is one, and the next process goes on."""
    counts: Counter[str] = Counter()
    failures: list[Any] = []
    first = 0
    while first < cases:
        span = ["--cases", str(cases - first), "--first", str(first), "--seed", str(seed), *more]
        process = subprocess.run(
            [sys.executable, str(WORKER), *span], capture_output=True, text=True, timeout=1800, check=False
        )
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        ended = [line for line in lines if "outcome" in line]
        counts.update(line["outcome"] for line in ended)
        failures += [line for line in ended if line["outcome"] == "failed"]
        if process.returncode == 0:
            break
        assert lines, process.stderr[-2000:]
        failures.append(
            {**lines[-1], "problem": f"the process ended with {process.returncode}: {process.stderr[-500:]}"}
        )
        first = lines[-1]["case"] + 1
    return counts, failures


@pytest.mark.parametrize(("cases", "refused"), [(9, 3), pytest.param(36, 13, marks=pytest.mark.slow)])
def test_mutated_files_never_crash_hang_or_break_a_promise(cases, refused):
    counts, failures = outcomes(cases, seed=1)
    assert not failures, failures[:5]
    assert counts["refused"] >= refused


@pytest.mark.slow
def test_many_mutated_files():
    counts, failures = outcomes(240, seed=0)
    assert not failures, failures[:5]
    # Else the mutations would no longer be ones that the checks see.
    assert counts["refused"] > 120
    assert counts["same"] + counts["other"] > 19
