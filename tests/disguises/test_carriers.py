"""A file can carry more than its values: nothing of that is published, through real runs of the gate."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import gate_steps, gates
from support.gates import GATE, HONEST, Home, checks
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import arrival
from disclosure_pipeline.candidates.store import STATEMENT

# Of what shares no text with an honest table or a statement.
CARRIED = "Carried-8844"


def with_everything_beside_the_values(folder: Path) -> list[str]:
    """The name, metadata, unused levels, attributes, blanks and order of an honest table tell something."""
    honest = gates.honest().sort_values("income")
    honest["work"] = pd.Categorical(honest["work"], categories=[*honest["work"].unique(), CARRIED])
    honest["sex"] = honest["sex"] + "  \t"
    honest.attrs["figures"] = CARRIED
    table = pa.Table.from_pandas(honest, preserve_index=False)
    columns = [field.with_metadata({CARRIED: CARRIED}) for field in table.schema]
    metadata = {**table.schema.metadata, b"figures": CARRIED.encode(), b"created_by": CARRIED.encode()}
    table = table.cast(pa.schema(columns, metadata=metadata))
    path = folder / f"{CARRIED}.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table, row_group_size=50)
        writer.add_key_value_metadata({"note": CARRIED})
    assert pq.read_metadata(path).metadata[b"note"] == CARRIED.encode()
    return [CARRIED]


def with_statistics_of_missing_cells(folder: Path) -> list[str]:
    """Statistics that were written for other records than the file has: its footer is another file's."""
    honest = gates.honest()
    path = folder / "synthetic.parquet"
    # As long as one of the levels, so that the footer's offsets stay right.
    wrong = {b"none": b"n0n3", b"field": b"f1e1d", b"office": b"0ff1c3"}
    pq.write_table(pa.Table.from_pandas(honest, preserve_index=False), path, use_dictionary=False)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - length : -8]
    for level, other in wrong.items():
        footer = footer.replace(level, other)
    assert footer != whole[-8 - length : -8] and len(footer) == length
    path.write_bytes(whole[: -8 - length] + footer + whole[-8:])
    statistics = pq.ParquetFile(path).metadata.row_group(0).column(2).statistics
    assert {statistics.min, statistics.max} <= {text.decode() for text in wrong.values()}
    return [text.decode() for text in wrong.values()]


def with_bytes_between_the_pages(folder: Path) -> list[str]:
    """Bytes that no page and no footer points at."""
    path = folder / "synthetic.parquet"
    pq.write_table(pa.Table.from_pandas(gates.honest(), preserve_index=False), path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[: -8 - length] + CARRIED.encode() + whole[-8 - length :])
    return [CARRIED]


def with_the_order_of_columns_and_quotes(folder: Path) -> list[str]:
    """A CSV file whose quotes, blanks, line ends and byte order mark differ from record to record."""
    honest = gates.honest()[["income", "work", "age", "sex"]]
    lines = ["income,work,age,sex"]
    for number, (income, work, age, sex) in enumerate(honest.itertuples(index=False)):
        lines.append(f'{income}," {work} ",{age},{sex}' if number % 3 else f"{income},{work} ,{age},{sex}")
    (folder / "synthetic.csv").write_bytes("\r\n".join(lines).encode("utf-8-sig") + b"\r\n")
    return ["\r\n", "\ufeff", '" office', "office ,"]


CARRIERS: dict[str, Callable[[Path], list[str]]] = {
    "everything beside the values": with_everything_beside_the_values,
    "statistics of other records": with_statistics_of_missing_cells,
    "bytes between the pages": with_bytes_between_the_pages,
    "quotes and blanks": with_the_order_of_columns_and_quotes,
}


