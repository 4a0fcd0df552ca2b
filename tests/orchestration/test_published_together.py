"""Earlier releases of a gate count for the next candidate: through real runs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.gates import Home
from support.sampling import only_in_ci

from disclosure_pipeline.candidates.released import RELEASED
from disclosure_pipeline.evaluation.long_table import WITH_RELEASES, view_frame

pytestmark = [pytest.mark.usefixtures("remembered_results"), only_in_ci("several releases", days=2)]

PEOPLE, SHARED = "found[whole] beyond", "shared_with_releases beyond"
RECORDS, COPIED = 1500, 36
COLUMNS = gates.definition()["columns"]
# Nobody's income is another's: without this, the copied ones would be refused as real values.
COLUMNS["income"]["real_values"] = "keep"
DEFINITION = gates.definition(
    columns=COLUMNS,
    policy={"repU": 100, "DiSCO": 100, "key_overlap": 1, "whole_key_overlap": 0, "target_overlap": 0},
)


def people(seed: int, records: int = RECORDS) -> pd.DataFrame:
    """People whom nobody else equals."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "age": random.integers(20, 90, records),
            "work": random.choice(["office", "field", "none"], records),
            "income": random.integers(0, 1_000_000, records),
        }
    )


def table(seed: int, copied_from: int | None = None) -> pd.DataFrame:
    """Fresh people, and some of GT's from one on, fewer than the guards of a table refuse."""
    if copied_from is None:
        return people(seed)
    copied = people(0).iloc[copied_from : copied_from + COPIED]
    return pd.concat([copied, people(seed, RECORDS - COPIED)], ignore_index=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with gates.home_in_memory(tmp_path, gates.load(DEFINITION), monkeypatch) as home:
        home.write_ground_truth(people(0))
        assert home.run_ground_truth().success
        yield home


def run(home: Home, candidate: str, of: pd.DataFrame) -> dict[str, str]:
    """The clauses on releases that are not kept, and how; of a candidate that is published none."""
    home.deliver(candidate, {"synthetic.csv": of})
    ran = home.run_gate(candidate)
    clauses = home.dossier(candidate)["clauses"]
    broken = {row["name"]: row["outcome"] for row in clauses if row["outcome"] != "kept" and not row["warns"]}
    assert ran.success == home.published(candidate).is_dir() == (not broken), broken
    return broken


def test_copies_add_up_over_releases(home: Home) -> None:
    """Each table copies fewer people than the guards allow: two the same ones, or two many together.

    Honest tables are released, also one that was judged before another came first: its dossier is filed anew.
    """
    assert run(home, "a", table(1, 0)) == {}
    assert run(home, "pair", table(2, 0)) == {SHARED: "exceeded"}
    home.deliver("late", {"synthetic.csv": table(6)})
    assert home.decide("late").success
    assert run(home, "others", table(4, COPIED)) == {PEOPLE: "exceeded"}
    assert run(home, "honest", table(3)) == {}
    assert home.materialize("release", "late").success
    figures = view_frame(home.dossier("late")["figures"], "over_releases")
    found = {row["releases"]: row["people_in_releases"] for row in figures}
    assert found == dict.fromkeys(("1 release", "2 releases", WITH_RELEASES), 100 * COPIED / RECORDS)
    page = home.record("late", "dossier.html").read_text()
    assert "Found in the releases: 2.4 % of the people" in page
    assert "Found in the releases" not in (home.published("late") / "dossier.html").read_text()
    # What is out was judged beside what was out before it.
    again = home.materialize("release", "a")
    assert again.success and len(list((home.store / RELEASED).iterdir())) == 3
