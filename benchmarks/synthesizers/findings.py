"""The findings of the study as small tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import pandas as pd

from disclosure_pipeline.evaluation.catalogue import DEFAULTS, FIGURES
from synthesizers.candidates import CONTROLS, SYNTHESIZERS
from synthesizers.results import BEYOND_BOUNDS, FAILED

APPROVED = "approved"
BY_GUARDS = "a guard"
BY_BOUNDS = "the policy's bounds alone"
BY_CONTRACT = "contract or comparability"
OUTCOMES = (APPROVED, BY_BOUNDS, BY_CONTRACT, BY_GUARDS)

# The gates of the study have no earlier releases, and ask for no bands.
_NOT_IN_THE_STUDY = {"bands", "over_releases"}
_NOT_RECORDED = "detection_limit"
_FOUND = "found"
EARLIER = {
    "people_copied": 2.5,
    "unique_copies": 2.5,
    "partial_copies": 7.0,
    "group_copied": 10.0,
    "nearer": 70.0,
    "much_nearer": 20.0,
}
"""The bounds that stood for those of the people found when the recorded tables were made."""

GUARDS = (
    *EARLIER,
    *(
        name
        for name in DEFAULTS
        if not FIGURES[name].is_doubt and FIGURES[name].place.frame not in _NOT_IN_THE_STUDY
    ),
)
DOUBTS = (
    *(name for name in DEFAULTS if FIGURES[name].is_doubt and name != _NOT_RECORDED),
    "equal_content",
)
COPY_FIGURES = tuple(EARLIER)
FIRST_LOOKED_AT = (*COPY_FIGURES, "guessed", "relabelled", "repeats", "missing")
SHARES = (1, 3, 10, 30)
# Figures that say whether tables can be compared at all.
_OF_COMPARABILITY = {"key_overlap", "whole_key_overlap", "target_overlap", "warnings"}
_DISTANCE = "guards.TVD_pair_beyond"


def read_bound(guard: str) -> float:
    """Return the default of a guard as it is today, or was when the recorded tables were made."""
    if guard in EARLIER or guard == _FOUND:
        return EARLIER.get(guard, 0.0)
    default = FIGURES[guard].default
    assert default is not None, guard
    return default.bound


def find_figure(table: pd.DataFrame, guard: str) -> pd.Series[float]:
    """Return the figure by which a guard judges: beyond what chance gives; of people found, their bounds."""
    if guard == _FOUND:
        return table.get(BEYOND_BOUNDS, pd.Series(math.nan, index=table.index))
    if guard in EARLIER:
        return table.get(f"guards.{guard}_beyond_chance", pd.Series(math.nan, index=table.index))
    place = FIGURES[guard].place
    return table[f"{place.frame}.{place.beyond_chance or place.value}"]


def find_raw_figure(table: pd.DataFrame, guard: str) -> pd.Series[float]:
    """Return the figure itself, with what chance gives."""
    if guard in EARLIER:
        is_nearness = guard.endswith("nearer")
        return table[f"guards.{guard}" if is_nearness else f"guards.{guard}_beyond"]
    place = FIGURES[guard].place
    return table[f"{place.frame}.{place.beyond or place.value}"]


def find_figure_name(clause: str) -> str:
    """Return the figure of a clause by the clause's name.

    >>> find_figure_name("DiSCO[work] beyond"), find_figure_name("found[whole] beyond")
    ('DiSCO', 'found')
    """
    return re.split(r"[\[ ]", clause)[0]


def is_broken(table: pd.DataFrame, guards: Iterable[str]) -> pd.Series[bool]:
    """Return which candidates break the default, as it is today, of one of some guards."""
    broken = pd.Series(False, index=table.index)
    for guard in guards:
        figures = find_figure(table, guard)
        # A table that cannot be read has no figures: the contract refuses it.
        is_unknown = figures.isna() & table["contract"].eq("") & (guard not in {*EARLIER, _FOUND})
        if guard == _FOUND:  # nobody looked for copies in any way
            is_unknown = figures.isna() & find_figure(table, "nearer").isna() & table["contract"].eq("")
        broken |= is_unknown | (figures > read_bound(guard))
    return broken & table["decision"].ne(FAILED)


def name_outcomes(table: pd.DataFrame) -> pd.Series[str]:
    """Return how each candidate fared: by the bounds of the policy that `init` writes, and today's guards."""
    outcome = pd.Series(APPROVED, index=table.index)
    clauses = table["broken"].str.split("; ")
    names = clauses.map(lambda broken: {find_figure_name(clause) for clause in broken if clause})
    has_default = {name: entry.default is not None for name, entry in FIGURES.items()}
    by_bounds = names.map(lambda figures: not all(has_default.get(name, True) for name in figures))
    in_doubt = names.map(lambda figures: bool(figures & _OF_COMPARABILITY))
    outcome[by_bounds] = BY_BOUNDS
    outcome[in_doubt | is_broken(table, DOUBTS) | table["contract"].ne("")] = BY_CONTRACT
    found = names.map(lambda figures: "found" in figures)
    outcome[found | is_broken(table, GUARDS)] = BY_GUARDS
    return outcome.mask(table["decision"].eq(FAILED), FAILED)


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each synthesizer: percent of its tables by outcome, and medians of some figures."""
    of_synthesizers = table[~table["candidate"].isin(CONTROLS) & table["decision"].ne(FAILED)]
    outcomes = name_outcomes(of_synthesizers)
    rows = {}
    for name, group in of_synthesizers.groupby("candidate"):
        shares = outcomes[group.index].value_counts(normalize=True).reindex(list(OUTCOMES), fill_value=0)
        rows[name] = {
            "title": SYNTHESIZERS[name].title if name in SYNTHESIZERS else name,
            "tables": len(group),
            **(100 * shares),
            "people copied": group["guards.people_copied_beyond"].median(),
            "nearer": group["guards.nearer"].median() if "guards.nearer" in group else math.nan,
            "DiSCO": group["DiSCO beyond"].median(),
            "distance": group[_DISTANCE].median(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values([BY_GUARDS, "distance"])


def count_refused(table: pd.DataFrame, candidate: str) -> pd.DataFrame:
    """Return how many of the candidates of a name were not approved, and how many there are, by table."""
    chosen = table[table["candidate"].eq(candidate) & table["decision"].ne(FAILED)]
    refused = name_outcomes(chosen).ne(APPROVED)
    return refused.groupby(chosen["table"]).agg(["sum", "count"])


def find_first(table: pd.DataFrame, candidates: Iterable[str]) -> pd.DataFrame:
    """Return percent of the tables of each candidate (a row) on which each guard (a column) is broken."""
    rows = {}
    for name in candidates:
        chosen = table[table["candidate"].eq(name) & table["decision"].ne(FAILED)]
        if len(chosen):
            rows[name] = {guard: 100 * float(is_broken(chosen, [guard]).mean()) for guard in FIRST_LOOKED_AT}
    return pd.DataFrame.from_dict(rows, orient="index")


def describe_defaults(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each guard its default, the largest figure of a fresh half, and medians of copied tables."""
    rows = {}
    for guard in FIRST_LOOKED_AT:
        figures = find_raw_figure(table, guard)

        def of(name: str, figures: pd.Series[float] = figures) -> pd.Series[float]:
            return figures[table["candidate"].eq(name)]

        rows[guard] = {
            "default": read_bound(guard),
            "fresh": of("fresh").max(),
            **{name: of(name).median() for name in ("copies_10", "copies_30", "near_30", "bootstrap")},
        }
    return pd.DataFrame.from_dict(rows, orient="index")
