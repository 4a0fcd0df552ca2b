"""Persons and their events: what a gate makes of the panel of the study, and what the joining costs.

Run with `python benchmarks/linked.py`. One half of the people is the ground truth, the other one fresh; a
tenth of the fresh people then get the years of somebody of the ground truth, or are that person altogether.
`--events 10000000` joins so many events, of a fifth as many people, by three summaries and a multiset.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import measured
from synthesizers.public_tables import TABLES

from disclosure_pipeline.candidates.rehearsal import rehearse
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.events import Joining
from disclosure_pipeline.tables.sources import FileSource, LinkedSource

SIZES = (1_000_000, 10_000_000)
SEEDS = range(5)
PANEL = TABLES["rwm5yr"]
OF_PERSONS = ["id", "female", "educ", "birth"]
OF_EVENTS = ["id", "year", "docvis", "hospvis", "outwork", "married", "kids", "hhninc", "self"]
CHANGING = [name for name in OF_EVENTS if name not in {"id", "year"}]
LOOSE = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "key_overlap": 1, "target_overlap": 1}

Pair = tuple[pd.DataFrame, pd.DataFrame]


def halves(seed: int) -> tuple[Pair, Pair]:
    """Return the people of the panel and their years, by halves."""
    panel = PANEL.read().assign(birth=lambda table: (table["year"] - table["age"]) // 5 * 5)
    people = np.random.default_rng(seed).permutation(panel["id"].unique())
    known = panel["id"].isin(people[: len(people) // 2])
    first, second = (
        (rows.drop_duplicates("id")[OF_PERSONS], rows[OF_EVENTS]) for rows in (panel[known], panel[~known])
    )
    return first, second


def copy_some(known: Pair, fresh: Pair, share: float, *, whole: bool) -> Pair:
    """Return the fresh people, a share of whom have the years of known ones, or are these if `whole`."""
    (persons, years), (others, their_years) = known, fresh
    taken = persons["id"].sample(round(share * len(others)), random_state=3)
    replaced = others["id"].iloc[: len(taken)]
    new_id = dict(zip(taken, replaced, strict=True))
    history = years[years["id"].isin(taken)].assign(id=lambda rows: rows["id"].map(new_id))
    if whole:
        copied = persons[persons["id"].isin(taken)].assign(id=lambda rows: rows["id"].map(new_id))
        others = pd.concat([copied, others[~others["id"].isin(replaced)]])
    return others, pd.concat([history, their_years[~their_years["id"].isin(replaced)]])


def gate(events: bool) -> Gate:
    """The gate of the panel, with every bound but the guards open; `events`: of both tables."""
    attributes = {
        "name": "panel",
        "ground_truth": "persons.parquet",
        "incoming": "incoming",
        "store": "store",
        "releases": "releases",
        "trusted_keys": "keys.pem",
        "columns": {name: {"type": "number", "published": True} for name in OF_PERSONS if name != "id"},
        "keys": ["female", "birth"],
        "targets": ["educ"],
        "policy": LOOSE,
    }
    if events:
        attributes |= {
            "unit": "id",
            "targets": ["educ", "events.outwork.last", "events.docvis.most_frequent"],
            "events": {
                "ground_truth": "events.parquet",
                "columns": {name: {"type": "number"} for name in OF_EVENTS if name != "id"},
                "order": "year",
                "summaries": {"year": ["first"], **{name: ["last", "most_frequent"] for name in CHANGING}},
            },
        }
    return Gate.model_validate(attributes)


def judge(folder: Path, known: Pair, candidate: Pair, *, events: bool) -> dict[str, object]:
    """Return the decision on a candidate, and how far it goes."""
    (folder / "candidate").mkdir(parents=True)
    for name, tables in (("", known), ("candidate", candidate)):
        for kind, table in zip(("persons", "events"), tables, strict=True):
            if events or kind == "persons":
                kept = table if events else table.drop(columns="id")
                kept.to_parquet(folder / name / f"{kind}.parquet", index=False)
    persons = FileSource(path=str(folder / "persons.parquet"))
    both = LinkedSource(persons, FileSource(path=str(folder / "events.parquet")))
    store = Store(folder / "store")
    store.root.mkdir()
    places = GateFolders(gate(events), both if events else persons, folder, store, folder / "out", (), ())
    found = rehearse(places, folder / "candidate", datetime.now(timezone.utc))
    guards = view_frame(found.dossier["figures"], "guards")[0]
    broken = [row["name"] for row in found.dossier["clauses"] if row["outcome"] != "kept"]
    return {
        "decision": found.decision,
        "people_copied_beyond": guards["people_copied_beyond"],
        "broken": ", ".join(broken),
    }


def judge_panel() -> Iterator[dict[str, object]]:
    """Yield what the gate makes of each candidate."""
    for seed in SEEDS:
        known, fresh = halves(seed)
        candidates = {
            "fresh": fresh,
            "a tenth of the histories": copy_some(known, fresh, 0.1, whole=False),
            "a tenth of the people": copy_some(known, fresh, 0.1, whole=True),
        }
        for name, candidate in candidates.items():
            for events in (True, False):
                with tempfile.TemporaryDirectory() as folder:
                    row = judge(Path(folder), known, candidate, events=events)
                tables = "persons and events" if events else "persons alone"
                yield {"seed": seed, "candidate": name, "tables": tables, **row}


def cost(events: int) -> dict[str, object]:
    """Measure the joining of so many events."""
    random = np.random.default_rng(1)
    persons = pd.DataFrame({"id": np.arange(events // 5), "sex": random.choice(["f", "m"], events // 5)})
    rows = pd.DataFrame(
        {
            "id": random.integers(0, len(persons), events),
            "day": random.integers(0, 3_650, events),
            "why": pd.Categorical(random.choice([*map(chr, range(97, 122))], events)),
        }
    )
    joining = Joining("id", "day", {"why": ("first", "last", "most_frequent")}, ["why"])
    seconds, memory = measured(lambda: joining.join(persons, rows, ("persons", "events")))
    return {"events": f"{events:,}", "people": f"{len(persons):,}", "CPU s": seconds, "peak MB": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="*", default=SIZES)
    table = pd.DataFrame(map(cost, parser.parse_args().events))
    print(table.to_string(index=False, float_format="{:.2f}".format), flush=True)
    judged = pd.DataFrame(judge_panel())
    print(judged.to_string(index=False, float_format="{:.1f}".format))


if __name__ == "__main__":
    main()
