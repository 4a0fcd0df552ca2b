"""A program that measures by Spark with executors in processes of their own, and holds that to the memory.

Queries are planned and compiled as Spark does it where nobody asks for anything else.
Run as `python -m support.spark_cluster folder`, with SPARK_HOME the folder of a distribution.
"""

import sys
from pathlib import Path

import disclosure_pipeline as dp
from disclosure_pipeline.counting.relational.transfer import connect, spark_session
from support.engines_services import spark_url
from support.figures import assert_same
from support.surveys import survey

EXECUTORS = 2
MASTER = f"local-cluster[{EXECUTORS},1,1024]"  # executors, cores and megabytes of each

KEYS, TARGETS = ["age", "postcode"], ["work"]
EXCLUSIONS = dp.Exclusions(target_levels={"work": ["b"]}, count_over=20)


def main(folder: Path) -> None:
    """Measure frames, which are brought there, and Parquet, which executors read where it lies."""
    frames = [survey(records, seed, postcodes=40) for seed, records in enumerate((120, 100))]
    paths = [folder / f"{number}.parquet" for number in range(len(frames))]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_parquet(path, index=False)
    url = spark_url(MASTER, folder, plans={})
    expected = dp.disclosure(frames[0], frames[1], KEYS, TARGETS, exclude=EXCLUSIONS)
    for ground_truth, synthetic in (frames, paths):
        result = dp.disclosure(ground_truth, synthetic, KEYS, TARGETS, exclude=EXCLUSIONS, engine=url)
        assert result.engine == "pyspark, by Ibis"
        assert_same(result, expected)
    session = spark_session(connect("pyspark://"))
    context = session.sparkContext
    executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is among them
    views, cached = session.catalog.listTables(), context._jsc.getPersistentRDDs()
    print(f"{context.master}: {executors} executors beside the driver")
    print(f"{len(views)} views left, {len(cached)} tables cached")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
