"""A plugin of pytest: the machine says that it has 16 processors, as many machines of users have."""

import os

os.sched_getaffinity = lambda process: set(range(16))
