"""Columns like identifiers: no real value of them is approved, unless the gate says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.engines import ENGINES_AND_WAYS, Databases, given_to
from support.gates import run_command
from support.sampling import on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.measures.chance import holds_real_values, is_like_identifier
from disclosure_pipeline.measures.copies import Combinations
from disclosure_pipeline.measures.samples import Sizes

pytestmark = on_some_days

RECORDS = 600


NUMBERS = np.random.default_rng(1).permutation(900_000)[:RECORDS] + 100_000


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], RECORDS),
            "ill": random.choice(["y", "n"], RECORDS),
            "no": random.integers(100_000, 1_000_000, RECORDS),
        }
    )


def tables(share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    fresh, real = people(2), round(share * RECORDS)
    drawn = np.concatenate([NUMBERS[:real], fresh["no"][real:]])
    drawn[-1] = drawn[-2]  # one number twice, as synthesizers draw them
    return people(1).assign(no=NUMBERS), fresh.assign(no=drawn)


def warned(result: dp.Disclosure) -> list[str]:
    return [text for text in result.warnings if "like an identifier" in text]


@pytest.mark.parametrize("engine", list(ENGINES_AND_WAYS))
def test_every_engine_finds_real_identifiers(engine: str, databases: Databases) -> None:
    way = next(iter(ENGINES_AND_WAYS[engine]))
    for share, columns in ((0.15, ["no"]), (0.0, [])):
        with given_to(engine, way, tables(share), databases) as (given, name):
            found = warned(dp.disclosure(given[0], given[1], ["sex"], ["ill", "no"], engine=name))
        assert [column for column in columns if f"{column!r}" in found[0]] == columns and len(found) == len(
            columns
        )


def test_columns_that_nobody_asked_for_are_looked_at_in_memory() -> None:
    asked_for, not_asked_for = (
        warned(dp.disclosure(*tables(0.15), ["sex"], targets)) for targets in (["ill", "no"], "ill")
    )
    assert "100 % of the GT records" in asked_for[0] and not_asked_for
    truth, fresh = (table.assign(no=range(RECORDS)) for table in tables(0))
    assert warned(dp.disclosure(truth, fresh, ["sex"], "ill"))


def test_identifiers_of_people_with_several_records() -> None:
    """A number that a person has in all records is one person's own."""
    truth, fresh = tables(0.15)
    several = pd.concat([truth.assign(person=truth["no"])] * 2, ignore_index=True)
    stays = pd.concat([fresh] * 2, ignore_index=True)
    assert warned(dp.disclosure(several, stays, ["sex"], ["ill", "no"], unit="person"))
    honest = pd.concat([tables(0)[1]] * 2, ignore_index=True)
    assert not warned(dp.disclosure(several, honest, ["sex"], ["ill", "no"], unit="person"))


def test_amounts_with_gaps_or_repeated_values_are_no_identifiers() -> None:
    truth, fresh = tables(0.5)
    with_gaps = truth.assign(no=truth["no"].where(truth.index % 4 > 0))
    assert not warned(dp.disclosure(with_gaps, fresh, ["sex"], ["ill", "no"]))
    rounded = truth.assign(no=truth["no"].round(-4))
    assert not warned(dp.disclosure(rounded, rounded, ["sex"], ["ill", "no"]))
    assert not is_like_identifier(148, 215) and is_like_identifier(1498, 1500)


DRAWS = {
    "incomes with cents": lambda random, n: np.round(random.lognormal(10, 0.5, n), 2),
    "incomes in whole units": lambda random, n: np.round(random.lognormal(11, 0.8, n)),
    "prices": lambda random, n: np.round(random.pareto(1, n) * 10_000),
    "whole numbers of a range": lambda random, n: random.integers(0, 20 * n, n),
    "seconds": lambda random, n: random.integers(0, 365 * 86_400, n),
    "minutes": lambda random, n: random.integers(0, 365 * 1_440, n),
}


@pytest.mark.parametrize("draw", list(DRAWS))
def test_amounts_that_are_drawn_anew_are_not_refused(draw: str) -> None:
    random = np.random.default_rng(4)
    like = 0
    for N_d, N_s in [(150, 150), (300, 3000), (1500, 1500), (2000, 300)] * 10:
        values = [np.asarray(DRAWS[draw](random, max(N_d, N_s))[:n]) for n in (N_d, N_s)]
        _, codes = np.unique(np.concatenate(values), return_inverse=True)
        d, s = (np.bincount(part, minlength=codes.max() + 1) for part in (codes[:N_d], codes[N_d:]))
        counts = Combinations.of_records(d).count_copies(s)
        like += is_like_identifier(counts.people.alone, N_d)
        assert not holds_real_values(counts, Sizes(N_d, N_s))
    assert like > 5  # or nothing was looked at


def gate_of(home: Path, engine: str, **settings: Any) -> Path:
    """Return a gate whose ground truth has a number for everybody."""
    home.mkdir()
    tables(0)[0].to_csv(home / "ground_truth.csv", index=False)
    columns: dict[str, Any] = {
        "sex": {"type": "category"},
        "ill": {"type": "category"},
        "no": {"type": "integer", "groups": 5, **settings},
    }
    attributes = gates.definition(
        columns=columns,
        engine=engine,
        keys=["sex"],
        targets=["ill", "no"],
        policy={"repU": {"at_most": 90}, "DiSCO": {"at_most": 90}},
    )
    return gates.write_definition(home / "defs", attributes)


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_a_gate_approves_no_real_identifiers(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = {"real": 0.3, "fresh": 0.0}
    for name, share in shares.items():
        (tmp_path / name).mkdir()
        tables(share)[1].to_csv(tmp_path / name / "table.csv", index=False)
    for settings, codes in (({}, {"real": 1, "fresh": 0}), ({"real_values": "keep"}, {"real": 0})):
        home = tmp_path / f"home-{len(settings)}"
        gate = gate_of(home, engine, **settings)
        gates.with_keys(home, monkeypatch)
        checked = run_command("check", gate)
        assert ("no is like an identifier" in checked.stderr) is not bool(settings), checked.output
        for candidate, code in codes.items():
            judged = run_command("evaluate", gate, tmp_path / candidate)
            assert judged.exit_code == code, judged.output
            assert ("'no' is like an identifier" in judged.output) is bool(code)


def test_keeping_real_values_is_part_of_the_policy() -> None:
    def digest(**settings: Any) -> str:
        columns = gates.definition()["columns"]
        return gates.gate(columns=columns | {"age": {"type": "integer", **settings}}).policy_digest()

    assert digest() == digest(real_values="refuse") != digest(real_values="keep")
    with pytest.raises(ValueError, match="real_values are for a column that may be published"):
        gates.gate(
            columns=gates.definition()["columns"] | {"id": {"type": "text identifier", "real_values": "keep"}}
        )
