"""A wheel that carries compiled loops, for releases: ``MERCER_COMPILED=1 python3.12 -m pip wheel --no-deps -w dist .``

It is for one version of CPython, on Linux and x86-64. Its loops are used with the versions of Numba and LLVM that
compiled them, and on processors of the levels v3 and v4; elsewhere, loops are compiled as from any other wheel. Without
the variable nothing is compiled, and the wheel is for all platforms.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

# The objects name no libraries and no versions of symbols: LLVM links them, in memory, with what the process has.
# Beside functions of Python and Numba they need only functions of libc and libm that glibc 2.17 has, such as memcpy and
# exp (tests/test_wheel.py lists them). Numba's own wheels need a newer glibc.
_PLATFORM = "manylinux_2_17_x86_64"

# What is compiled for other levels is never called here: LLVM compiles for processors that this one is not.
_COMPILE = """
import gc
from mercer.cli.warm_steps import run, steps
from mercer.loops.cache import LoopCache
from mercer.loops.levels import compile_for
from numba.core.dispatcher import Dispatcher

for name in steps():
    print(name, flush=True)
    run(name)
loops = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and isinstance(o._cache, LoopCache)]
signatures = [list(loop.overloads) for loop in loops]
for level in ("x86-64-v3", "x86-64-v4"):
    compile_for(level)
    for loop in loops:
        loop._reset_overloads()
    for loop, types in zip(loops, signatures):
        for signature in types:
            loop.compile(signature)
    print(level, flush=True)
"""


class CompiledLoops(BuildHookInterface):
    """Fills ``mercer/loops/compiled`` of the wheel where the environment asks for it."""

    PLUGIN_NAME = "custom"

    def dependencies(self):
        return [*self.metadata.core.dependencies, "pandas", "jinja2", "matplotlib"] if self._asked() else []

    def initialize(self, version, build_data):
        if version == "editable" or not self._asked():
            return
        system = (sys.implementation.name, sys.platform, platform.machine(), platform.libc_ver()[0])
        if system != ("cpython", "linux", "x86_64", "glibc"):
            raise RuntimeError(
                f"Compiled loops are for CPython on Linux with glibc and x86-64, and this is {system}. "
                "Unset MERCER_COMPILED to build the wheel for all platforms."
            )
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        # Reports print the version of the package.
        information = folder / "site" / f"mercer-{self.metadata.version}.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Name: mercer\nVersion: {self.metadata.version}\n", encoding="utf-8")
        # The last one is what pip finds the packages of its environment for builds by.
        paths = filter(None, [str(Path(self.root) / "src"), str(information.parent), os.environ.get("PYTHONPATH")])
        variables = {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
        subprocess.run([sys.executable, "-c", _COMPILE], env={**os.environ, **variables}, check=True)
        (files,) = folder.glob("loops_*")
        build_data["force_include"][str(files)] = "mercer/loops/compiled"
        tag = next(sys_tags())
        build_data["pure_python"], build_data["tag"] = False, f"{tag.interpreter}-{tag.abi}-{_PLATFORM}"

    def _asked(self):
        return os.environ.get("MERCER_COMPILED") == "1"