@on_some_days
@pytest.mark.parametrize("carrier", some_of(CARRIERS, 5))
def test_what_a_format_carries_is_not_published(home: Home, carrier: str) -> None:
    """The candidate is honest in its values, and is published with these alone, as Parquet and CSV."""
    with_csv = dataclasses.replace(home, defs=gates.load(gates.definition(csv=True)))
    with_csv.write_ground_truth(gates.ground_truth())
    folder = with_csv.deliver(HONEST, {}, complete=False)
    carried = CARRIERS[carrier](folder)
    [arrived] = folder.iterdir()
    assert any(text.encode() in arrived.read_bytes() for text in carried)
    with_csv.deliver(HONEST, {})
    assert with_csv.run_ground_truth().success
    ran = with_csv.run_gate(HONEST)
    assert ran.success, gates.failures(ran)

    published = with_csv.published(HONEST)
    assert {path.name for path in published.iterdir()} == {
        "synthetic.parquet",
        "synthetic.csv",
        "dossier.html",
        STATEMENT,
    }
    assert gates.files_with(published, carried, ()) == {}
    assert CARRIED not in gates.stated(published).model_dump_json()
    assert CARRIED not in str(json.loads((published / STATEMENT).read_bytes()))
    assert gates.published_records(published) == gates.sorted_records(gates.honest())
    written_anew = pq.ParquetFile(published / "synthetic.parquet")
    assert not any(field.metadata for field in written_anew.schema_arrow)
    assert all(field.type in {pa.string(), pa.int64()} for field in written_anew.schema_arrow)
    assert not written_anew.read().to_pandas()["income"].is_monotonic_increasing
    metadata = written_anew.metadata
    assert metadata.metadata is None
    columns = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    assert columns and all(column.statistics is None for column in columns)


REFUSED: dict[str, Callable[[pd.DataFrame], pd.DataFrame | str]] = {
    "an index": lambda honest: honest.set_index(pd.Index([CARRIED] * 298)),
    "a comment": lambda honest: f"# {CARRIED}\n{honest.to_csv(index=False)}",
    "a comment after the records": lambda honest: f"{honest.to_csv(index=False)}# {CARRIED}\n",
    "another field": lambda honest: f",{CARRIED}\n".join(honest.to_csv(index=False).rsplit("\n", 1)),
    "another column": lambda honest: honest.assign(note=CARRIED),
    "one cell": lambda honest: honest.assign(work=honest["work"].where(honest.index > 0, CARRIED)),
}


@pytest.mark.parametrize("carrier", some_of(REFUSED, 5))
def test_what_is_among_the_values_is_refused(home: Home, carrier: str) -> None:
    changed = REFUSED[carrier](gates.honest())
    if carrier == "an index" and isinstance(changed, pd.DataFrame):
        changed.to_parquet(home.deliver(HONEST, {}) / "synthetic.parquet")
        home.prepare()
    else:
        home.prepare({HONEST: changed.encode() if isinstance(changed, str) else changed})
    ran = home.run_gate(HONEST)
    assert not ran.success
    if (contract := checks(ran).get("synthetic:contract")) is not None:
        # A level that is unknown is named to the custodian, if it holds no identifier of GT.
        assert not contract.passed and (CARRIED in str(contract.description)) == (carrier == "one cell")
    else:  # the file cannot be read as a table at all
        assert gates.failures(ran).keys() == {f"{GATE}__synthetic"}
    assert home.nothing_published()
    assert (CARRIED in gates.everything_logged(home.instance)) == (carrier == "one cell")
    assert GATE in {path.name for path in (home.path / "store").iterdir()}


@pytest.mark.parametrize("formulas", ["quote", "refuse"])
def test_a_cell_that_a_spreadsheet_would_run_is_refused_unless_it_is_quoted(
    formulas: str, tmp_path: Path
) -> None:
    gate = gate_steps.folders(tmp_path, gates.definition(formulas=formulas), "memory", "gt.csv")
    work = {"work": {"field": "=HYPERLINK(A1)", "none": "-5"}}  # a plain number is no formula
    gate_steps.write(tmp_path / "gt.csv", gates.ground_truth().replace(work))
    gate_steps.deliver(tmp_path, HONEST, gates.honest().replace(work))
    arrival.record_ground_truth(gate)
    violations = arrival.receive(gate, HONEST).violations
    assert ["would run as a formula" in of.rule for of in violations] == [True] * (formulas == "refuse")
    assert "HYPERLINK" not in str(violations)
