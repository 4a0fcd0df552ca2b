"""Copies of the records of further confidential tables, and nearness to them: as of the ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.files import StoreError
from disclosure_pipeline.candidates.measuring import Measured, measure_against
from disclosure_pipeline.candidates.reading import (
    Engine,
    name_confidential,
    read_confidential,
    read_syntheses,
)
from disclosure_pipeline.candidates.store import GateFolders, Snapshot
from disclosure_pipeline.counting.opening import open_canonical
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.tables.messages import capitalized


def add_confidential(
    folders: GateFolders,
    snapshot: Snapshot,
    engine: Engine,
    measured: Measured,
    syntheses: Sequence[Any] | None = None,
    stage: Path | None = None,
) -> Measured:
    """Return what was measured of a candidate, and its copies of every further confidential table's records.

    In the frame `confidential`, index (confidential, synthesis), of each file and of all of them stacked;
    the sha256 of each table beside it. `syntheses`: the candidate's tables, where they are read already.
    StoreError where a table is not there or changes while it is read, ContractError where it breaks the
    dictionary: then nothing is determined.
    """
    digests: dict[str, str] = {}
    by_file: dict[str, pd.DataFrame] = {}
    stacked: dict[str, pd.DataFrame] = {}
    if not folders.confidential:
        return measured
    with ExitStack() as kept:
        if syntheses is None:
            syntheses = read_syntheses(folders, engine, snapshot, kept, stage)
        for name in folders.confidential:
            with ExitStack() as stack:
                table, digests[name] = read_confidential(folders, name, engine, stack)
                changed = f"{capitalized(name_confidential(name))} changed while it was read: run again."
                if measured.confidential.get(name, digests[name]) != digests[name]:
                    raise StoreError(changed)
                tables = [table.keep_columns(folders.gate.published), *syntheses]
                opened = stack.enter_context(open_canonical(tables, engine.name, engine.description))
                by_file[name] = measure_against(folders.gate, opened)
                if len(syntheses) > 1:
                    stacked[name] = measure_against(folders.gate, opened.stacked())
                # A database reads its tables while they are measured.
                if engine.is_database and folders.confidential[name].sha256() not in {None, digests[name]}:
                    raise StoreError(changed)
    result = measured.result
    of_stack = (
        None
        if result.stacked is None
        else replace(result.stacked, further={**result.stacked.further, CONFIDENTIAL: _join(stacked)})
    )
    further = {**result.further, CONFIDENTIAL: _join(by_file)}
    return replace(measured, result=replace(result, further=further, stacked=of_stack), confidential=digests)


def _join(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, names=[CONFIDENTIAL]) if frames else pd.DataFrame()
