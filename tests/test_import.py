"""What importing loads: numerics and optional packages only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mercer

HEAVY = ("numba", "torch", "matplotlib", "pandas", "scipy", "sklearn", "numpy", "typer", "rich", "dask", "safetensors")


def _loaded_by(code: str) -> set[str]:
    listing = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}; {listing}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


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


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'Kernal'"):
        mercer.Kernal  # noqa: B018
