"""An exact copy of GT, written in some other way, is measured as the copy it is, or refused with the reason.

It is never approved: a gate that compares "1" with "1.0" finds nobody, and everything looks safe.
"""

from datetime import datetime, timezone
from typing import NoReturn

import numpy as np
import pandas as pd
import pytest
from support.altered_copies import (
    ALTERED,
    COPY,
    DEFINITION,
    GROUND_TRUTH,
    NEEDED,
    RECORDS,
    Write,
    change_each,
    csv,
    people,
)
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import arrival, evaluation
from disclosure_pipeline.candidates.evaluation import Evaluation
from disclosure_pipeline.candidates.store import MARKER, GateFolders, Store
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evidence.dossier import describe_broken_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.sources import FileSource

pytestmark = on_some_days


def deliver(folders: GateFolders, candidate: str, write: Write) -> arrival.Arrival:
    folder = folders.incoming / candidate
    folder.mkdir(parents=True)
    write(folder)
    (folder / MARKER).touch()
    return arrival.receive(folders, candidate)


def evaluate(folders: GateFolders, candidate: str, write: Write) -> Evaluation:
    """Evaluate a candidate up to its dossier. InputError if it is refused before that."""
    received = deliver(folders, candidate, write)
    if received.violations:
        raise InputError("; ".join(map(str, received.violations)))
    return evaluation.measure(folders, candidate, datetime.now(timezone.utc))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> GateFolders:
    """A gate whose GT is recorded."""
    root = tmp_path_factory.mktemp("mismatches")
    GROUND_TRUTH.to_csv(root / "gt.csv", index=False)
    folders = GateFolders(
        gate=Gate.model_validate(DEFINITION | {"remedies": False}),  # which decide nothing
        ground_truth=FileSource(path=str(root / "gt.csv")),
        incoming=root / "incoming",
        store=Store(root / "store"),
        releases=root / "releases",
        waivers=(),
        trusted_keys=(),
    )
    assert arrival.record_ground_truth(folders).violations == ()
    return folders


@pytest.fixture(scope="module")
def copy(folders: GateFolders) -> Evaluation:
    return evaluate(folders, "exact-copy", csv())


def test_the_gate_approves_what_gives_nothing_away(folders: GateFolders) -> None:
    actual = evaluate(folders, "independent", csv(lambda _: people(2)[NEEDED]))
    assert actual.dossier["decision"] == "approved"
    assert actual.dossier["warnings"] == []
    assert actual.dossier["exact_copies"][0]["percent"] < 5


def test_an_exact_copy_is_seen(copy: Evaluation) -> None:
    identity, attribute = copy.result.identity.iloc[0], copy.result.attribute
    assert copy.dossier["decision"] == "refused"
    assert identity["repU"] == identity["UiO"] > 8
    assert (attribute["DiSCO"] == attribute["Dorig"]).all()
    assert copy.dossier["exact_copies"] == [
        {"synthesis": 1, "columns": len(NEEDED), "copies": RECORDS, "percent": 100.0}
    ]


@pytest.mark.parametrize("alteration", some_of(ALTERED, 8))
def test_an_altered_copy_never_passes(folders: GateFolders, copy: Evaluation, alteration: str) -> None:
    write, reason = ALTERED[alteration]
    candidate = "altered-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in alteration)
    try:
        actual = evaluate(folders, candidate, write)
    except InputError as refused:
        assert reason is not None, str(refused)
        assert reason in str(refused)
        return
    assert actual.dossier["decision"] != "approved"
    if reason is None:
        for name in ("identity", "attribute", "key_overlap", "target_overlap"):
            expected, measured = getattr(copy.result, name), getattr(actual.result, name)
            for synthesis in measured.index.get_level_values("synthesis").unique():
                part = measured.xs(synthesis, level="synthesis") if measured.index.nlevels > 1 else measured
                whole = expected.xs(1, level="synthesis") if measured.index.nlevels > 1 else expected
                np.testing.assert_array_equal(part.to_numpy(float)[: len(whole)], whole.to_numpy(float))
        assert actual.dossier["warnings"] == []
    else:
        assert reason in "; ".join(
            describe_broken_clauses(actual.dossier, actual.dossier["smallest_count"]).values()
        )


def test_the_dossier_lists_the_changed_values(folders: GateFolders) -> None:
    frame = change_each("region", "{} ".format)(COPY)
    frame["age"] = [None if pd.isna(age) else f"{age}.0" for age in COPY["age"]]
    ledger = evaluate(folders, "ledger", csv(lambda _: frame)).dossier["ledger"]
    of_SD = {(row["column"], row["rule"]): row["records"] for row in ledger if "synthetic" in row["table"]}
    assert of_SD["region", "outer blanks removed"] == RECORDS
    assert of_SD["age", "number in another form, read by its value"] == COPY["age"].notna().sum()


def test_a_level_that_gt_lacks_is_refused_by_its_column_alone(folders: GateFolders) -> None:
    with pytest.raises(InputError, match="column 'region': holds a level") as refused:
        evaluate(folders, "which", csv(change_each("region", str.upper)))
    assert "krak" not in str(refused.value).casefold()


def test_keys_are_compared_where_nothing_else_can_be_measured(
    folders: GateFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise InputError("A target cannot be measured.")

    measured = deliver(folders, "compared", csv())
    monkeypatch.setattr(arrival, "measure_candidate", refuse)
    compared = arrival.receive(folders, "compared")
    pd.testing.assert_frame_equal(compared.key_overlap, measured.key_overlap)
    assert compared.overlaps == measured.overlaps
    assert compared.violations == ()
