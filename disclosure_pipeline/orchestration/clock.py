"""The time of a run, asked for in one place so that a test can set it."""

from datetime import datetime, timezone


def now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(timezone.utc)
