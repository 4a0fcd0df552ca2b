"""The findings of the study as small tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from disclosure_pipeline.measures.catalogue import DEFAULTS, FIGURES
from disclosure_pipeline.measures.found import NEARLY, WAYS, WHOLE
from synthesizers.candidates import CONTROLS, SYNTHESIZERS
from synthesizers.results import FAILED

APPROVED = "approved"
BY_GUARDS = "a guard"
BY_BOUNDS = "the policy's bounds alone"
BY_CONTRACT = "contract or comparability"
BY_LIMIT = "the detection limit alone"
OUTCOMES = (APPROVED, BY_LIMIT, BY_BOUNDS, BY_CONTRACT, BY_GUARDS)
"""How candidates fare; those whose copies might not be noticed (`BY_LIMIT`) are undetermined."""

LIMIT = "detection_limit"
FOUND = tuple(f"found[{way}]" for way in WAYS)
GUARDS = (*FOUND, *(name for name in DEFAULTS if name != "found" and not FIGURES[name].is_doubt))
FIRST_LOOKED_AT = (*FOUND, "guessed", "relabelled", "repeats", "missing")
SHARES = (1, 3, 10, 30)
# Figures that say whether tables can be compared at all.
_OF_COMPARABILITY = {
    "key_overlap",
    "whole_key_overlap",
    "target_overlap",
    "warnings",
    "equal_content",
    *(name for name in DEFAULTS if FIGURES[name].is_doubt and name != LIMIT),
}
_WHOLE, _NEARLY = (f"found[{way}]" for way in (WHOLE, NEARLY))
_DISTANCE = "guards.TVD_pair_beyond"


def read_bound(guard: str) -> float:
    """Return the default of a guard.

    >>> read_bound("found[nearly]")
    10
    """
    figure, _, way = guard.rstrip("]").partition("[")
    default = FIGURES[figure].default
    assert default is not None, guard
    return default.find_bound(way)


def find_raw_figure(table: pd.DataFrame, guard: str) -> pd.Series[float]:
    """Return the figure by which a guard judges, with what chance gives."""
    if guard in FOUND:
        return table[guard]
    place = FIGURES[guard].place
    return table[f"{place.frame}.{place.beyond or place.value}"]


def find_figure_name(clause: str) -> str:
    """Return the figure of a clause by the clause's name.

    >>> find_figure_name("DiSCO[work] beyond"), find_figure_name("found[whole] beyond")
    ('DiSCO', 'found')
    """
    return re.split(r"[\[ ]", clause)[0]


def _find_guard(clause: str) -> str:
    """Return the guard, or else the figure, of a clause by the clause's name."""
    figure = find_figure_name(clause)
    return clause.removesuffix(" beyond") if figure == "found" else figure


def list_broken(table: pd.DataFrame) -> pd.Series[Any]:
    """Return the guards and other figures whose clauses each candidate breaks, as sets."""
    clauses = table["broken"].str.split("; ")
    return clauses.map(lambda broken: {_find_guard(clause) for clause in broken if clause})


def is_broken(table: pd.DataFrame, guards: Iterable[str]) -> pd.Series[bool]:
    """Return which candidates break a clause of one of some guards."""
    any_of = set(guards)
    return list_broken(table).map(lambda broken: bool(broken & any_of)).astype(bool)


def name_outcomes(table: pd.DataFrame) -> pd.Series[str]:
    """Return how each candidate fared; of several reasons the gravest."""
    broken, outcome = list_broken(table), pd.Series(APPROVED, index=table.index)
    outcome[is_broken(table, [LIMIT])] = BY_LIMIT
    others = {*GUARDS, *_OF_COMPARABILITY, LIMIT}
    outcome[broken.map(lambda figures: bool(figures - others)).astype(bool)] = BY_BOUNDS
    outcome[is_broken(table, _OF_COMPARABILITY) | table["contract"].ne("")] = BY_CONTRACT
    outcome[is_broken(table, GUARDS)] = BY_GUARDS
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
            "copied": group[_WHOLE].median(),
            "nearly": group[_NEARLY].median(),
            "DiSCO": group["DiSCO beyond"].median(),
            "distance": group[_DISTANCE].median(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values([BY_GUARDS, "distance"])


def count_refused(table: pd.DataFrame, candidate: str) -> pd.DataFrame:
    """Return how many of the candidates of a name were refused, and how many there are, by table.

    More than the detection limit must speak against them.
    """
    chosen = table[table["candidate"].eq(candidate) & table["decision"].ne(FAILED)]
    refused = ~name_outcomes(chosen).isin([APPROVED, BY_LIMIT])
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
