"""An engine of a few lines, which has memory count, and takes the records in another order."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from disclosure_pipeline.counting.memory.engine import FramesInMemory, MemoryEngine
from disclosure_pipeline.tables.missing import MissingCodes


@dataclass
class ToyEngine(MemoryEngine):
    """Found by its name once it stands in `opening.ENGINES`."""

    name: str = "toy"

    @contextmanager
    def open(
        self,
        tables: Sequence[Any],
        names: Sequence[str],
        numeric: Collection[Any] = (),
        missing: MissingCodes | None = None,
    ) -> Iterator[FramesInMemory]:
        with super().open(tables, names, numeric, missing) as opened:
            yield replace(opened, frames=tuple(frame.iloc[::-1] for frame in opened.frames))
