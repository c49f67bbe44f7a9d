"""How the benchmarks measure: contenders in turn in one process, medians, ratios; rows of one table a benchmark.

The results of every benchmark stand in ``results.json`` with the date, the machine and the command of its last run;
``RESULTS.md`` is written from there.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

HERE = Path(__file__).resolve().parent
HEAD = (
    "# Results\n\nMedians of runs in turn in one process, if not said otherwise; a ratio above 1 means that Mercer is "
    "faster.\n"
)
# Seconds from which a run is not repeated.
SLOW = 20.0
REST = 0.1


@dataclass(frozen=True)
class Row:
    """One comparison: what was run, by whom, how long it took, and how it stands to the demand.

    ``facts`` holds what the note says in numbers. Seconds are None where nothing was timed.
    """

    case: str
    peer: str
    ours_seconds: float | None
    peer_seconds: float | None
    demand: str
    met: bool
    note: str = ""
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        if self.ours_seconds is None or self.peer_seconds is None:
            return None
        return self.peer_seconds / self.ours_seconds


@dataclass(frozen=True)
class Section:
    """All rows of one benchmark, and how they came about."""

    title: str
    machine: str
    date: str
    command: str
    rows: list[Row]


def in_turn(
    contenders: dict[str, Callable[[], object]], repeats: int = 5, warm_up: Callable[[str], object] | None = None
) -> dict[str, float]:
    """Median seconds of each after a warm-up; they take turns, so that a machine whose speed drifts is fair to all.

    ``warm_up`` does a small run of the contender of that name; without it each is run once before. Who takes over
    20 seconds is timed once, and not ``repeats`` times.
    """
    for name, run in contenders.items():
        if warm_up is None:
            run()
        else:
            warm_up(name)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats):
        for name, run in contenders.items():
            if turn == 0 or times[name][0] <= SLOW:
                # Threads of BLAS look for more work for a while before they sleep: not in the next one's time.
                time.sleep(REST)
                times[name].append(seconds_of(run))
    return {name: statistics.median(values) for name, values in times.items()}


def seconds_of(run: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def tell(text: str) -> None:
    """Say on standard error what a long run is doing."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def peak_so_far() -> int:
    """The most bytes that this process ever held; getrusage would count what the parent held before the fork, too."""
    return _of_process("VmHWM")


def memory_now() -> int:
    """The bytes that this process holds."""
    return _of_process("VmRSS")


def growth_of(run: Callable[[], object]) -> int:
    """The bytes by which this process was larger, at most, while it ran; Linux alone can begin its peak anew."""
    before = memory_now()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    run()
    return peak_so_far() - before


def _of_process(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


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


def as_markdown(section: Section) -> str:
    """A section of the table."""
    lines = [
        f"## {section.title}",
        "",
        f"{section.date}, {section.machine}; `{section.command}`",
        "",
        "| case | peer | Mercer, s | peer, s | peer / Mercer | demand | met | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in section.rows:
        lines.append(
            f"| {r.case} | {r.peer} | {_figure(r.ours_seconds, '.3g')} | {_figure(r.peer_seconds, '.3g')} "
            f"| {_figure(r.ratio, '.2f')} | {r.demand} | {'yes' if r.met else '**no**'} | {r.note} |"
        )
    return "\n".join(lines) + "\n"


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def read_sections(path: Path = HERE / "results.json") -> dict[str, Section]:
    """The last results of every benchmark, by its name."""
    if not path.exists():
        return {}
    sections = {}
    for name, entry in json.loads(path.read_text(encoding="utf-8")).items():
        rows = [Row(**{key: value for key, value in row.items() if key != "ratio"}) for row in entry.pop("rows")]
        sections[name] = Section(**entry, rows=rows)
    return sections


def write_sections(sections: dict[str, Section], folder: Path = HERE) -> None:
    """Write results.json and RESULTS.md."""
    entries = {
        name: asdict(section) | {"rows": [asdict(row) | {"ratio": row.ratio} for row in section.rows]}
        for name, section in sections.items()
    }
    # Comparisons of NumPy's numbers are NumPy's truth values.
    text = json.dumps(entries, indent=1, default=lambda value: value.item())
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    parts = [HEAD, *(as_markdown(section) for section in sections.values())]
    (folder / "RESULTS.md").write_text("\n".join(parts), encoding="utf-8")
