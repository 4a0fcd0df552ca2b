"""Spark with executors in processes of their own: nothing leans on sharing a process with them."""

import os
import sys
from pathlib import Path

from support.engines_services import SPARK_ENVIRONMENT, require_spark
from support.paths import ROOT
from support.processes import run_program
from support.sampling import only_in_ci
from support.spark_cluster import EXECUTORS, MASTER

LIMIT = 900  # seconds; each executor is a Java that has to start first


@only_in_ci("starts three Javas", days=3)
def test_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    require_spark()
    import pyspark

    home = tmp_path / "spark"  # executors leave their logs there
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    measured = run_program(
        [sys.executable, "-m", "support.spark_cluster", str(tmp_path)],
        limit=LIMIT,
        env=os.environ
        | SPARK_ENVIRONMENT
        | {"SPARK_HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))},
        cwd=tmp_path,
    )
    assert measured.returncode == 0, measured.stderr[-4000:]
    assert measured.stdout.splitlines()[-2:] == [
        f"{MASTER}: {EXECUTORS} executors beside the driver",
        "0 views left, 0 tables cached",
    ]
    # A session that stops may start an executor for one that it has ended: it gets no task.
    worked = [log for log in home.glob("work/*/*/stderr") if "Finished task" in log.read_text()]
    assert len(worked) == EXECUTORS
