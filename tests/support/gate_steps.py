"""The steps of a gate without Dagster, and confidential tables that an engine counts where they are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival, evaluation
from disclosure_pipeline.candidates.measuring import Measured, record_measured
from disclosure_pipeline.candidates.reading import StagedTables, read_staged
from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.counting.relational.transfer import spark_session
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.release.published_tables import PublishedFile, write_tables
from disclosure_pipeline.release.releasing import Stage, stage_snapshot
from disclosure_pipeline.runtime.files import to_json
from disclosure_pipeline.tables.sources import FileSource
from support import gates
from support.engines_services import QUICK_OVER_FEW_RECORDS, connect_to_spark, spark_folder, spark_url
from support.services import PASSWORD, postgres, require_engine

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def folders(root: Path, definition: Mapping[str, Any], engine: str, ground_truth: str) -> GateFolders:
    """Return a gate of the tables in a folder; an engine of a database counts them where they lie."""
    in_place = {"ground_truth": ground_truth} if "://" in engine else {}
    gate = Gate.model_validate(dict(definition) | {"engine": engine} | in_place)
    return GateFolders(
        gate=gate,
        ground_truth=FileSource(path=str(root / ground_truth)),
        incoming=root / "incoming",
        store=Store(root / ("memory" if in_place else engine)),
        releases=root / "releases",
        waivers=(),
        trusted_keys=(),
        confidential={name: FileSource(path=str(root / str(at))) for name, at in gate.confidential.items()},
    )


def steps(gate: GateFolders, candidate: str, *, measured_anew: bool = True) -> dict[str, Any]:
    """All that the steps of a gate find of a candidate; or what they say against it.

    The figures are those of a release, which measures anew, or those that `receive` measured: half the work.
    """
    by_step: dict[str, Any] = {}
    measured: list[Measured] = []
    try:
        recorded = arrival.record_ground_truth(gate)
        by_step["ground truth"] = recorded
        with nullcontext() if measured_anew else _noting(measured):
            received = arrival.receive(gate, candidate)
        by_step["arrival"] = (received.violations, received.records, list(map(str, received.overlaps)))
        by_step["overlap"] = received.key_overlap.to_json()
        if not received.violations:
            by_step["bins"] = evaluation.load_group_levels(gate, candidate).to_json()
            evaluate = evaluation.evaluate if measured_anew else evaluation.measure
            evaluated = evaluate(gate, candidate, NOW)
            by_step["dossier"] = to_json(evaluated.dossier)
            by_step["checks"] = {
                judgement.clause.name: write_sentence(judgement) for judgement in evaluated.judgements
            }
            # What is recorded, and read again, names no level of few records.
            result = evaluated.result if measured_anew else measured[0].result
            by_step["frames"] = {name: frame.to_csv() for name, frame in result.frames.items()}
            by_step["frames"] |= {"warnings": str(result.warnings)}
    except dp.DisclosurePipelineError as error:
        by_step["refused"] = (type(error).__name__, str(error))
    return by_step


@contextmanager
def _noting(measured: list[Measured]) -> Iterator[None]:
    def record(folders: GateFolders, snapshot: Snapshot, ground_truth: str, of_candidate: Measured) -> None:
        measured.append(of_candidate)
        record_measured(folders, snapshot, ground_truth, of_candidate)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "record_measured", record)
        yield


def deliver(root: Path, candidate: str, *tables: pd.DataFrame | bytes, suffix: str = ".csv") -> Path:
    folder = root / "incoming" / candidate
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        write(folder / f"synthetic{number}{suffix}", table)
    (folder / gates.MARKER).touch()
    return folder


def definition_of_two_columns(**changes: Any) -> dict[str, Any]:
    """A gate that quotes formulas and lets everything pass: key `a` is text, target `b` a whole number."""
    own = {
        "columns": {"a": {"type": "category"}, "b": {"type": "integer"}},
        "keys": ["a"],
        "targets": ["b"],
        "formulas": "quote",
        "policy": {"repU": 100, "DiSCO": 100},
    }
    return gates.definition(**own | changes)


@dataclass(frozen=True)
class Staged:
    """A candidate that a release has copied and read, and has not written yet."""

    gate: Gate
    snapshot: Snapshot
    stage: Stage
    tables: StagedTables

    def write_tables(self, folder: Path | None = None) -> tuple[PublishedFile, ...]:
        """Write the tables to publish where a release does, or into another folder."""
        return write_tables(self.gate, self.tables, folder or self.stage.release)


@contextmanager
def staged(
    root: Path, definition: Mapping[str, Any], *tables: pd.DataFrame | bytes, suffix: str = ".csv"
) -> Iterator[Staged]:
    of_gate = folders(root, definition, "auto", "ground_truth.csv")
    snapshot = gates.take(deliver(root, "staged", *tables, suffix=suffix), of_gate.store.root)
    with stage_snapshot(snapshot, of_gate.store, root / "staging") as stage, ExitStack() as stack:
        yield Staged(of_gate.gate, snapshot, stage, read_staged(of_gate, snapshot, stage.arrived, stack))


def write(path: Path, table: pd.DataFrame | bytes) -> None:
    if isinstance(table, bytes):
        path.write_bytes(table)
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".arrow":
        table.to_feather(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


PASSWORD_VARIABLE = "REGISTER_PASSWORD"


@dataclass(frozen=True)
class Registers:
    """`engine` of a gate, and `source`: how the gate names a table.

    `write` replaces tables, by their names; `list_tables` tells all that are there, temporary ones too.
    `kept_in` is the file or folder in `folder` that holds the tables; None where they are elsewhere.
    """

    engine: str
    source: Callable[[str], str | dict[str, str]]
    write: Callable[[Mapping[str, pd.DataFrame]], None]
    list_tables: Callable[[], list[str]]
    folder: Path
    kept_in: str | None


@contextmanager
def registers_of_duckdb(folder: Path) -> Iterator[Registers]:
    require_engine("duckdb://")
    import duckdb

    path = folder / "registers.duckdb"

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        with duckdb.connect(str(path)) as database:
            for name, table in tables.items():
                database.register("frame", table)
                database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM frame")

    def list_tables() -> list[str]:
        with duckdb.connect(str(path)) as database:
            return sorted(row[2] for row in database.execute("SHOW ALL TABLES").fetchall())

    yield Registers(
        f"duckdb:///{path}",
        lambda name: {"duckdb": str(path), "table": name},
        write,
        list_tables,
        folder,
        path.name,
    )


@contextmanager
def registers_of_postgresql(folder: Path) -> Iterator[Registers]:
    """With a password that only a variable of the environment holds.

    Queries are compiled, as a server does it that nobody set up otherwise.
    """
    require_engine("duckdb://")  # Ibis
    server = postgres()
    import sqlalchemy as sa

    engine, url = sa.create_engine(server.url), server.url_with(PASSWORD_VARIABLE)
    with engine.begin() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {server.database} SET jit = on"))

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        with engine.begin() as connection:
            for name, table in tables.items():
                table.to_sql(name, connection, index=False, if_exists="replace")

    def list_tables() -> list[str]:
        with engine.begin() as connection:
            every = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace >= 16384"
            temporary = connection.execute(sa.text(every)).scalars()
            return sorted([*sa.inspect(connection).get_table_names(), *temporary])

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_VARIABLE, PASSWORD)
        try:
            yield Registers(
                url.replace("+psycopg", ""),
                lambda name: {"url": url, "table": name},
                write,
                list_tables,
                folder,
                None,
            )
        finally:
            engine.dispose()


@contextmanager
def registers_of_spark(folder: Path) -> Iterator[Registers]:
    """Parquet files that the session of this process reads where they lie; it goes on."""
    files = folder / "registers"
    files.mkdir()
    # Several parts are the subject of the tests of the engine, where the session has two of them again.
    in_one_part = {"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
    engine = spark_url("local[2]", spark_folder(), QUICK_OVER_FEW_RECORDS | in_one_part)
    session: Any = spark_session(connect_to_spark(engine))

    def list_kept() -> list[str]:
        cached = session.sparkContext._jsc.getPersistentRDDs()
        # By SQL: the catalog's own list cannot be decoded without compiling, once it holds something.
        return [*(row.tableName for row in session.sql("SHOW TABLES").collect()), *map(str, cached)]

    before = list_kept()

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        for name, table in tables.items():
            table.to_parquet(files / f"{name}.parquet", index=False)

    def list_tables() -> list[str]:
        kept = [name for name in list_kept() if name not in before]
        return sorted([*(path.stem for path in files.glob("*.parquet")), *kept])

    yield Registers(
        engine, lambda name: str(files / f"{name}.parquet"), write, list_tables, folder, files.name
    )
    session.conf.unset("spark.sql.leafNodeDefaultParallelism")
    connect_to_spark(spark_url("local[2]", spark_folder()))


REGISTERS: Mapping[str, Callable[[Path], AbstractContextManager[Registers]]] = {
    "duckdb": registers_of_duckdb,
    "postgresql": registers_of_postgresql,
    "spark": registers_of_spark,
}
