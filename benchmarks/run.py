"""`make bench`: everything that docs/benchmarks.md and README.md show.

To try it out, `python benchmarks/run.py --records 100000 --output FOLDER` leaves both as they are.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

RECORDS = 10_000_000
CORES = 2
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Imports what it needs itself: every process that is measured imports this module again."""
    import report
    from comparing import measure

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="of GT and of SD")
    parser.add_argument("--output", type=Path, help="a folder for the document; README.md stays as it is")
    arguments = parser.parse_args()
    # Also of the processes that are started.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with tempfile.TemporaryDirectory() as folder:
        results = measure(arguments.records, Path(folder))
    report.write(results, arguments.output or ROOT / "docs")
    if not arguments.output:
        readme = ROOT / "README.md"
        readme.write_text(report.in_readme(readme.read_text(encoding="utf-8"), results), encoding="utf-8")
    print(report.summary(results))


if __name__ == "__main__":
    main()
