"""The result of `disclosure()`: frames, a summary, and their picture."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.copies_found import CopiesFound, find_copied_people
from disclosure_pipeline.evaluation.frames import explain, frame_from_record, frame_to_record
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.messages import escape_unseen, escape_unseen_in_lines

if TYPE_CHECKING:
    import altair as alt

_HOLDOUT_MEASURES = ("repU", "unique_hits", "DiSCO", "guessed")
_SUMMARISED = ("Dorig", "DiSCO", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se")
_RELEASE_COLUMNS = ("any", "DiSCO_any_others", "DiSCO_any_beyond", "DiSCO_any_beyond_se", "agreed")
_BANDS_HEADING = "Amounts disclosed to within their band: percent of GT records"
_BAND_COLUMNS = (
    "within",
    *("DiSCO_within", "DiSCO_within_others", "DiSCO_within_beyond"),
    *("guessed_within", "guessed_within_others", "guessed_within_beyond"),
)
_TWO = 2
SMALLEST_COUNT = 10
"""The number of people behind a figure below which a printed result says so."""


_FACTS = ("keys", "targets", "N_d", "N_s", "N_holdout", "warnings", "comparability_doubts")


@dataclass(frozen=True, repr=False, eq=False)
class Disclosure:
    """All measures of m syntheses of one ground truth; percent of all GT records unless stated otherwise.

    `identity`: index synthesis (1…m); UiO, UiS (percent of SD records), UiOiS, repU; unique_hits (percent of
    SD records); unique_hits_apart, the same if SD's keys are drawn independently; of all records.
    `attribute`: index (target, synthesis); Dorig, Dsyn (percent of SD records), iS, DiS, DiSCO, DiSDiO;
    max_denom and mean_denom are numbers of records; DiSCO_chance, DiSCO_excess. `cap`: the CAP family, and
    `guessed`: right guesses of the target, by the most frequent level of the record's keys in SD.
    Beside each figure: `…_others`, the same for a fresh sample of other people; `…_at_n`, the figure at equal
    numbers of records; `…_beyond`, what SD tells beyond the others (percentage points, 0 on average for a
    fresh sample), with its standard error `…_beyond_se`; and `…_beyond_chance`, the part of it that is beyond
    chance. After exclusions, these refer to the remaining cells, as the figures do.
    `together`, for m > 1: index target; GT records that DiSCO counts in at least one synthesis (`any`), and
    those to whom at least two assign a level, all of them the right one (`agreed`); the most that as many
    tables of other people's records disclose (`DiSCO_any_others`), and the difference at equal numbers of
    records. `together_identity`: one row, index syntheses (their number); `repU_any`: replicated uniques in
    at least one. No mean over m tables shows what they disclose when published together.
    `holdout`, if one was given: index (target, synthesis, measure); iS, DiSCO, DCAP, guessed, and DiS and
    DiSCO at each certainty, for GT and for the holdout against the same SD, in percent of each; `difference`
    in percentage points, with Newcombe's 95 % interval. repU and unique_hits have the target "(whole key)"
    and equal numbers of records. `N_holdout`: its records, 0 if there is none.
    `membership`, if a holdout was given: index synthesis; how well an attacker tells who took part, by keys
    and by whole records (`advantage_…`, percentage points) and by the distance to the nearest SD record
    (`TPR_at_…`, `AUC`), with intervals, and the ε that these rule out.
    `units`, if a unit was given: index synthesis; the number of units, individual and household risk.
    `population`, if weights or a sampling fraction were given: index synthesis; DIS and, if the model of the
    population holds, repU_population and the expected number of right identifications; `population_targets`:
    index (target, synthesis), DiSCO_population, likewise; with weights, both have weighted shares of people,
    `…_weighted`. `individual`: for each
    GT record, the number of records with its keys, the number of people they stand for, and its individual
    risk; only for tables in memory, and never stored or printed.
    `certainty`: index (target, synthesis, certainty), for the requested certainties; DiS and DiSCO of an
    intruder who acts where one level has at least that share, and precision, DiSCO in percent of DiS.
    `bands`, for targets with a band: index (target, synthesis); records whose amount is disclosed to within
    it: `DiS_within`, `DiSCO_within` and `guessed_within` (by the densest band of their keys in SD), beside
    other people's records; `band_certainty`: the same with a certainty.
    `sensitive`, for sensitive levels: index (level, synthesis); Dorig, DiSCO and guessed in percent of the
    people who have the level (`records`), beside other people's records; `told`, people told with certainty
    to have it, in percent of all people, and `right`, those of them who do, both at equal numbers of records.
    `identity_after_exclusions`: as identity, for each target. `one_way`, `two_way`: a row per flag.
    `excluded`: index (target, synthesis, table); records that each step excludes, and those that remain.
    `key_overlap`: index (key, synthesis); GT_in_SD, SD_in_GT: percent of GT (SD) records with a value whose
    value occurs in the other table; "(whole key)" is the combination of all keys. `target_overlap`: the same,
    index (target, synthesis). `warnings`: reasons to doubt the figures; `comparability_doubts`: the reasons
    among them why risks may read too low, such as tables that are not coded alike. `ledger`: changes made to
    compare the tables, with numbers of records. `engine`: which engine counted, and why. `stacked`, for
    m > 1: the same result for all syntheses as one table.

    `copies`: the people found copied, in sentences. Its figures are in `guards`, `partial_copies` and
    `found` (see `GuardFrames`), which are empty if copies were not looked for; the guards of other
    things are a gate's. The frames of a gate are empty elsewhere: `guessed`, `exact_copies`, `groups`,
    `doubts` and `warning_counts`
    (`evaluation.disclosure`); `subgroups`; `over_releases` and `released_targets` (`measure_releases`);
    `confidential`, index (confidential, synthesis): copies of records of further confidential tables;
    `found`, index (way, synthesis): the people whom a record shows (`dp.found`), and, with a level more,
    `released_found` in all releases and `confidential_found` of further confidential tables;
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
    sensitive: pd.DataFrame = field(default_factory=pd.DataFrame)
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
    found: pd.DataFrame = field(default_factory=pd.DataFrame)
    released_found: pd.DataFrame = field(default_factory=pd.DataFrame)
    confidential_found: pd.DataFrame = field(default_factory=pd.DataFrame)
    protection: pd.DataFrame = field(default_factory=pd.DataFrame)
    prediction: pd.DataFrame = field(default_factory=pd.DataFrame)
    control_identity: pd.DataFrame = field(default_factory=pd.DataFrame)
    control_attribute: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def copies(self) -> CopiesFound:
        """The people found copied by a gate's guards at their default bounds, and what was not examined."""
        stacked = None if self.stacked is None else (self.stacked.found, self.stacked.guards)
        return find_copied_people(self.found, self.guards, stacked, len(self.N_s))

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name; an empty one if its family was not measured."""
        return getattr(self, name) if name in FRAMES else pd.DataFrame()

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """All frames by name."""
        return {name: getattr(self, name) for name in FRAMES}

    @property
    def figures(self) -> pd.DataFrame:
        """One row for each figure that a gate bounds or shows, for `to_parquet` or `to_json`.

        `figure`, and the target, key, columns or confidential table that it is `about`; `part`: the number
        of the synthesis, from 1, "all files" or "any file"; `basis`: records, people (by weight) or synthetic
        records (people found, where their copies are counted). `value` and, where it has them, the figure at
        as many records as there are of other people (`at_n`), theirs (`others`), the difference (`beyond`),
        its standard error (`se`), what chance adds to it (`by_chance`), and the part that is beyond chance
        (`beyond_chance`), all in the figure's own unit; NaN for none. `where` says by which columns people
        are found, `group` of which people it is ("" for all).
        As JSON with `orient="records"`, rows follow docs/figures.schema.json.
        """
        from disclosure_pipeline.evaluation.long_table import frame_figures, tabulate_figures

        frame = frame_figures(tabulate_figures(self))
        return frame.assign(part=frame["part"].astype(str))

    def to_record(self) -> dict[str, object]:
        """Return everything but the engine as plain JSON, which `from_record` reads."""
        return {
            "facts": {name: _to_lists(getattr(self, name)) for name in _FACTS},
            "frames": {name: frame_to_record(frame) for name, frame in self.frames.items()},
            "ledger": [asdict(change) for change in self.ledger],
            "stacked": None if self.stacked is None else self.stacked.to_record(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, object], engine: str = "") -> Disclosure:
        """Read the output of `to_record`. KeyError, TypeError or ValueError if it is damaged."""
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
        """Return the result with further reasons why risks may read too low."""
        further = tuple(doubts)
        return replace(
            self,
            warnings=self.warnings + further,
            comparability_doubts=self.comparability_doubts + further,
        )

    def summary(self) -> pd.DataFrame:
        """Return one row per target, the largest DiSCO first.

        Dorig, DiSCO, DiSCO_others and DiSCO_beyond with its standard error, as means over the syntheses; for
        several of them also the smallest and largest DiSCO, and `any` (see `together`); the target levels
        that the one-way check flags; and the number of pairs that the two-way check flags, in the synthesis
        with most of them. If SD is larger than GT, `DiSCO_at_n` is DiSCO at GT's number of records.
        """
        per_target = self.attribute.groupby(level="target", sort=False)
        flagged = self.one_way.groupby("target", sort=False)["level"].unique()
        levels = {
            target: ", ".join(sorted(map(_format_level, target_levels)))
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
        """Return the full name of a measure, a plain sentence, its unit, direction and source.

        InputError if no frame has a column of that name.

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
    def headline(self) -> str:
        """A sentence on copied people, and one on the target that is disclosed most beyond other people's."""
        return escape_unseen(" ".join(self._state_findings()))

    def _state_findings(self) -> tuple[str, str]:
        copies = self.copies
        if copies.sentences or self.found.empty:  # then nobody looked for copies
            found = (*copies.sentences, *copies.not_examined)[0]
        else:
            found = f"No copied people were found{' by equal values' if copies.not_examined else ''}."
        summary = self.summary().dropna(subset=["DiSCO", "DiSCO_others", "DiSCO_beyond"])
        if summary.empty:
            return found, "What it discloses beyond other people's records could not be measured."
        target, row = max(summary.iterrows(), key=lambda target_row: target_row[1]["DiSCO_beyond"])
        shows = "the table shows" if len(self.N_s) == 1 else "a table on average shows"
        return found, (
            f"For {row['DiSCO']:.1f} % of the people {shows} {target} with certainty, and rightly; other "
            f"people's records alone would show it for {row['DiSCO_others']:.1f} %."
        )

    @property
    def is_larger(self) -> bool:
        """True if a synthesis has more records than GT, so DiSCO and DiSCO_others differ in size."""
        return max(self.N_s, default=0) > self.N_d

    def list_bands(self) -> pd.DataFrame:
        """Return the main figures of `bands`, beside those of other people's records."""
        return self.bands.reindex(columns=list(_BAND_COLUMNS))

    def _list_tables(self) -> list[tuple[str, pd.DataFrame]]:
        summary = self.summary().rename(columns={"DiSCO_beyond_se": "±"})
        if len(self.N_s) > 1:
            means = [name for name in _SUMMARISED[1:-1] if name in summary.columns]
            summary = summary.drop(columns="any", errors="ignore")
            summary = summary.rename(columns={name: f"mean {name}" for name in means})
        tables = [(self._write_heading(), summary)]
        if len(self.bands):
            tables.append((_BANDS_HEADING, self.list_bands()))
        if len(self.together):
            tables.append((self._write_release_heading(), self._list_release()))
        if self.N_holdout:
            tables.append((self._write_holdout_heading(), self._find_largest_differences()))
        return tables

    def __str__(self) -> str:
        lines = [
            sentence if is_finding else f"Warning: {sentence}" for sentence, is_finding in self._list_first()
        ]
        parts = [
            part
            for heading, table in self._list_tables()
            for part in (heading, table.to_string(float_format="{:.2f}".format))
        ]
        return escape_unseen_in_lines(
            "\n".join([*lines, "", "\n\n".join([*parts, *self._list_few(), *self._list_unexamined()])])
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        page = "".join(
            f"<p><strong>{html.escape(sentence)}</strong></p>"
            if is_finding
            else f"<p><strong>Warning:</strong> {html.escape(sentence)}</p>"
            for sentence, is_finding in self._list_first()
        )
        for heading, table in self._list_tables():
            lines = html.escape(heading, quote=False).replace("\n", "<br>")
            page += f"<p>{lines}</p>{table.to_html(float_format='{:.2f}'.format)}"
        remarks = (*self._list_few(), *self._list_unexamined())
        return page + "".join(f"<p>{html.escape(sentence)}</p>" for sentence in remarks)

    def _list_first(self) -> Iterator[tuple[str, bool]]:
        """Yield what a reader has to see first, and if it is a finding: otherwise it is a warning.

        Warnings come before findings that look safe.
        """
        copied = self.copies.sentences
        findings = [(sentence, True) for sentence in (*self._state_findings(), *copied[1:])]
        warnings = [(sentence, False) for sentence in self.warnings]
        yield from (*findings, *warnings) if copied else (*warnings, *findings)

    def _list_unexamined(self) -> tuple[str, ...]:
        """Return what was not examined for copies, unless the first sentence says it."""
        return () if self.found.empty else self.copies.not_examined

    def _list_few(self) -> list[str]:
        """Name the targets whose DiSCO has fewer than `SMALLEST_COUNT` people behind it."""
        disclosed = self.summary()["DiSCO"] * self.N_d / 100
        few = [str(target) for target in disclosed.index[disclosed < SMALLEST_COUNT]]
        return [f"Fewer than {SMALLEST_COUNT} people are behind DiSCO of {', '.join(few)}."] if few else []

    def _write_release_heading(self) -> str:
        m = len(self.N_s)
        found = self.together_identity["repU_any"].item()
        return (
            f"If {'both' if m == _TWO else f'all {m}'} are published: percent of GT records\n"
            f"Identity: repU in any of them {found:.2f} %, of UiO {_format_range(self.identity['UiO'])}"
        )

    def _list_release(self) -> pd.DataFrame:
        """Return what all syntheses disclose as one release: looked up one by one (any), and stacked."""
        release = self.together[list(_RELEASE_COLUMNS)].rename(columns={"DiSCO_any_beyond_se": "±"})
        if self.stacked is not None:
            names = [name for name in _SUMMARISED[1:] if self.stacked.is_larger or name != "DiSCO_at_n"]
            stacked = self.stacked.attribute.droplevel("synthesis")[names].add_prefix("stacked ")
            stacked = stacked.rename(columns={"stacked DiSCO_beyond_se": "±"})
            release = pd.concat([release, stacked], axis=1)
        return release.reindex(self.summary().index)

    def _write_holdout_heading(self) -> str:
        return (
            f"Compared with a holdout of {write_count(self.N_holdout, 'record')}: percent of each, and "
            "percentage points "
            "(for several syntheses, the one with the largest difference)"
        )

    def _find_largest_differences(self) -> pd.DataFrame:
        """Return the main measures of `holdout`, each of the synthesis with the largest difference."""
        main = self.holdout[self.holdout.index.get_level_values("measure").isin(_HOLDOUT_MEASURES)]
        order = main.index.droplevel("synthesis").unique()
        largest_first = main.sort_values("difference", ascending=False, kind="stable")
        largest = largest_first.groupby(level=["target", "measure"], sort=False).head(1)
        return largest.droplevel("synthesis").loc[order]

    def _write_heading(self) -> str:
        m = len(self.identity)
        syntheses = "one synthesis" if m == 1 else f"{m} syntheses (identity: from the best to the worst)"
        means = "" if m == 1 else f"means over the {m} syntheses, "
        keys = ", ".join(map(str, self.keys))
        identity = ", ".join(f"{name} {_format_range(self.identity[name])}" for name in ("UiO", "repU"))
        bases = "", "percent of GT records"
        if self.excludes_records:
            bases = " (of all records)", "after exclusions, in percent of all GT records"
        return (
            f"Disclosure from the keys {keys}\n"
            f"{write_count(self.N_d, 'GT record')}, {syntheses}\n"
            f"Identity{bases[0]}: {identity}\n"
            f"{self._describe_population()}"
            f"Attribute: {means}{bases[1]}"
        )

    def _describe_population(self) -> str:
        """Return a line on identification in the population, if GT is known to be a sample of it."""
        if self.population.empty:
            return ""
        DIS, right = (_format_range(self.population[name]) for name in ("DIS", "repU_population"))
        return f"In the population: DIS {DIS}; repU {right}, if the model holds\n"

    @property
    def excludes_records(self) -> bool:
        """True if exclusions take out any record."""
        return bool(self.excluded.drop(columns="remaining", errors="ignore").to_numpy().any())

    def plot(self) -> alt.LayerChart:
        """Draw Dorig (original), DiSCO (synthetic) and DiSCO_others of each target, in percent.

        A bar shows where DiSCO of a fresh sample would lie. The title states the finding, followed by keys,
        repU and UiO; beside each target stands what the checks flag.
        """
        from disclosure_pipeline.evaluation.plots.pictures import plot_disclosure

        return plot_disclosure(self)


# Without `individual`: it has a value per person, which evidence must not hold.
FRAMES = tuple(
    name
    for name, kind in Disclosure.__annotations__.items()
    if kind == "pd.DataFrame" and name != "individual"
)


def _to_lists(fact: Any) -> Any:
    return list(fact) if isinstance(fact, tuple) else fact


def _to_tuples(fact: Any) -> Any:
    return tuple(fact) if isinstance(fact, list) else fact


def _format_range(percentages: pd.Series[float]) -> str:
    """Format percentages as "12.50 %", or as the range "12.50 to 14.00 %" if they differ."""
    low, high = f"{percentages.min():.2f}", f"{percentages.max():.2f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _format_level(level: str | None) -> str:
    return "missing" if level is None else level
