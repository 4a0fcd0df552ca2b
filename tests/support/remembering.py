"""Work out figures, charts and expectations once for all processes that need the same.

They take most of a run's time and change no file; tests of files run the same tables again and again. What is
remembered is found by all that it is worked out from: other tables, another gate or other figures are worked
out anew. A test for which this is done names the fixture `remembered_results`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from disclosure_pipeline.candidates import filing, measuring
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.policy.gate import Gate


@contextmanager
def remember_results(folder: Path) -> Iterator[None]:
    """Take from a folder what any process worked out before, also one that runs meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, describe in (
            (charts, "_draw_rows", repr),
            (charts, "_draw_map", repr),
            (filing, "validate", repr),
            (measuring, "measure_tables", _describe_tables),
        ):
            patch.setattr(module, name, _remember(folder, name, describe, getattr(module, name)))
        yield


def _remember(
    folder: Path, name: str, describe: Callable[[Any], str], work_out: Callable[..., Any]
) -> Callable[..., Any]:
    def recall(*arguments: Any) -> Any:
        kept = folder / hashlib.sha256(f"{name} {describe(arguments)}".encode()).hexdigest()
        if not kept.exists():
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_bytes(pickle.dumps(work_out(*arguments)))
            partial.replace(kept)  # whole or not there: a child may be killed at any moment
        return pickle.loads(kept.read_bytes())

    return recall


def _describe_tables(arguments: tuple[Gate, FramesInMemory, str, None, int]) -> str:
    """All that the figures of a candidate are measured from: every record of its tables included.

    Not how much memory is free, which is different each time.
    """
    gate, opened, engine, with_holdout, seed = arguments
    assert isinstance(opened, FramesInMemory) and with_holdout is None
    tables = [hashlib.sha256(_to_bytes(pa.Table.from_pandas(frame))).hexdigest() for frame in opened.frames]
    others = (
        _without_memory(opened.engine_description),
        opened.in_parts,
        opened.ledger,
        opened.names,
        engine,
        seed,
    )
    return repr((gate.model_dump(mode="json"), others, tables))


def _without_memory(engine_description: str) -> str:
    return re.sub(r"[\d.]+ GB are free", "", engine_description)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()
