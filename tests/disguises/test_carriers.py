"""What a file can carry beside its values: nothing of it is published, through real runs of the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import gates
from support.gates import GATE, HONEST, Home, checks

from disclosure_pipeline.release.statement import STATEMENT

# Of what shares no text with an honest table or a statement.
CARRIED = "Carried-8844"


def everything_beside_the_values() -> pa.Table:
    """An honest table whose metadata, unused levels, attributes, blanks and order tell something."""
    honest = gates.honest().sort_values("income")
    honest["work"] = pd.Categorical(honest["work"], categories=[*honest["work"].unique(), CARRIED])
    honest["sex"] = honest["sex"] + "  \t"
    honest.attrs["figures"] = CARRIED
    table = pa.Table.from_pandas(honest, preserve_index=False)
    columns = [field.with_metadata({"comment": CARRIED}) for field in table.schema]
    metadata = {**table.schema.metadata, b"figures": CARRIED.encode()}
    return table.cast(pa.schema(columns, metadata=metadata))


def test_nothing_beside_the_values_is_published(home: Home) -> None:
    home.write_ground_truth(gates.ground_truth())
    folder = home.deliver(HONEST, {}, complete=False)
    written = folder / f"{CARRIED}.parquet"
    pq.write_table(everything_beside_the_values(), written)
    assert written.read_bytes().count(CARRIED.encode()) > 1
    home.deliver(HONEST, {})
    assert home.run_ground_truth().success
    ran = home.run_gate(HONEST)
    assert ran.success, gates.failures(ran)

    published = home.published(HONEST)
    assert {path.name for path in published.iterdir()} == {"synthetic.parquet", "dossier.html", STATEMENT}
    assert gates.files_with(published, [CARRIED], ()) == {}
    envelope = json.loads((published / STATEMENT).read_bytes())
    assert CARRIED not in gates.stated(published).model_dump_json() and CARRIED not in str(envelope)
    written_anew = pq.ParquetFile(published / "synthetic.parquet")
    assert written_anew.metadata.metadata is None
    assert not any(field.metadata for field in written_anew.schema_arrow)
    assert all(field.type in {pa.string(), pa.int64()} for field in written_anew.schema_arrow)
    assert gates.published_records(published) == gates.sorted_records(gates.honest())
    income = pd.read_parquet(published / "synthetic.parquet")["income"]
    assert not income.is_monotonic_increasing


def with_index(folder: Path) -> None:
    gates.honest().set_index(pd.Index([CARRIED] * 298)).to_parquet(folder / "synthetic.parquet")


def with_another_column(folder: Path) -> None:
    gates.honest().assign(note=CARRIED).to_csv(folder / "synthetic.csv", index=False)


def with_another_level(folder: Path) -> None:
    table = gates.honest()
    table.loc[0, "work"] = CARRIED
    table.to_csv(folder / "synthetic.csv", index=False)


REFUSED: dict[str, Callable[[Path], None]] = {
    "an index": with_index,
    "another column": with_another_column,
    "one cell": with_another_level,
}


@pytest.mark.parametrize("carrier", REFUSED)
def test_what_is_among_the_values_is_refused(home: Home, carrier: str) -> None:
    home.write_ground_truth(gates.ground_truth())
    REFUSED[carrier](home.deliver(HONEST, {}))
    assert home.run_ground_truth().success
    ran = home.run_gate(HONEST)
    assert not ran.success
    contract = checks(ran)["synthetic:contract"]
    assert not contract.passed and CARRIED not in str(contract.description)
    assert home.nothing_published()
    assert CARRIED not in gates.everything_logged(home.instance)
    assert GATE in {path.name for path in (home.path / "store").iterdir()}
