"""A wheel that carries compiled loops, for releases: ``MERCER_COMPILED=1 python -m build --wheel`` (five minutes).

The wheel is then for one version of Python and one platform, and its loops are used with the version of Numba that
compiled them; with another one, loops are compiled as from any other wheel. Without the variable, nothing is compiled.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
        self._folder = tempfile.TemporaryDirectory()
        variables = {"NUMBA_CACHE_DIR": self._folder.name, "PYTHONPATH": str(Path(self.root) / "src")}
        subprocess.run([sys.executable, "-c", _COMPILE], env={**os.environ, **variables}, check=True)
        (files,) = Path(self._folder.name).glob("loops_*")
        build_data["force_include"][str(files)] = "mercer/loops/compiled"
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def _asked(self):
        return os.environ.get("MERCER_COMPILED") == "1"
