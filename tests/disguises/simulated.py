"""Over a thousand honest candidates, and how many of them are not approved.

`python -m disguises.simulated`, with `tests` and `benchmarks` on the path, judges all of them by the whole
gate that `init` writes, and writes `simulated.tsv`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from synthesizers.candidates import SEEDS_OF_FRESH
from synthesizers.findings import find_figure_name
from synthesizers.judging import Judge, Verdict, finish, write_gate, write_gate_of
from synthesizers.public_tables import TABLES

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement
from disguises.tables import apart, definition, judge_guards, list_refusing, measure_guards, write_rows

RESULT = Path(__file__).with_name("simulated.tsv")
CANDIDATES: Mapping[int, int] = {200: 13, 2_000: 13, 20_000: 6}
"""Records of the ground truth -> candidates of each population and way to make them: 960 in all."""

MOST_REFUSED = 0.01

Draw = Callable[[int, int], pd.DataFrame]
Make = Callable[["Population", pd.DataFrame, int], pd.DataFrame]
Random = np.random.Generator


@dataclass(frozen=True)
class Population:
    """`draw` gives so many people by a seed; keys and targets of its gate.

    `changes`: what its custodian writes otherwise than `init`, by column.
    """

    draw: Draw
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def gate(self) -> Gate:
        """A gate that bounds nothing but the guards."""
        columns = {
            name: {"type": "integer" if pd.api.types.is_integer_dtype(values) else "category"}
            for name, values in self.draw(50, 0).items()
        }
        own = {"columns": columns, "keys": list(self.keys), "targets": list(self.targets)}
        return Gate.model_validate(definition("survey") | own)

    def default_gate(self, records: int) -> Gate:
        """The gate that `init` writes for so many people, with all levels that they may have."""
        everybody = self.draw(50_000, 0)
        categories = everybody.select_dtypes(exclude="number")
        levels = {name: {"levels": sorted(categories[name].dropna().unique())} for name in categories}
        has_band = any("within" in column for column in self.changes.values())
        policy = {"DiSCO_within": {"beyond": 3}} if has_band else {}
        return write_gate_of(self.draw(records, 0), self.keys, {**levels, **self.changes}, policy)


def _letters(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    return np.array([f"level-{code:02}" for code in range(int(codes.max()) + 1)], dtype=object)[codes]


def _census(records: int, seed: int) -> pd.DataFrame:
    """Hours that heap, a weight that nearly everybody has alone, categories that depend on one another."""
    random = np.random.default_rng([1, seed])
    kind = random.integers(0, 6, records)
    age = np.clip(random.gamma(6, 6, records) + 2 * kind, 17, 90).astype(np.int64)
    hours = np.where(random.random(records) < 0.5, 40, np.clip(random.normal(38, 12, records), 1, 99))
    education = (kind + random.poisson(0.7, records)) % 8
    return pd.DataFrame(
        {
            "age": age,
            "hours": hours.astype(np.int64),
            "weight": np.exp(random.normal(12, 0.5, records)).astype(np.int64),
            "education": _letters(education),
            "work": _letters((education + random.poisson(0.8, records)) % 10),
            "sex": _letters(random.integers(0, 2, records)),
            "class": _letters((random.random(records) < (kind + 1) / 12).astype(np.int64)),
        }
    )


def _questionnaire(records: int, seed: int) -> pd.DataFrame:
    """Twenty answers of five levels, which a common opinion moves: nearly all records differ."""
    random = np.random.default_rng([2, seed])
    opinion = random.normal(0, 1, (records, 1))
    answers = np.clip(np.round(2 + opinion * 0.7 + random.normal(0, 0.9, (records, 20))), 0, 4)
    return pd.DataFrame({f"q{k:02}": _letters(answers[:, k].astype(np.int64)) for k in range(20)})


def _register(records: int, seed: int) -> pd.DataFrame:
    """Five categories of few levels: most people equal others."""
    random = np.random.default_rng([3, seed])
    district = np.minimum(random.geometric(0.25, records) - 1, 11)
    return pd.DataFrame(
        {
            "district": _letters(district),
            "sex": _letters(random.integers(0, 2, records)),
            "decade": _letters(random.integers(0, 8, records)),
            "owner": _letters((district + random.integers(0, 2, records)) % 3),
            "benefit": _letters((random.random(records) < 0.15).astype(np.int64)),
        }
    )


def _measurements(records: int, seed: int) -> pd.DataFrame:
    """Eight numbers that hang together, skewed, some of them missing."""
    random = np.random.default_rng([4, seed])
    common = random.normal(0, 1, (records, 2))
    mixing = np.random.default_rng(4).normal(0, 1, (2, 8))
    values = np.exp(5 + 0.3 * (common @ mixing) + random.normal(0, 0.3, (records, 8)))
    frame = pd.DataFrame({f"m{k}": values[:, k].round().astype(np.int64) for k in range(8)}, dtype="Int64")
    return frame.mask(random.random(frame.shape) < 0.03)


POPULATIONS: Mapping[str, Population] = {
    "survey": Population(
        population,
        ("sex", "age", "region", "household"),
        ("education", "income", "health", "work", "worked_abroad"),
    ),
    "census": Population(
        _census,
        ("age", "sex", "education"),
        ("work", "hours", "class"),
        # Models that draw from the weights there are keep them.
        {
            "weight": {"type": "integer", "published": True, "real_values": "keep"},
            "hours": {"within": 5, "groups": None},
        },
    ),
    "questionnaire": Population(_questionnaire, ("q00", "q01", "q02"), ("q10", "q11")),
    "register": Population(_register, ("district", "sex", "decade"), ("owner", "benefit")),
    "measurements": Population(
        _measurements,
        ("m0", "m1"),
        ("m2", "m3"),
        {"m2": {"within": 0.1, "groups": None}},
    ),
}


def _others(seeds_from: int, times: int = 1, part: int = 1) -> Make:
    """Draw people anew, so many times as many as the ground truth has, or a part of them."""
    return lambda people, ground_truth, seed: people.draw(
        times * len(ground_truth) // part, seeds_from + seed
    )


def _apart(people: Population, ground_truth: pd.DataFrame, seed: int) -> pd.DataFrame:
    return apart(ground_truth, seed)


def _chained(people: Population, ground_truth: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw each column from somebody who is in the same fifth of the column before."""
    random = np.random.default_rng([5, seed])
    rows = random.integers(0, len(ground_truth), len(ground_truth))
    first, *rest = ground_truth.columns
    table = {first: ground_truth[first].array.take(rows)}
    before = first
    for name in rest:
        group = _fifths(ground_truth[before])
        order = np.argsort(group, kind="stable")
        counts = np.bincount(group)
        of_row = group[rows]
        starts = (np.cumsum(counts) - counts)[of_row]
        rows = order[starts + random.integers(0, counts[of_row])]
        table[name], before = ground_truth[name].array.take(rows), name
    return pd.DataFrame(table)


