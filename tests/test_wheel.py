"""The wheel that carries compiled loops: what its hook asks of a build, and what its objects ask of a system."""

from __future__ import annotations

import importlib.util
import pickle
import platform
import re
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mercer import SVC, GaussianProcessRegressor, KernelKMeans, KernelRidge
from mercer.loops import cache, levels

ROOT = Path(__file__).parent.parent
# Functions of Python, Numba and `loops/addresses.py`, and those of libc and libm that glibc has always had on x86-64.
_SYMBOLS = re.compile(
    r"_?Py\w+|NRT_\w+|numba_\w+|_ZN\w*NumbaEnv\w*|mercer_pause|mem(cpy|set|move|cmp)"
    r"|(exp|exp2|expm1|log|log2|log10|log1p|pow|a?(sin|cos|tan)h?|atan2|sqrt|floor|ceil|fmod|ldexp|frexp|hypot)f?"
)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hook of ``hatch_build.py``, without the package that calls it."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    hook = module.CompiledLoops()
    hook.root = str(ROOT)
    hook.metadata = SimpleNamespace(version="0.1.0", core=SimpleNamespace(dependencies=["numba"]))
    monkeypatch.setattr(module.subprocess, "run", _compile)
    return hook


def _compile(command: list[str], env: dict[str, str], check: bool) -> None:
    folder = Path(env["NUMBA_CACHE_DIR"]) / "loops_0"
    folder.mkdir()
    (folder / "a.nbc").write_bytes(b"")


def _data() -> dict[str, Any]:
    return {"force_include": {}, "pure_python": True}


def test_a_wheel_is_pure_unless_the_environment_asks(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_COMPILED", raising=False)
    data = _data()
    hook.initialize("standard", data)
    assert data == _data() and hook.dependencies() == []
    monkeypatch.setenv("MERCER_COMPILED", "1")
    hook.initialize("editable", data)
    assert data == _data() and "numba" in hook.dependencies()


def test_a_compiled_wheel_is_for_one_python_and_platform(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERCER_COMPILED", "1")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    data = _data()
    hook.initialize("standard", data)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"{python}-{python}t?-manylinux_2_17_x86_64", data["tag"]) and not data["pure_python"]
    assert list(data["force_include"].values()) == ["mercer/loops/compiled"]
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    with pytest.raises(RuntimeError, match="Unset MERCER_COMPILED"):
        hook.initialize("standard", _data())


def _needs(content: bytes) -> set[str]:
    """The symbols that an object in the ELF format leaves to others."""
    if content[:5] != b"\x7fELF\x02":
        pytest.skip("objects have another format on this system")
    at, size, count = *struct.unpack_from("<Q", content, 40), *struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, at + i * size) for i in range(count)]
    names: set[str] = set()
    for _, kind, _, _, begin, length, link, *_ in sections:
        if kind != 2:
            continue
        strings = sections[link][4]
        for place in range(begin, begin + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", content, place)
            start = strings + name
            if section == 0 and name:
                names.add(content[start : content.index(b"\0", start)].decode())
    return names


def test_objects_need_nothing_newer_than_the_tag_promises() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    for model in (SVC(), KernelRidge(kernel="rbf"), GaussianProcessRegressor(), KernelKMeans(n_clusters=2)):
        model.fit(X, X[:, 0] > 0).predict(X)
    folder = cache.package_folder()[0]
    if folder is None or not str(levels.own_level()).startswith("x86-64"):
        pytest.skip("loops are compiled for a level of x86-64, and stored, on other systems")
    objects = [pickle.loads(path.read_bytes()[32:])[0][2][0] for path in folder.glob("*.nbc")]
    assert objects
    assert [name for name in set().union(*map(_needs, objects)) if not _SYMBOLS.fullmatch(name)] == []
