"""How the benchmarks measure: contenders in turn in one process, medians, ratios; rows of one table."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """One comparison: what was run, by whom, how long it took, and how it stands to the demand."""

    case: str
    peer: str
    ours_seconds: float
    peer_seconds: float
    demand: str
    met: bool
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times faster than the peer."""
        return self.peer_seconds / self.ours_seconds


def in_turn(contenders: dict[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Median seconds of each after a warm-up; they take turns, so that a machine whose speed drifts is fair to all.

    Who takes over 20 seconds is run once more after the warm-up, and not ``repeats`` times.
    """
    slow = {name for name, run in contenders.items() if _seconds(run) > 20}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats):
        for name, run in contenders.items():
            if turn == 0 or name not in slow:
                times[name].append(_seconds(run))
    return {name: statistics.median(values) for name, values in times.items()}


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def data_folder() -> Path | None:
    """Where ``$MERCER_DATA`` says that the data sets are; says so when they are missing."""
    folder = os.environ.get("MERCER_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    sys.stderr.write("MERCER_DATA does not name a folder of data sets: the benchmarks that need them are left out\n")
    return None


def machine() -> str:
    """The machine in one line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        # Elsewhere than on Linux the platform's own word has to do.
        model = platform.processor() or platform.machine()
    blas = {info["internal_api"] for info in threadpool_info() if info["user_api"] == "blas"}
    software = f"Python {platform.python_version()}, NumPy {np.__version__} ({', '.join(blas)})"
    return f"{model}, {os.cpu_count()} cores, {software}"


def as_markdown(title: str, rows: list[Row]) -> str:
    """A section of the table."""
    lines = [
        f"## {title}", "", "| case | peer | Mercer, s | peer, s | peer / Mercer | demand | met | note |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in rows:
        lines.append(
            f"| {r.case} | {r.peer} | {r.ours_seconds:.3g} | {r.peer_seconds:.3g} | {r.ratio:.2f} | {r.demand} "
            f"| {'yes' if r.met else '**no**'} | {r.note} |"
        )
    return "\n".join(lines) + "\n"


def as_json(sections: dict[str, list[Row]]) -> str:
    """All rows for machines."""
    return json.dumps({t: [asdict(r) | {"ratio": r.ratio} for r in rows] for t, rows in sections.items()}, indent=1)