def _fifths(values: pd.Series) -> npt.NDArray[np.int64]:
    if values.nunique() > 12 and pd.api.types.is_numeric_dtype(values):
        values = values.rank(pct=True).mul(5).clip(upper=4.999).fillna(5).astype(np.int64)
    return pd.factorize(values, use_na_sentinel=False)[0]


def _copula(people: Population, ground_truth: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw from a Gaussian copula of all columns, categories in the order of their frequency."""
    random = np.random.default_rng([6, seed])
    records, scores, ordered = len(ground_truth), [], []
    normal = [NormalDist().inv_cdf((place + 0.5) / records) for place in range(records)]
    for name in ground_truth.columns:
        codes = pd.factorize(ground_truth[name], sort=True, use_na_sentinel=False)[0]
        if not pd.api.types.is_numeric_dtype(ground_truth[name]):
            codes = np.bincount(codes)[codes] * (codes.max() + 1) + codes
        order = np.lexsort([random.random(records), codes])
        scores.append(np.array(normal)[np.argsort(order)])
        ordered.append(ground_truth[name].array.take(order))
    drawn = random.multivariate_normal(np.zeros(len(scores)), np.corrcoef(scores), records)
    places = np.argsort(np.argsort(drawn, axis=0), axis=0)
    return pd.DataFrame({name: ordered[k].take(places[:, k]) for k, name in enumerate(ground_truth.columns)})


MAKERS: Mapping[str, Make] = {
    "fresh people": _others(1_000_000),
    "a third as many fresh people": _others(2_000_000, part=3),
    "three times as many fresh people": _others(3_000_000, times=3),
    "columns drawn apart": _apart,
    "each column by the one before": _chained,
    "a Gaussian copula": _copula,
}

FRESH_HALF = "the other half of a public table"


def decide(name: str, records: int, maker: str, number: int) -> Verdict:
    """Judge an honest candidate by its whole gate: of a population, or the fresh half of a public table."""
    if maker == FRESH_HALF:
        table = TABLES[name]
        whole = table.read()
        ground_truth, fresh = table.halve(whole, SEEDS_OF_FRESH[number])
        gate = write_gate(table, whole)
        return Judge(gate, ground_truth).decide(finish(fresh, table.without_unit(ground_truth)))
    people = POPULATIONS[name]
    ground_truth = people.draw(records, number)
    candidate = MAKERS[maker](people, ground_truth, number)
    return Judge(people.default_gate(records), ground_truth).decide(candidate)


def name_reasons(verdict: Verdict) -> set[str]:
    """Return the figures whose clauses are not kept, and `contract` if values were refused."""
    return {*map(find_figure_name, verdict.broken), *(["contract"] if verdict.contract else [])}


def find_refusals(people: Population, ground_truth: pd.DataFrame, synthetic: pd.DataFrame) -> list[Judgement]:
    """Return the guards that do not let a table pass."""
    gate = people.gate()
    return list_refusing(judge_guards(gate, measure_guards(gate, ground_truth, [synthetic])))


@cache
def list_cases() -> Mapping[tuple[str, int, str], int]:
    """Return population or table, records of the ground truth and maker -> number of candidates."""
    cases = {
        (name, records, maker): candidates
        for records, candidates in CANDIDATES.items()
        for name in POPULATIONS
        for maker in MAKERS
    }
    halves = {name: len(table.read()) // 2 for name, table in TABLES.items()}
    return cases | {(name, records, FRESH_HALF): len(SEEDS_OF_FRESH) for name, records in halves.items()}


def simulate() -> Iterator[tuple[Any, ...]]:
    """Judge all candidates: case, candidates, how many are refused and undetermined, and why."""
    for case, candidates in list_cases().items():
        verdicts = [decide(*case, number) for number in range(candidates)]
        reasons = set().union(*map(name_reasons, verdicts))
        decisions = [verdict.decision for verdict in verdicts]
        refused, undetermined = map(decisions.count, ("refused", "undetermined"))
        yield *case, candidates, refused, undetermined, " ".join(sorted(reasons))


COLUMNS = ["population", "records", "made", "candidates", "refused", "undetermined", "reasons"]


if __name__ == "__main__":
    write_rows(simulate(), COLUMNS, RESULT)
