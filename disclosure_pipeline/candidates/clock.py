"""A clock that only goes forward, as far as a gate can tell."""

from __future__ import annotations

from datetime import datetime, timedelta

from disclosure_pipeline.candidates.store import Store
from disclosure_pipeline.errors import StoreError, UndeterminedError
from disclosure_pipeline.runtime.files import read_json, write_json

# The clocks of several machines may differ by this much, or be corrected by it.
TOLERANCE = timedelta(minutes=5)

LAST_MOMENT = "last_moment.json"
"""The file of a store with the latest time that was recorded."""


def require_forward_clock(store: Store, now: datetime) -> None:
    """Record the time. Raise UndeterminedError if a time more than five minutes later is already recorded.

    With a clock that is set back, expired waivers would be valid again, and signatures would be dated into
    the period of an expired key.
    """
    last = _read_last_moment(store)
    if last is not None and now < last - TOLERANCE:
        raise UndeterminedError(
            f"The clock shows {now.isoformat()}, but {last.isoformat()} is already recorded: no waiver is "
            f"applied and nothing is signed. Correct the clock; if the recorded time is wrong, remove "
            f"{LAST_MOMENT} from the store."
        )
    if last is None or now > last:
        write_json(store.root / LAST_MOMENT, {"last_moment": now.isoformat()})


def _read_last_moment(store: Store) -> datetime | None:
    path = store.root / LAST_MOMENT
    if not path.exists():
        return None
    try:
        moment = datetime.fromisoformat(read_json(path, "")["last_moment"])
        if moment.tzinfo is not None:
            return moment
    except (StoreError, KeyError, TypeError, ValueError):
        pass
    raise StoreError(f"{LAST_MOMENT} in the store is damaged: check the clock, then remove the file.")
