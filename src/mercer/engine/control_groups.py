"""What Linux grants to this process: limits that containers and batch systems set for its control groups.

Version 2 has one tree of groups, version 1 one for each resource. A limit of a group holds for all groups in it, so
those above the process's own are read too.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OF_PROCESS = Path("/proc/self/cgroup")
# Version 1 writes the largest number of pages where there is none.
_NO_LIMIT = 2**60


@functools.cache
def processors() -> int | None:
    """As many processors as the groups grant time of, rounded up; None without a limit. It is read once."""
    shares = [share for group in _groups("cpu") if (share := _share(group)) is not None]
    return max(1, math.ceil(min(shares))) if shares else None


def free_memory() -> float:
    """Bytes left under the limits of the groups; infinite without one."""
    return min((_left(group) for group in _groups("memory")), default=math.inf)


@functools.cache
def _groups(resource: str) -> list[Path]:
    """The folders of the process's groups for a resource, and of those that they are in."""
    try:
        lines = _OF_PROCESS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            root = _ROOT
        elif resource in controllers.split(","):
            root = _ROOT / resource
        else:
            continue
        # In a container the path may be the one outside; the limits are then those of the root.
        folder = root / path.lstrip("/")
        folders += [group for group in (folder, *folder.parents) if group == root or root in group.parents]
    return [group for group in folders if group.is_dir()]


def _share(group: Path) -> float | None:
    """Processors' worth of time in each period."""
    try:
        words = (group / "cpu.max").read_text(encoding="ascii").split()
        return float(words[0]) / float(words[1])
    except (OSError, ValueError, IndexError):
        # Of version 1, or "max".
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        return quota / period if 0 < quota < math.inf and 0 < period < math.inf else None


def _left(group: Path) -> float:
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    if math.isinf(limit):
        limit, used = _number(group / "memory.limit_in_bytes"), _number(group / "memory.usage_in_bytes")
    if limit > _NO_LIMIT or math.isinf(used):
        return math.inf
    # Pages of files that were not read lately are given up before memory is refused.
    return max(0.0, limit - max(0.0, used - _idle_pages(group)))


def _idle_pages(group: Path) -> float:
    try:
        words = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return float(words.get("total_inactive_file", words.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0.0


def _number(file: Path) -> float:
    """What a file holds; infinity without the file, or for "max"."""
    try:
        return float(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return math.inf
