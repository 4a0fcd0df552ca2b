"""Make synthetic tables: a process in the environment of the synthesizers, which reads jobs and runs them.

`python -m synthesizers.generate`, a JSON object a line: `candidate`, `ground_truth`, `seed`, `output`, the
CPU `seconds` that it may take, and the file of a user's `own` synthesizer or null.
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from synthesizers.candidates import SYNTHESIZERS, Synthesizer

# How many times as long the clock may run: the processors may have other work.
_PATIENCE = 20


def read_own(path: Path) -> Synthesizer:
    """Return the function `synthesize` of a file. ValueError where it has none."""
    function = runpy.run_path(str(path)).get("synthesize")
    if not callable(function):
        raise ValueError(f"{path} has no function synthesize(table, seed).")
    return function


def make(job: dict[str, Any]) -> None:
    """Write the synthetic table of a job, whole or not at all."""
    make_table = read_own(Path(job["own"])) if job["own"] else SYNTHESIZERS[job["candidate"]].make
    output = Path(job["output"])
    limits = {signal.ITIMER_PROF: job["seconds"], signal.ITIMER_REAL: _PATIENCE * job["seconds"]}
    for timer, seconds in limits.items():
        signal.setitimer(timer, seconds)
    try:
        table = make_table(pd.read_parquet(job["ground_truth"]), int(job["seed"]))
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)
    table.to_parquet(output.with_suffix(".unfinished"), index=False)
    output.with_suffix(".unfinished").replace(output)


@contextmanager
def end_in_time() -> Iterator[None]:
    """Let a job that takes too long raise TimeoutError."""

    def end(*_: Any) -> None:
        raise TimeoutError("It took too long.")

    before = {number: signal.signal(number, end) for number in (signal.SIGALRM, signal.SIGPROF)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> None:
    warnings.simplefilter("ignore")
    with end_in_time():
        for line in sys.stdin:
            job = json.loads(line)
            try:
                make(job)
            except Exception:
                print(job["candidate"], job["seed"], traceback.format_exc(), flush=True)


if __name__ == "__main__":
    main()
