"""Where compiled loops are stored, and when a stored loop is not used."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import pytest

import mercer
from mercer.loops import cache, levels

_SOURCE = """
from mercer.loops._jit import jit
from part import factor

@jit
def scaled(x):
    return factor(x) * x
"""
_PART = "from mercer.loops._jit import jit\n\n@jit\ndef factor(x):\n    return {}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a loop that is inlined in another one, and one for files."""
    (tmp_path / "loops").mkdir()
    (tmp_path / "loops" / "whole.py").write_text(_SOURCE)
    (tmp_path / "loops" / "part.py").write_text(_PART.format(3))
    monkeypatch.syspath_prepend(tmp_path / "loops")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "files"))
    return tmp_path / "loops"


def _loop(folder: Path) -> Any:
    """The loop as a new process has it."""
    cache._stamp.cache_clear()
    cache._folders.cache_clear()
    sys.modules.pop("part", None)
    importlib.invalidate_caches()
    specification = importlib.util.spec_from_file_location("whole", folder / "whole.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.scaled


def _hits(loop: Any) -> int:
    return sum(loop.stats.cache_hits.values())


def test_a_change_of_an_inlined_loop_makes_the_others_stale(folder: Path) -> None:
    assert _loop(folder)(2) == 6
    again = _loop(folder)
    assert again(2) == 6 and _hits(again) == 1
    (folder / "part.py").write_text(_PART.format(50))
    changed = _loop(folder)
    assert changed(2) == 100 and _hits(changed) == 0


def test_a_damaged_file_is_written_anew(folder: Path) -> None:
    first = _loop(folder)
    first(2)
    for path in Path(first.stats.cache_path).glob("*.nbc"):
        path.write_bytes(path.read_bytes()[:-7])
    loops = [_loop(folder) for _ in range(2)]
    assert [loop(2) for loop in loops] == [6, 6]
    assert [_hits(loop) for loop in loops] == [0, 1]
    assert not list(Path(first.stats.cache_path).glob("*.tmp"))


def test_files_of_an_installed_package_are_read_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _loop(folder)
    first(2)
    Path(first.stats.cache_path).rename(folder / "compiled")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder / "whole.py"))
    monkeypatch.setattr(cache, "_private_folder", lambda part: None)
    second = _loop(folder)
    assert second(2) == 6 and _hits(second) == 1 and second.stats.cache_path is None
    assert second(2.0) == 6


@pytest.mark.parametrize("other", ["numba", "level"])
def test_files_of_an_installed_package_for_something_else_are_not_used(folder: Path, monkeypatch, other: str) -> None:
    first = _loop(folder)
    first(2)
    own = Path(first.stats.cache_path)
    own.rename(folder / "compiled")
    given = {path.name: path.read_bytes() for path in (folder / "compiled").iterdir()}
    if other == "numba":
        monkeypatch.setattr(numba, "__version__", "0.99.0")
    elif levels.own_level() in (None, "x86-64-v2", "generic", "apple-m1"):
        pytest.skip("this processor has no lower level")
    else:
        monkeypatch.setattr(levels, "_other_level", "x86-64-v2")
    second = _loop(folder)
    assert second(2) == 6 and _hits(second) == 0
    # What is compiled instead is kept beside the package's files.
    assert list(own.iterdir())
    assert {path.name: path.read_bytes() for path in (folder / "compiled").iterdir()} == given
    third = _loop(folder)
    assert third(2) == 6 and _hits(third) == 1


def test_a_loop_whose_file_cannot_be_read_is_compiled(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = _loop(folder)
    first(2)
    for path in Path(first.stats.cache_path).glob("*.nbc"):
        path.unlink()
        path.mkdir()
    assert _loop(folder)(2) == 6
    assert "compiled loops cannot be kept in" in caplog.text


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="temporary folders belong to a user on this system")
def test_a_temporary_folder_is_used_only_if_nobody_else_can_write_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o777)
    assert cache._private_folder("loops") is None
    tmp_path.chmod(0o1777)
    folder = cache._private_folder("loops")
    assert folder is not None and folder.parent.stat().st_mode & 0o777 == 0o700
    assert cache._private_folder("loops") == folder
    folder.parent.chmod(0o770)
    assert cache._private_folder("loops") is None
    # What another user has placed there: a link to a private folder.
    folder.parent.rename(tmp_path / "elsewhere")
    folder.parent.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    assert cache._private_folder("loops") is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers on this system")
def test_a_user_who_may_write_nowhere_imports_and_fits() -> None:
    """A package that is not the user's, no home, and a temporary folder or none."""
    top = Path(tempfile.mkdtemp())
    package = top / "mercer"
    subprocess.run(["cp", "-r", str(Path(mercer.__file__).parent), str(package)], check=True)
    for path in package.rglob("__pycache__"):
        subprocess.run(["rm", "-r", str(path)], check=True)
    temporary = top / "temporary"
    temporary.mkdir()
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    if user:
        os.chown(temporary, 65534, 65534)
    for path in (top, *package.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    package.chmod(0o555)
    program = "import mercer, numpy; print(mercer.SVC().fit(numpy.eye(4), [0, 0, 1, 1]).n_iter_ is not None)"
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
    environment |= {"PYTHONPATH": str(top), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"XDG_CACHE_HOME": str(package / "no"), **({} if user else {"HOME": str(package)})}

    def notices() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd="/", capture_output=True, text=True, **user
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "True"
        return done.stderr

    try:
        if subprocess.run([sys.executable, "-c", ""], capture_output=True, **user).returncode:
            pytest.skip("another user may not run this interpreter")
        assert str(temporary) in notices()
        assert notices() == ""
        files = next(temporary.iterdir())
        assert files.stat().st_mode & 0o777 == 0o700
        # Other users can read and write the folder now, so it is not used.
        files.chmod(0o777)
        assert "no folder for compiled loops can be written" in notices()
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(top)], check=False)
        subprocess.run(["rm", "-r", str(top)], check=False)
