"""What importing loads: numerics and optional packages only when they are used."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

HEAVY = ("numba", "torch", "matplotlib", "pandas", "scipy", "sklearn", "numpy", "typer", "rich", "dask", "safetensors")


def _loaded_by(code: str) -> set[str]:
    listing = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    process = subprocess.run([sys.executable, "-c", f"{code}; {listing}"], capture_output=True, text=True, check=True)
    return set(process.stdout.split())


def test_importing_mercer_loads_nothing_heavy() -> None:
    loaded = _loaded_by("import mercer; dir(mercer); mercer.__version__")
    assert "mercer" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_kernels_do_without_optional_packages() -> None:
    loaded = _loaded_by("import mercer; mercer.kernels.RBF(); mercer.Gram; mercer.testing")
    assert "numpy" in loaded
    assert loaded.isdisjoint({"torch", "matplotlib", "pandas", "typer", "rich", "dask", "safetensors"})


def test_every_public_name_is_there() -> None:
    assert sorted(mercer.__all__) == dir(mercer)
    for name in mercer.__all__:
        assert getattr(mercer, name) is not None


def public_modules() -> set[str]:
    """The modules that state what they offer."""
    named = {m.name: Path(mercer.__file__).parent / m.name for m in pkgutil.iter_modules(mercer.__path__)}
    sources = {name: path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for name, path in named.items()}
    return {
        name
        for name, source in sources.items()
        if not name.startswith("_") and re.search(r"^__all__ = ", source.read_text(encoding="utf-8"), re.M)
    }


def test_every_public_module_is_listed() -> None:
    listed = {name for name, home in mercer._HOME.items() if home == "mercer"}
    assert "selection" in public_modules() and public_modules() == listed
    assert public_modules() <= set(mercer.__all__) & set(dir(mercer))


@pytest.mark.slow
def test_every_public_module_is_reachable() -> None:
    # In a process of its own: here they have been imported.
    uses = "; ".join(f"mercer.{name}.__all__" for name in sorted(public_modules()))
    assert "mercer" in _loaded_by(f"import mercer; {uses}")


def test_all_that_modules_offer_is_there() -> None:
    for name in public_modules():
        module = getattr(mercer, name)
        assert [offered for offered in module.__all__ if not hasattr(module, offered)] == []


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'Kernal'"):
        mercer.Kernal  # noqa: B018
