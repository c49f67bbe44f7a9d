"""Run the everyday suite as other machines would: other BLAS kernels, plain vector code, one or 16 threads, any order.

    python tests/sweep.py                        every setting once, ten orders of the tests, and a table
    python tests/sweep.py --seeds 2 --workers 4  fewer orders; worker processes of pytest
    python tests/sweep.py --only Nehalem generic -- tests/solvers
    python tests/sweep.py --other                the name of a core type other than this processor's own

Arguments after ``--`` go to pytest. The exit status is the number of settings under which a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import llvmlite.binding

ROOT = Path(__file__).resolve().parent.parent
# The core types of OpenBLAS, from the oldest on, with what a processor must have to run their code.
CORE_TYPES = {
    "Nehalem": ("sse4.2",),
    "Haswell": ("avx2", "fma"),
    "Zen": ("avx2", "fma"),
    "SkylakeX": ("avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
}
_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Setting:
    """One run of the suite: what the environment says, and how many processors it may use."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    seed: int | None = None
    plugin: str | None = None


def core_types(features: Mapping[str, bool]) -> list[str]:
    """The core types whose code a processor with these features can run.

    >>> core_types({"sse4.2": True, "avx2": True, "fma": True})
    ['Nehalem', 'Haswell', 'Zen']
    """
    return [name for name, needs in CORE_TYPES.items() if all(features.get(need, False) for need in needs)]


def other_core_type(features: Mapping[str, bool]) -> str:
    """A core type that a processor with these features runs but does not choose by itself; "" if there is none.

    >>> other_core_type({"sse4.2": True, "avx2": True, "fma": True})
    'Nehalem'
    """
    possible = core_types(features)
    return "Haswell" if "SkylakeX" in possible else "Nehalem" if "Haswell" in possible else ""


def settings(features: Mapping[str, bool], seeds: int) -> list[Setting]:
    """One setting differs from the machine's own in one thing, so that a failure names its cause."""
    own_cache = {"NUMBA_CACHE_DIR": str(ROOT / "build" / "numba-generic")}
    return [
        *(Setting(name, {"OPENBLAS_CORETYPE": name}) for name in core_types(features)),
        # Mercer's own threads alone; BLAS has as many as there are processors.
        Setting("16 threads", {"PYTHONPATH": str(ROOT / "tests")}, plugin="sixteen_processors"),
        Setting("generic", {"NUMBA_CPU_NAME": "generic", **own_cache}),
        *(Setting(f"{n} thread{'s' * (n > 1)}", dict.fromkeys(_LIMITS, str(n)), threads=n) for n in (1, 2)),
        *(Setting(f"order {seed}", {"HYPOTHESIS_PROFILE": "seeded"}, seed=seed) for seed in range(1, seeds + 1)),
    ]


def run(setting: Setting, workers: int, rest: Iterable[str]) -> tuple[int, str]:
    """The exit status of pytest and what it printed."""
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "-n", str(workers), "--dist", "worksteal", *rest]
    if setting.seed is not None:
        command += ["--random-order-bucket=global", f"--random-order-seed={setting.seed}"]
        command += [f"--hypothesis-seed={setting.seed}"]
    if setting.plugin is not None:
        command += ["-p", setting.plugin]
    if setting.threads is not None:
        # Mercer's own threads, and those of BLAS, are as many as there are processors.
        command = [sys.executable, "-c", _ON_FEW_PROCESSORS, str(setting.threads), *command]
    process = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **setting.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout


_ON_FEW_PROCESSORS = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
os.execv(sys.argv[2], sys.argv[2:])
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="orders of the tests, each with a seed of hypothesis")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="the settings to run, by the names in the table")
    parser.add_argument("--other", action="store_true", help="print a core type other than the processor's own")
    own, rest = (
        (arguments, [])
        if "--" not in arguments
        else (arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :])
    )
    options = parser.parse_args(own)
    features = llvmlite.binding.get_host_cpu_features()
    if options.other:
        print(other_core_type(features))
        return 0
    selection = settings(features, options.seeds)
    unknown = set(options.only or ()) - {s.name for s in selection}
    if unknown:
        parser.error(f"unknown settings {sorted(unknown)}; this machine can run {[s.name for s in selection]}.")
    failures: dict[str, list[str]] = {}
    print(f"{'setting':<12} {'passed':>7} {'failed':>7} {'seconds':>8}", flush=True)
    for setting in selection:
        if options.only and setting.name not in options.only:
            continue
        start_time = time.perf_counter()
        status, output = run(setting, options.workers, rest or ["tests"])
        passed, failed = (sum(map(int, re.findall(rf"(\d+) {word}", output)[-1:])) for word in ("passed", "failed"))
        seconds = time.perf_counter() - start_time
        print(f"{setting.name:<12} {passed:>7} {failed:>7} {seconds:>8.0f}", flush=True)
        if status:
            failures[setting.name] = re.findall(r"^(?:FAILED|ERROR) (.+)$", output, re.M) or [output[-2000:]]
    for name, tests in failures.items():
        print(f"\n{name}:", *tests, sep="\n  ")
    return len(failures)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
