"""The partitioned engine over batches of few records and parts of few keys."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned import engine as partitioned
from disclosure_pipeline.tables import columnar_files, text_files


@contextmanager
def small_batches(limits: Limits, rows: int = 700) -> Iterator[None]:
    """Batches of so many records, and parts as small as the limits say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioned, "Limits", lambda: limits)
        patch.setattr(columnar_files, "_ROWS", rows)
        yield


@contextmanager
def tiny_batches(rows: int = 64, spill_part: int = 100, block: int = 1 << 10) -> Iterator[None]:
    """Many batches, also of text (of so many bytes), and many parts."""
    with (
        small_batches(Limits(table=0, spill_part=spill_part, threads=2), rows),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(text_files, "_BLOCK", block)
        yield
