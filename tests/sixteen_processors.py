"""A plugin of pytest: the machine says that it has 16 processors, as many machines of users have."""

import importlib
import os

os.sched_getaffinity = lambda process: set(range(16))


def pytest_configure() -> None:
    # Once the settings of the suite are made, which come before the first import of NumPy.
    importlib.import_module("mercer.engine.control_groups").processors = lambda: None
