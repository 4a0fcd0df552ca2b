"""A candidate beside what is published: against the records one by one, simulated, and under attack."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from reference import releases as records
from support.sampling import on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.counting.opening import open_tables
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.evaluation.counts import WholeRecords, plan_measures
from disclosure_pipeline.evaluation.releases import measure_releases
from disclosure_pipeline.measures.catalogue import DEFAULTS
from disclosure_pipeline.measures.found import USUAL_BOUNDS, WHOLE
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = [pytest.mark.usefixtures("no_guards"), on_some_days]

PEOPLE, SHARED = "people_in_releases", "shared_with_releases"
KEYS, TARGETS = ["a", "b"], ["t"]
ENGINES = ["memory", "partitioned", "duckdb://"]


def draw(seed: int, size: int, codes: int = 6) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).integers(0, codes, (size, 3)), columns=[*KEYS, *TARGETS])


def measured(
    gt: pd.DataFrame,
    releases: Sequence[Sequence[pd.DataFrame]],
    keys: Sequence[str] = KEYS,
    targets: Sequence[str] = TARGETS,
    engine: str = "memory",
    unit: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables = [table for release in releases for table in release]
    with open_tables(gt, tables, engine) as opened:
        plan = plan_measures(opened, keys, targets, grouping_of(), unit=unit, whole_records=WholeRecords(10))
        return measure_releases(opened, plan, list(map(len, releases)))


@pytest.mark.parametrize("engine", ENGINES)
def test_figures_are_those_of_the_records(engine: str) -> None:
    gt = draw(0, 90)
    releases = [
        [draw(1, 60)],
        [draw(2, 40), gt.head(30)],
        [draw(3, 50), pd.concat([gt.head(12), draw(4, 40)])],
    ]
    rows = [[list(map(tuple, table.to_numpy().tolist())) for table in of] for of in releases]
    of_GT = list(map(tuple, gt.to_numpy().tolist()))
    frame, of_targets = measured(gt, releases, engine=engine)
    expected = np.array(records.in_releases(of_GT, rows))
    assert frame.index.tolist() == [1, 2, 3]
    assert frame[[PEOPLE, f"{PEOPLE}_expected"]].to_numpy() == pytest.approx(expected)
    found = frame.iloc[-1][[SHARED, f"{SHARED}_expected"]].tolist()
    pairs = records.shared(rows)
    assert any(found == pytest.approx(pair) for pair in pairs)
    assert frame.iloc[-1][f"{SHARED}_beyond"] == pytest.approx(max(f - e for f, e in pairs))
    assert frame[SHARED].isna().tolist() == [True, True, False]
    for step, number in ((1, 1), (2, 3), (3, 5)):
        tables = [table for release in releases[:step] for table in release]
        if number > 1:
            alone = dp.disclosure(gt, tables, KEYS, TARGETS)
            rows_of_step = of_targets.loc[(slice(None), step), :].droplevel("releases")
            assert rows_of_step.to_dict("index") == alone.together.to_dict("index")
            assert frame.loc[step, "repU_any"] == alone.together_identity["repU_any"].item()


@pytest.mark.parametrize("engine", ENGINES)
def test_people_with_several_records_count_once(engine: str) -> None:
    """Each has three records, of which one column changes; what belongs to one unit is nobody else's."""
    gt = draw(0, 40, 30).loc[np.repeat(np.arange(40), 3)].reset_index(drop=True)
    gt["t"] = np.arange(len(gt)) % 3
    gt["unit"] = np.repeat(np.arange(40), 3)
    tables = [[draw(1, 60, 30)], [pd.concat([gt.drop(columns="unit").head(30), draw(2, 60, 30)])]]
    frame, of_targets = measured(gt, tables, engine=engine, unit="unit")
    row = frame.iloc[-1]
    assert row[PEOPLE] >= 100 * 30 / 120
    both = [table for release in tables for table in release]
    alone = dp.disclosure(gt, both, KEYS, TARGETS, unit="unit")
    of_both = of_targets.loc[(slice(None), 2), :].droplevel("releases")
    assert of_both.to_dict("index") == alone.together.to_dict("index")


def test_honest_releases_stay_within_chance() -> None:
    """None of 12 gates with four fresh samples each goes beyond; on average they stay below."""
    beyond = []
    for seed in range(12):
        gt, *tables = (population(300, seed=1000 + 5 * seed + k) for k in range(5))
        frame, of_targets = measured(gt, [[table] for table in tables], ["sex", "age"], ["work"])
        last = frame.iloc[-1]
        assert last[f"{PEOPLE}_beyond_chance"] <= 0 and last[f"{SHARED}_beyond_chance"] <= 0
        assert of_targets["DiSCO_any_beyond_chance"].max() <= 0
        beyond.append([last[f"{PEOPLE}_beyond"], last[f"{SHARED}_beyond"]])
    people, of_pairs = np.mean(beyond, axis=0)
    assert people < 0.3 and of_pairs < 0.6  # the latter is the worst of four


def test_twelve_candidates_that_share_copies_in_pairs() -> None:
    """2.3 % of the people in each pair, below the bound of a table: the partner and the next are refused."""
    gt = population(4000, seed=1)

    def candidate(number: int) -> pd.DataFrame:
        first = number // 2 * 92
        return pd.concat([gt.iloc[first : first + 92], population(3908, seed=10 + number)], ignore_index=True)

    tables = [[candidate(number)] for number in range(12)]

    def broken(number: int) -> list[str]:
        last = measured(gt, tables[:number], ["sex", "age"], ["work"])[0].iloc[-1]
        bounds = {PEOPLE: USUAL_BOUNDS[WHOLE], SHARED: DEFAULTS[SHARED]}
        return [name for name, bound in bounds.items() if last[f"{name}_beyond_chance"] > bound]

    assert broken(2) == [SHARED]
    assert broken(3) == [PEOPLE]
    assert broken(12) == [PEOPLE, SHARED]
    honest = [[population(4000, seed=30 + number)] for number in range(12)]
    assert measured(gt, honest, ["sex", "age"], ["work"])[0][f"{PEOPLE}_beyond_chance"].max() <= 0
