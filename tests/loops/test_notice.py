"""What processes say that compile loops: with an empty cache, with a filled one, and where nothing can be stored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mercer

_SCRIPT = """
import numpy as np
from mercer.kernels import RBF, Tanimoto
print(Tanimoto()(np.eye(3)).sum() + RBF()(np.zeros((2, 3))).sum())
"""


def _notices(environment: dict[str, str], prepare: Callable[[], None] | None = None) -> list[str]:
    """Return what a process that uses two kernels says, of which the values must be right."""
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, **environment},
        preexec_fn=prepare,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.strip() == "7.0", run.stderr
    return run.stderr.splitlines()


@pytest.mark.slow
def test_the_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    (notice,) = _notices(environment)
    assert notice.startswith("mercer: compiling loops for this machine.")
    stored = next(tmp_path.iterdir())
    assert notice.endswith(str(stored))
    assert _notices(environment) == []
    # Another kernel compiles more loops, of which the first notice has told.
    for file in stored.glob("distances.*"):
        file.unlink()
    assert _notices(environment) == []


@pytest.fixture
def unwritable(tmp_path: Path) -> dict[str, str]:
    """An environment where neither the package's folder nor the home can be written, nor a temporary folder is safe."""
    package, installed = tmp_path / "site" / "mercer", Path(mercer.__file__).parent
    (package / "loops").mkdir(parents=True)
    for path in [*installed.iterdir(), *(installed / "loops").glob("*.py")]:
        if path.name not in ("loops", "__pycache__"):
            (package / path.relative_to(installed)).symlink_to(path)
    # A file where a folder is needed.
    for blocked in (package / "loops" / "__pycache__", tmp_path / "home"):
        blocked.touch()
    home, shared = str(tmp_path / "home"), tmp_path / "shared"
    # A temporary folder in which anyone can rename anything.
    shared.mkdir()
    shared.chmod(0o777)
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA"), home)
    return {**places, "NUMBA_CACHE_DIR": home, "TMPDIR": str(shared), "PYTHONPATH": str(package.parent)}


@pytest.mark.slow
def test_a_process_that_can_write_nowhere_works_and_says_what_would_help(tmp_path, unwritable) -> None:
    for _ in range(2):
        (notice,) = _notices(unwritable)
        assert notice.startswith("mercer: no folder for compiled loops can be written, so every process compiles them")
    (name,) = (word for word in notice.split() if word in unwritable and word.isupper())
    remedy = unwritable | {name: str(tmp_path / "loops")}
    assert len(_notices(remedy)) == 1
    assert _notices(remedy) == []


@pytest.mark.slow
def test_a_full_disk_costs_the_stored_loops_alone(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits of the size of files are set otherwise on this system")

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "loops"), "PYTHONDONTWRITEBYTECODE": "1"}
    first, second = _notices(environment, fill)
    assert first.startswith("mercer: compiling loops for this machine.")
    assert second.startswith("mercer: compiled loops cannot be kept in ") and "(File too large)" in second
    assert "NUMBA_CACHE_DIR" in second
