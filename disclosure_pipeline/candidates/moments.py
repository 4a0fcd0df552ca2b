"""The last moment that a gate recorded: a clock that has gone back behind it decides nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

from disclosure_pipeline.candidates.files import StoreError, read_json, write_json
from disclosure_pipeline.candidates.folders import UndeterminedError
from disclosure_pipeline.candidates.store import Store

# Clocks of several machines may differ by so much, and may be set right by so much.
TOLERANCE = timedelta(minutes=5)

LAST_MOMENT = "last_moment.json"
"""The file of a store that records it."""


def require_forward_clock(store: Store, now: datetime) -> None:
    """Record that moment as the last one. UndeterminedError where one that was recorded is later.

    A clock that runs back would make waivers valid again that have expired, and date signatures into the
    period of a key that is over. Five minutes are allowed between machines.
    """
    last = _read(store)
    if last is not None and now < last - TOLERANCE:
        raise UndeterminedError(
            f"The clock shows {now.isoformat()}, but {last.isoformat()} was recorded before: no waiver is "
            f"applied and nothing is signed. Set the clock right; if the recorded moment is wrong, remove "
            f"{LAST_MOMENT} from the store."
        )
    if last is None or now > last:
        write_json(store.root / LAST_MOMENT, {"last_moment": now.isoformat()})


def _read(store: Store) -> datetime | None:
    """The recorded moment; StoreError where the record is damaged."""
    path = store.root / LAST_MOMENT
    if not path.exists():
        return None
    try:
        moment = datetime.fromisoformat(read_json(path, "")["last_moment"])
        if moment.tzinfo is not None:
            return moment
    except (StoreError, KeyError, TypeError, ValueError):
        pass
    raise StoreError(f"{LAST_MOMENT} in the store is damaged: look at the clock, then remove the file.")
