"""What the machine has left."""

from __future__ import annotations

from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")  # of a container that may use less than its machine has


def available_memory() -> int:
    """Bytes of memory that this process can still take."""
    import psutil

    available = int(psutil.virtual_memory().available)
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return min(available, int(limit) - int(used)) if limit != "max" else available
    except (OSError, ValueError):
        return available
