"""Look for the figure of docs/architecture.md in a copy of the package that has its entry."""

import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from support import gates

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frames import find_words
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.evidence.page.rendering import make_publishable, render_page
from disclosure_pipeline.policy.gate_template import build_file_schema
from disclosure_pipeline.policy.verdict import judge

NAME = "found_with_target"
KEYS, TARGET = ["sex", "age"], "work"
MEASURED = {"ground_truth": "a" * 64, "snapshot": "b" * 64}


def list_pairs(table: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(table[[*KEYS, TARGET]].astype(str).itertuples(index=False, name=None))


def chance_of_any(pair: object, table: Sequence[object], n: int) -> float:
    """Return the chance that n records drawn from a table have the pair."""
    matching = table.count(pair)
    return 1 - math.comb(len(table) - matching, n) / math.comb(len(table), n)


def compare_with_the_definition() -> None:
    """Compare with the definition, person by person, for SD smaller than GT, with units and weights."""
    gt, sd = gates.ground_truth(80), gates.honest().head(50)
    people, records = list_pairs(gt), list_pairs(sd)
    unit = np.arange(80) // 2
    expected = 100 * sum(person in records for person in people) / 80
    of_records = dp.disclosure(gt, sd, KEYS, TARGET).attribute.iloc[0]
    others = [chance_of_any(person, [*people[:i], *people[i + 1 :]], 50) for i, person in enumerate(people)]
    assert math.isclose(of_records[NAME], expected)
    assert math.isclose(of_records[f"{NAME}_at_n"], expected)
    assert math.isclose(of_records[f"{NAME}_others"], 100 * sum(others) / 80)
    assert of_records[f"{NAME}_beyond_chance"] <= of_records[f"{NAME}_beyond"]
    weight = np.arange(80) % 3 + 1.0
    both = gt.assign(weight=weight, unit=unit)
    result = dp.disclosure(both, sd, KEYS, TARGET, weights="weight", unit="unit")
    others = [
        chance_of_any(person, [people[j] for j in range(80) if unit[j] != unit[i]], 50)
        for i, person in enumerate(people)
    ]
    by_weight = result.population_targets.iloc[0]
    found = np.array([person in records for person in people])
    assert math.isclose(by_weight[f"{NAME}_weighted"], 100 * (weight * found).sum() / weight.sum())
    assert math.isclose(by_weight[f"{NAME}_others_weighted"], 100 * (weight * others).sum() / weight.sum())
    assert math.isclose(result.attribute.iloc[0][f"{NAME}_others"], 100 * sum(others) / 80)


def look_for_it_in_a_gate() -> None:
    """Find it in the long table, in a clause that is broken, and on the page, in both editions."""
    policy = {**gates.definition()["policy"], NAME: {"beyond": 0}}
    gate = gates.gate(policy=policy)
    result = gates.measured(gate, gates.ground_truth(), [gates.ground_truth()])
    rows = [row for row in tabulate_figures(result) if row.figure == NAME]
    assert {row.about for row in rows} == set(map(str, gate.targets))
    judgements = judge(gate.clauses(), result)
    broken = [judgement for judgement in judgements if judgement.clause.figure == NAME]
    assert broken
    assert {judgement.outcome for judgement in broken} == {"exceeded"}
    content = json.loads(json.dumps(build_dossier(gate, "new", MEASURED, result, judgements)))
    for page in (render_page(content, "internal"), render_page(make_publishable(content), "publication")):
        assert f"{NAME} beyond: others" in page
    assert NAME in json.dumps(build_file_schema())
    assert find_words(f"{NAME}_beyond_weighted") is not None


if __name__ == "__main__":
    assert Path(dp.__file__).is_relative_to(Path.cwd()), "the copy of the package is measured"
    warnings.simplefilter("ignore")
    compare_with_the_definition()
    look_for_it_in_a_gate()
    print("found everywhere")
