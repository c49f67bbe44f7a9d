"""A cold cache: the first run says that it compiles, the second has nothing to compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import numpy as np
from mercer.kernels import Tanimoto
print(Tanimoto()(np.eye(3)).sum())
"""


@pytest.mark.slow
def test_the_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    messages = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        assert run.stdout.strip() == "3.0"
        messages.append(run.stderr.count("compiling loops for this machine"))
    assert messages == [1, 0]
