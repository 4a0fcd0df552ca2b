"""Reading files of SPSS and Stata: records a second beside pandas and pyreadstat alone, and peak memory.

`python benchmarks/reading_statistics.py --records 500000`. Every reader in a process of its own; memory is
the peak of the whole process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import resident

# Of the columns of a survey: codes, ages, amounts and one text.
_CODES, _AMOUNTS = 20, 4


def write(path: Path, records: int) -> None:
    import pyreadstat

    random = np.random.default_rng(1)
    columns = {f"code{i}": random.integers(1, 6, records).astype(float) for i in range(_CODES)}
    columns |= {f"amount{i}": np.round(random.lognormal(8, 1, records), 2) for i in range(_AMOUNTS)}
    frame = pd.DataFrame(columns).assign(town=random.choice(["Rome", "Oslo", "Athens"], records))
    write_file: Any = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}[path.suffix]
    write_file(frame, path)


def read_here(path: Path) -> int:
    from disclosure_pipeline.tables.sources import read_raw

    return len(read_raw(path, "T"))


def read_by_pandas(path: Path) -> int:
    read: dict[str, Callable[[Path], Any]] = {".sav": pd.read_spss, ".dta": pd.read_stata}
    return len(read[path.suffix](path))


def read_by_pyreadstat(path: Path) -> int:
    import pyreadstat

    return len({".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta}[path.suffix](path)[0])


def timed(read: Callable[[Path], int], path: Path, records: int) -> tuple[float, float]:
    """Records a second without the time of imports, and gigabytes of peak memory."""
    small = path.with_stem("small")
    write(small, 10)
    read(small)
    start = time.perf_counter()
    if read(path) != records:
        raise RuntimeError(f"{read.__name__} left out records.")
    return records / (time.perf_counter() - start), resident("VmHWM") / 1e9


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


READERS = {"here": read_here, "pyreadstat": read_by_pyreadstat, "pandas": read_by_pandas}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--readers", default=",".join(READERS))
    parser.add_argument("--suffixes", default=".sav,.dta")
    arguments = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in arguments.suffixes.split(","):
            path = Path(folder) / f"table{suffix}"
            in_fresh_process(write, path, arguments.records)
            size = path.stat().st_size / 1e9
            for name in arguments.readers.split(","):
                speed, peak = in_fresh_process(timed, READERS[name], path, arguments.records)
                rows[suffix, name] = {"GB": size, "records a second": speed, "peak GB": peak}
            path.unlink()
    print(pd.DataFrame(rows).T.to_string(float_format="{:,.2f}".format))


if __name__ == "__main__":
    main()
