"""The result of `disclosure()`: frames, a summary, and their picture."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.frames import explain, frame_from_record, frame_to_record
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.messages import escape_unseen_in_lines

if TYPE_CHECKING:
    import altair as alt

_BESIDE_HOLDOUT = ("repU", "unique_hits", "DiSCO", "guessed")
_SUMMARISED = ("Dorig", "DiSCO", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se")
_OF_ANY = ("DiSCO_any_others", "DiSCO_any_beyond", "DiSCO_any_beyond_se", "DiSCO_any_fresh")
_OF_RELEASE = ("any", *_OF_ANY, "agreed")
_OF_BANDS = "Amounts told to within their band: percent of GT records"
_SHOWN_OF_BANDS = (
    "within",
    *("DiSCO_within", "DiSCO_within_others", "DiSCO_within_beyond"),
    *("guessed_within", "guessed_within_others", "guessed_within_beyond"),
)
_TWO = 2
SMALLEST_COUNT = 10
"""The number of people below which a figure says how few they are."""


_FACTS = ("keys", "targets", "N_d", "N_s", "N_holdout", "warnings", "comparability_doubts")


@dataclass(frozen=True, repr=False, eq=False)
class Disclosure:
    """Every measure of m syntheses of one ground truth. Percent of all GT records unless said otherwise.

    `identity`: index synthesis (1…m); UiO, UiS (percent of SD records), UiOiS, repU; unique_hits (percent of
    SD records); on all records.
    `attribute`: index (target, synthesis); Dorig, Dsyn (of SD records), iS, DiS, DiSCO, DiSDiO; max_denom
    and mean_denom are numbers of records; DiSCO_chance, DiSCO_excess. `cap`: the CAP family, and `guessed`:
    the share whose target is guessed rightly from the most frequent level of their keys in SD.
    Beside a figure stands what a fresh sample of other people would show, `…_others`, the figure of as many
    records, `…_at_n`, and what SD tells beyond the others, `…_beyond`, in percentage points, with its
    standard error `…_beyond_se`. A `…_beyond` of a fresh sample is 0 on average; `…_beyond_chance` is what
    of it goes beyond chance. After exclusions these are of what is left, as the figures are.
    `together`, for m > 1: index target; percent of the GT records that DiSCO counts in at least one synthesis
    (`any`), and of whom at least two disclose a level, all of them their own (`agreed`); what as many draws
    of other people's records disclose (`DiSCO_any_others`), and what the syntheses do beyond that, brought to
    as many records; `DiSCO_any_fresh`: what as many fresh samples disclose at most. `together_identity`:
    one row, index syntheses (their number); `repU_any`: replicated uniques in at least one. What m tables
    that are published together give away is in no mean over them.
    `holdout`, where one was given: index (target, synthesis, measure); iS, DiSCO, DCAP, guessed, and DiS and
    DiSCO at each certainty, of the GT records and of the holdout's against the same SD, in percent of each;
    `difference` in percentage points, with Newcombe's interval at 95 %. repU and unique_hits stand under the
    target "(whole key)", of as many records of both. `N_holdout`: its records, 0 where there is none.
    `membership`, where a holdout was given: index synthesis; how well an attacker tells who took part, by
    keys, by whole records (`advantage_…`, in percentage points) and by the distance to the nearest SD record
    (`TPR_at_…`, `AUC`), with intervals, and the ε that they rule out.
    `units`, where a unit was given: index synthesis; the number of units, individual and household risk.
    `population`, where weights or a sampling fraction were given: index synthesis; DIS, repU_population and
    the number of expected right identifications; `population_targets`: index (target, synthesis),
    DiSCO_population; with weights both have weighted shares of people, `…_weighted`. `individual`: of each GT
    record how many records have its keys, how many people these stand for, and its individual risk; of
    tables in memory alone, and never part of what is kept or printed.
    `certainty`: index (target, synthesis, certainty), for the certainties that were asked for; DiS and DiSCO
    of an intruder who acts where one level has at least that share, and precision, DiSCO in percent of DiS.
    `bands`, of targets with a band: index (target, synthesis); the share whose amount is told to within it:
    `DiS_within`, `DiSCO_within` and `guessed_within` (the median of their keys in SD), beside what others'
    records tell; `band_certainty`: the same with a certainty.
    `identity_after_exclusions`: as identity, for each target. `one_way`, `two_way`: a row per flag.
    `excluded`: index (target, synthesis, table); records that each step took out, and what remains.
    `key_overlap`: index (key, synthesis); GT_in_SD, SD_in_GT: percent of GT (SD) records whose value of the
    key occurs in the other table, missing values left out; the key "(whole key)" stands for all of them
    combined. `target_overlap`: the same, index (target, synthesis). `warnings`: what makes the figures
    doubtful; `comparability_doubts`: those of them that say that the tables may not be coded alike, tell no
    one apart, or hold GT's people, so that risks read too low. `ledger`: what was changed to compare the
    tables, and of how many records. `engine`: which engine counted, and why that one. `stacked`: for m > 1
    the same of all syntheses as one table.

    The frames of a gate, empty elsewhere, are described where they are made: `guards`, `partial_copies` and
    `columns_apart` (`GuardFigures`); `guessed`, `exact_copies`, `groups`, `doubts` and `warning_counts`
    (`evaluation.disclosure`); `subgroups`; `over_releases` and `released_targets` (`measure_releases`);
    `confidential`, index (confidential, synthesis), copies of the records of further confidential tables;
    `protection`, `prediction`; `control_identity` and `control_attribute` (`evaluation.controls`).
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    N_d: int
    N_s: tuple[int, ...]
    identity: pd.DataFrame
    attribute: pd.DataFrame
    cap: pd.DataFrame
    identity_after_exclusions: pd.DataFrame
    one_way: pd.DataFrame
    two_way: pd.DataFrame
    certainty: pd.DataFrame
    excluded: pd.DataFrame
    key_overlap: pd.DataFrame
    target_overlap: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = ()
    comparability_doubts: tuple[str, ...] = ()
    ledger: tuple[Change, ...] = ()
    engine: str = "memory"
    stacked: Disclosure | None = None
    bands: pd.DataFrame = field(default_factory=pd.DataFrame)
    band_certainty: pd.DataFrame = field(default_factory=pd.DataFrame)
    holdout: pd.DataFrame = field(default_factory=pd.DataFrame)
    N_holdout: int = 0
    membership: pd.DataFrame = field(default_factory=pd.DataFrame)
    together: pd.DataFrame = field(default_factory=pd.DataFrame)
    together_identity: pd.DataFrame = field(default_factory=pd.DataFrame)
    units: pd.DataFrame = field(default_factory=pd.DataFrame)
    population: pd.DataFrame = field(default_factory=pd.DataFrame)
    population_targets: pd.DataFrame = field(default_factory=pd.DataFrame)
    individual: pd.DataFrame = field(default_factory=pd.DataFrame)
    guards: pd.DataFrame = field(default_factory=pd.DataFrame)
    partial_copies: pd.DataFrame = field(default_factory=pd.DataFrame)
    columns_apart: pd.DataFrame = field(default_factory=pd.DataFrame)
    guessed: pd.DataFrame = field(default_factory=pd.DataFrame)
    exact_copies: pd.DataFrame = field(default_factory=pd.DataFrame)
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    doubts: pd.DataFrame = field(default_factory=pd.DataFrame)
    warning_counts: pd.DataFrame = field(default_factory=pd.DataFrame)
    subgroups: pd.DataFrame = field(default_factory=pd.DataFrame)
    over_releases: pd.DataFrame = field(default_factory=pd.DataFrame)
    released_targets: pd.DataFrame = field(default_factory=pd.DataFrame)
    confidential: pd.DataFrame = field(default_factory=pd.DataFrame)
    protection: pd.DataFrame = field(default_factory=pd.DataFrame)
    prediction: pd.DataFrame = field(default_factory=pd.DataFrame)
    control_identity: pd.DataFrame = field(default_factory=pd.DataFrame)
    control_attribute: pd.DataFrame = field(default_factory=pd.DataFrame)

    def frame(self, name: str) -> pd.DataFrame:
        """One of the frames by its name; an empty one where the family is not measured."""
        return self.frames.get(name, pd.DataFrame())

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """All frames by their names."""
        return {name: getattr(self, name) for name in FRAMES}

    def to_record(self) -> dict[str, object]:
        """Return all of it but the engine as plain JSON, from which `from_record` makes the same again."""
        return {
            "facts": {name: _to_lists(getattr(self, name)) for name in _FACTS},
            "frames": {name: frame_to_record(frame) for name, frame in self.frames.items()},
            "ledger": [asdict(change) for change in self.ledger],
            "stacked": None if self.stacked is None else self.stacked.to_record(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, object], engine: str = "") -> Disclosure:
        """Return what `to_record` wrote. KeyError, TypeError or ValueError where the record is damaged."""
        content: Any = record
        frames: dict[str, Any] = {name: frame_from_record(content["frames"][name]) for name in FRAMES}
        facts: dict[str, Any] = {name: _to_tuples(content["facts"][name]) for name in _FACTS}
        return cls(
            **facts,
            **frames,
            ledger=tuple(Change(**change) for change in content["ledger"]),
            engine=engine,
            stacked=None if content["stacked"] is None else cls.from_record(content["stacked"], engine),
        )

    def with_doubts(self, doubts: Iterable[str]) -> Disclosure:
        """Return the result with more of what makes it doubtful."""
        more = tuple(doubts)
        return replace(
            self,
            warnings=(*self.warnings, *more),
            comparability_doubts=(*self.comparability_doubts, *more),
        )

    def summary(self) -> pd.DataFrame:
        """One row per target, the largest DiSCO first.

        Dorig; DiSCO, beside what other people's records would show, and what SD tells beyond that, with its
        standard error: means over the syntheses, and for several of them the smallest and the largest DiSCO,
        and `any` (`together`); the target levels that the one-way check flags; how many pairs the two-way
        check flags, in the synthesis with most of them. Where SD is larger than GT, `DiSCO_at_n` is DiSCO of
        as many records as others have.
        """
        per_target = self.attribute.groupby(level="target", sort=False)
        flagged = self.one_way.groupby("target", sort=False)["level"].unique()
        levels = {
            target: ", ".join(sorted(map(_level_text, target_levels)))
            for target, target_levels in flagged.items()
        }
        shown = [name for name in _SUMMARISED if self.is_larger or name != "DiSCO_at_n"]
        summary = per_target[shown].mean()
        if len(self.identity) > 1:
            place = shown.index("DiSCO") + 1
            summary.insert(place, "DiSCO_min", per_target["DiSCO"].min())
            summary.insert(place + 1, "DiSCO_max", per_target["DiSCO"].max())
            if len(self.together):
                summary.insert(place + 2, "any", self.together["any"])
        summary["one_way"] = [levels.get(target, "") for target in summary.index]
        pairs = self.two_way.groupby(["target", "synthesis"], sort=False).size()
        most_pairs = pairs.groupby(level="target", sort=False).max()
        summary["two_way"] = [int(most_pairs.get(target, 0)) for target in summary.index]
        largest_first: pd.DataFrame = summary.sort_values("DiSCO", ascending=False, kind="stable")
        return largest_first

    def explain(self, measure: str) -> str:
        """Return what a column of these frames says: full name, a plain sentence, unit, direction and source.

        InputError where no frame has a column of that name.

        Example:
            >>> import pandas as pd
            >>> import disclosure_pipeline as dp
            >>> patients = pd.DataFrame({"age": [30, 30, 40], "illness": ["flu", "cold", "flu"]})
            >>> result = dp.disclosure(patients, patients, ["age"], "illness")
            >>> print(result.explain("DiSCO"))  # doctest: +NORMALIZE_WHITESPACE
            DiSCO: disclosed in the synthetic table and correct
            People whose target is disclosed to somebody who knows their keys: all synthetic records with
            these keys have the same target value, and it is theirs.
            Unit: % of the confidential records.
            A high value is a high risk.
            Source: Raab, Nowok & Dibben 2024, arXiv:2406.16826.
        """
        return explain(measure)

    @property
    def is_larger(self) -> bool:
        """True if a synthesis has more records than GT, so that DiSCO is not of as many as the others'."""
        return max(self.N_s, default=0) > self.N_d

    def list_bands(self) -> pd.DataFrame:
        """Return what is told of amounts to within their band, and the difference from others' records."""
        return self.bands.reindex(columns=list(_SHOWN_OF_BANDS))

    def _list_tables(self) -> list[tuple[str, pd.DataFrame]]:
        summary = self.summary().rename(columns={"DiSCO_beyond_se": "±"})
        if len(self.N_s) > 1:
            means = [name for name in _SUMMARISED[1:-1] if name in summary.columns]
            summary = summary.drop(columns="any", errors="ignore")
            summary = summary.rename(columns={name: f"mean {name}" for name in means})
        tables = [(self._heading(), summary)]
        if len(self.bands):
            tables.append((_OF_BANDS, self.list_bands()))
        if len(self.together):
            tables.append((self._release_heading(), self._list_release()))
        if self.N_holdout:
            tables.append((self._holdout_heading(), self._largest_differences()))
        return tables

    def __str__(self) -> str:
        lines = [*(f"Warning: {warning}" for warning in self.warnings), ""] if self.warnings else []
        parts = [
            part
            for heading, table in self._list_tables()
            for part in (heading, table.to_string(float_format="{:.2f}".format))
        ]
        return escape_unseen_in_lines("\n".join([*lines, "\n\n".join([*parts, *self._tell_few()])]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        page = "".join(
            f"<p><strong>Warning:</strong> {html.escape(warning)}</p>" for warning in self.warnings
        )
        for heading, table in self._list_tables():
            lines = html.escape(heading, quote=False).replace("\n", "<br>")
            page += f"<p>{lines}</p>{table.to_html(float_format='{:.2f}'.format)}"
        return page + "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self._tell_few())

    def _tell_few(self) -> list[str]:
        """Return which DiSCO has fewer people than `SMALLEST_COUNT` behind it."""
        disclosed = self.summary()["DiSCO"] * self.N_d / 100
        few = [str(target) for target in disclosed.index[disclosed < SMALLEST_COUNT]]
        return [f"Fewer than {SMALLEST_COUNT} people are behind DiSCO of {', '.join(few)}."] if few else []

    def _release_heading(self) -> str:
        m = len(self.N_s)
        found = self.together_identity["repU_any"].item()
        return (
            f"If {'both' if m == _TWO else f'all {m}'} are published: percent of GT records\n"
            f"Identity: repU in any of them {found:.2f} %, of UiO {_spread(self.identity['UiO'])}"
        )

    def _list_release(self) -> pd.DataFrame:
        """Return what all syntheses disclose as one release, each by itself (any) and as one table."""
        release = self.together[list(_OF_RELEASE)].rename(columns={"DiSCO_any_beyond_se": "±"})
        if self.stacked is not None:
            of_all = self.stacked.attribute.droplevel("synthesis")
            names = ("DiSCO", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se")
            shown = names if self.stacked.is_larger else tuple(n for n in names if n != "DiSCO_at_n")
            stacked = (
                of_all[list(shown)].add_prefix("stacked ").rename(columns={"stacked DiSCO_beyond_se": "±"})
            )
            release = pd.concat([release, stacked], axis=1)
        return release.reindex(self.summary().index)

    def _holdout_heading(self) -> str:
        return (
            f"Beside a holdout of {self.N_holdout:,} records: percent of each, and percentage points "
            "(of several syntheses the one with the largest difference)"
        )

    def _largest_differences(self) -> pd.DataFrame:
        """Return a row per target of the holdout's main measures: the synthesis that differs most."""
        main = self.holdout[self.holdout.index.get_level_values("measure").isin(_BESIDE_HOLDOUT)]
        order = main.index.droplevel("synthesis").unique()
        largest_first = main.sort_values("difference", ascending=False, kind="stable")
        largest = largest_first.groupby(level=["target", "measure"], sort=False).head(1)
        return largest.droplevel("synthesis").loc[order]

    def _heading(self) -> str:
        m = len(self.identity)
        syntheses = "one synthesis" if m == 1 else f"{m} syntheses (identity: from the best to the worst)"
        means = "" if m == 1 else f"means over the {m} syntheses, "
        keys = ", ".join(map(str, self.keys))
        identity = ", ".join(f"{name} {_spread(self.identity[name])}" for name in ("UiO", "repU"))
        bases = "", "percent of GT records"
        if self.excludes_records:
            bases = " (of all records)", "of what the exclusions leave, in percent of all GT records"
        return (
            f"Disclosure from the keys {keys}\n"
            f"{self.N_d:,} GT records, {syntheses}\n"
            f"Identity{bases[0]}: {identity}\n"
            f"{self._tell_population()}"
            f"Attribute: {means}{bases[1]}"
        )

    def _tell_population(self) -> str:
        """Return a line on who can be named in the population, where GT is known to be a sample of it."""
        if self.population.empty:
            return ""
        right = _spread(self.population["repU_population"])
        return f"In the population: repU {right}, DIS {_spread(self.population['DIS'])}\n"

    @property
    def excludes_records(self) -> bool:
        """True if the exclusions take any record out."""
        return bool(self.excluded.drop(columns="remaining", errors="ignore").to_numpy().any())

    def plot(self) -> alt.LayerChart:
        """Dorig (original), DiSCO (synthetic) and DiSCO_others of each target, in percent.

        A bar is where DiSCO of fresh samples lies, but for chance.

        The title is the finding; under it stand keys, repU and UiO, beside each target what the checks flag.
        """
        from disclosure_pipeline.evaluation.plots.pictures import plot_disclosure

        return plot_disclosure(self)


# `individual` has a value per person, which no evidence may hold.
FRAMES = tuple(
    name
    for name, kind in Disclosure.__annotations__.items()
    if kind == "pd.DataFrame" and name != "individual"
)


def _to_lists(fact: Any) -> Any:
    return list(fact) if isinstance(fact, tuple) else fact


def _to_tuples(fact: Any) -> Any:
    return tuple(fact) if isinstance(fact, list) else fact


def _spread(percentages: pd.Series[float]) -> str:
    """Write a percentage, or the range of several that differ: "12.50 %", "12.50 to 14.00 %"."""
    low, high = f"{percentages.min():.2f}", f"{percentages.max():.2f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _level_text(level: str | None) -> str:
    return "missing" if level is None else level
