"""What Linux grants to this process: limits that containers and batch systems set for its control groups.

Version 2 has one tree of groups, version 1 one for each resource. A limit of a group holds for all groups in it, so
those above the process's own are read too.
"""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OF_PROCESS = Path("/proc/self/cgroup")
# Version 1 writes the largest number of pages where there is none.
_NO_LIMIT = 2**60


@functools.cache
def processors() -> int | None:
    """As many processors as the groups grant time of, rounded up; None without a limit. It is read once."""
    least = min((_share(group) for group in _groups("cpu")), default=math.inf)
    return None if math.isinf(least) else max(1, math.ceil(least))


def free_memory() -> float:
    """Bytes left under the limits of the groups; infinite without one."""
    return min((_left(group, *names) for group, names in _memory_groups()), default=math.inf)


def _groups(resource: str) -> list[Path]:
    """The folders of the process's groups for a resource, and of those that they are in."""
    try:
        lines = os.fsdecode(_OF_PROCESS.read_bytes()).split("\n")
    except OSError:
        return []
    folders: list[Path] = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            # The second one where both versions are in use.
            roots = [_ROOT, _ROOT / "unified"]
        elif resource in controllers.split(","):
            roots = [_ROOT / resource, _ROOT / controllers]
        else:
            continue
        for root in roots:
            # In a container the path may be the one outside; the limits are then those of the root.
            folder = root / path.lstrip("/")
            folders += [group for group in (folder, *folder.parents) if group == root or root in group.parents]
    return [group for group in dict.fromkeys(folders) if os.path.isdir(group)]


@functools.cache
def _memory_groups() -> list[tuple[Path, tuple[str, str]]]:
    """The groups with a limit, and the names of its file and of that of what is used."""
    files = [("memory.max", "memory.current"), ("memory.high", "memory.current"),
             ("memory.limit_in_bytes", "memory.usage_in_bytes")]  # fmt: skip
    return [(group, names) for group in _groups("memory") for names in files if _number(group / names[0]) < _NO_LIMIT]


def _share(group: Path) -> float:
    """Processors' worth of time in each period."""
    words = _text(group / "cpu.max").split()
    if len(words) == 2:
        quota, period = (_parsed(word) for word in words)
    else:
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
    return quota / period if 0 < quota < math.inf and 0 < period < math.inf else math.inf


def _left(group: Path, limit: str, current: str) -> float:
    most, used = _number(group / limit), _number(group / current)
    if math.isinf(most) or math.isinf(used):
        return math.inf
    # Pages of files that were not read lately are given up before memory is refused.
    return max(0.0, most - max(0.0, used - _idle_pages(group)))


def _idle_pages(group: Path) -> float:
    words = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines() if " " in line)
    pages = _parsed(words.get("total_inactive_file", words.get("inactive_file", "0")))
    return 0.0 if math.isinf(pages) else pages


def _number(file: Path) -> float:
    """What a file holds; infinity without the file, or for "max"."""
    return _parsed(_text(file))


def _text(file: Path) -> str:
    try:
        with open(file, encoding="ascii", errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""


def _parsed(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.inf
    return math.inf if math.isnan(number) else number
