"""``mercer warm-up``: compile the loops of most users' first calls, for containers and continuous integration.

Nothing here needs more than Mercer's own dependencies, so that the command works without those of the command line.
"""

from __future__ import annotations

import importlib
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from mercer._errors import MercerError
from mercer.engine.settings import resolve_jobs
from mercer.loops.cache import package_folder


def warm_up(processes: int | None = None) -> None:
    """Run small fits and predictions in processes of their own, which store the loops that they compile."""
    start_time = time.perf_counter()
    folder, version = package_folder()
    if folder is None:
        raise MercerError(
            "No folder for compiled loops can be written, so nothing would be kept. Set the environment variable "
            "NUMBA_CACHE_DIR to a folder that can be written, here and where Mercer is used."
        )
    mark = folder / f"warm-up-{version}.txt"
    if not mark.exists():
        _compile(processes or resolve_jobs())
        mark.write_text("The loops of mercer warm-up are stored here.\n", encoding="utf-8")
    print(f"Compiled loops are in {folder} ({time.perf_counter() - start_time:.1f} s).")


def _compile(processes: int) -> None:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # This process needs no loops, and so imports no learners.
        names = pool.submit(_names).result()
        futures = {pool.submit(_run, name): name for name in names}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                sys.stderr.write(f"[{done}/{len(names)}] {futures[future]}\n")
                sys.stderr.flush()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _steps() -> Any:
    return importlib.import_module("mercer.cli.warm_steps")


def _names() -> list[str]:
    return list(_steps().steps())


def _run(name: str) -> None:
    _steps().run(name)
