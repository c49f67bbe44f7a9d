"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "everyday", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# Looks further than the everyday suite: HYPOTHESIS_PROFILE=explore pytest tests/properties
settings.register_profile("explore", settings.get_profile("everyday"), max_examples=500, derandomize=False)
# Examples chosen by --hypothesis-seed, which has no effect on a derandomised profile; used by tests/sweep.py.
settings.register_profile("seeded", settings.get_profile("everyday"), derandomize=False, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# A shell that starts the suite in the background has it ignore Ctrl-C, and so would every process that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250701)
