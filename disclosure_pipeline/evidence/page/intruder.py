"""An intruder's chances, in sentences and as a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_heading
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import Figure, name_marks, require_words, tabulate, write_figure
from disclosure_pipeline.measures.guard_chance import errors_of_largest
from disclosure_pipeline.measures.words import BY_ITSELF, BY_OTHERS, BY_SYNTHETIC

Content = Mapping[str, Any]


def tell_intruder(content: Content) -> list[str]:
    """Return what somebody could do who knows the keys of a person: the most for one target."""
    figures = content["figures"]
    keys = join_names(figures["keys"])
    rows = list(_worst_by_target(figures["attribute"]))
    sentences = []
    if rows:
        worst = max(rows, key=lambda row: float(row["DiSCO"]))
        found, told = (
            write_figure(worst.get(name), require_words(name, "attribute")) for name in ("iS", "DiSCO")
        )
        sentences.append(
            f"Somebody who knows {keys} of a person finds {found} of the people in the synthetic table. For "
            f"{told} of all people it then claims their {worst['target']} with certainty, and rightly."
        )
    sentences += [*_tell_holdout(figures), *_tell_membership(figures), *_tell_units(figures)]
    sentences += [*_tell_bands(figures), *_tell_population(figures), *_tell_together(figures)]
    return sentences


def tell_found(content: Content) -> str:
    """Return how many people are singled out by their keys, and found so."""
    figures = content["figures"]
    if not figures["identity"]:
        return "Whether people can be found was not measured."
    worst = max(figures["identity"], key=lambda row: row.get("repU") or 0.0)
    unique = write_figure(worst.get("UiO"), require_words("UiO", "identity"))
    both = write_figure(worst.get("repU"), require_words("repU", "identity"))
    return (
        f"{unique} of the people are the only ones with their combination of {join_names(figures['keys'])}. "
        f"For {both} the synthetic table holds exactly one such record, which looks like them, whether it "
        "was made from them or not."
    )


def show_found(content: Content) -> Figure | None:
    """Draw the people whom their keys single out, and the records that point at one person."""
    rows = content["figures"]["identity"]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.get("repU") or 0.0)
    marks = {"UiO": charts.OWN, "repU": charts.SYNTHETIC, "unique_hits": charts.SYNTHETIC}
    marks |= {"unique_hits_others": charts.OTHERS}
    legend = {"UiO": BY_ITSELF, "unique_hits_others": BY_OTHERS}
    named = {
        "people singled out by their keys": ("UiO", "repU"),
        "records pointing at one person": ("unique_hits", "unique_hits_others"),
    }
    points = [
        (label, legend.get(column, BY_SYNTHETIC), worst[column])
        for label, columns in named.items()
        for column in columns
        if worst.get(column) is not None
    ]
    beyond = worst.get("unique_hits_beyond_chance") or 0.0
    at_most = "at most " if content.get("is_rounded") else ""
    more = f"{at_most}{write_figure(beyond, require_words('unique_hits_beyond', 'identity'))} more"
    more = more if beyond > 0 else "no more"
    return Figure(
        f"Records pointing at one person: {more} than with other people's records",
        charts.draw_rows(
            points,
            {legend.get(column, BY_SYNTHETIC): mark for column, mark in marks.items()},
            "% of the people, or of the synthetic records",
            longest_name=charts.LONG_NAMES,
        ),
        "People who are the only ones with their keys, and records with the keys of exactly one person.",
        tabulate(
            "Who is singled out, in percent",
            rows,
            ["synthesis", "UiO", "UiOiS", "repU", "unique_hits", "unique_hits_others", "unique_hits_beyond"],
            "identity",
        ),
    )


def _tell_holdout(figures: Content) -> Iterator[str]:
    """Return what SD tells of people who had no part in it, where a holdout was given."""
    for row in figures.get("holdout", ()):
        if row["measure"] == "DiSCO":
            disclosed = {
                name: write_figure(row[name], require_words(name, "holdout"))
                for name in ("ground_truth", "holdout")
            }
            yield (
                f"Of the people who took no part in the synthesis, {disclosed['holdout']} can be told their "
                f"{row['target']}; of those who did, {disclosed['ground_truth']} (table {row['synthesis']})."
            )


def _tell_membership(figures: Content) -> Iterator[str]:
    """Return how well it is told who took part, where a holdout was given."""
    for row in figures.get("membership", ()):
        advantage, found = (
            write_figure(row[name], require_words(name, "membership"))
            for name in ("advantage_records", "TPR_at_1")
        )
        yield (
            f"By whole records it is told who took part with an advantage of {advantage}; by the nearest "
            f"record {found} of those who did are found at 1 % false alarms (table {row['synthesis']})."
        )


def _tell_units(figures: Content) -> Iterator[str]:
    """Return the household risk beside the individual one, where a unit was given."""
    for row in figures.get("units", ()):
        risks = {
            name: write_figure(row[name], require_words(name, "units"))
            for name in ("household_risk", "individual_risk")
        }
        yield (
            f"Somebody who knows these columns of everybody names {risks['individual_risk']} of the people "
            f"rightly by table {row['synthesis']}, and at least one of {risks['household_risk']} of the "
            "units that they belong to."
        )


def _tell_population(figures: Content) -> Iterator[str]:
    """Return what somebody tells who does not know who took part, where GT is known to be a sample."""
    for row in figures.get("population", ()):
        found, lone = (
            write_figure(row[name], require_words(name, "population")) for name in ("repU_population", "DIS")
        )
        yield (
            f"Somebody who does not know who took part names {found} of the people rightly by table "
            f"{row['synthesis']}; of matches with exactly one confidential record {lone} would be right."
        )
    for row in figures.get("population_targets", ()):
        told = write_figure(row["DiSCO_population"], require_words("DiSCO_population", "population_targets"))
        sentence = f"Without knowing who took part, the {row['target']} of {told} of the people is told"
        if row.get("DiSCO_weighted") is None:
            yield f"{sentence} (table {row['synthesis']})."
            continue
        country = write_figure(row["DiSCO_weighted"], require_words("DiSCO_weighted", "population_targets"))
        yield f"{sentence}; by weight, DiSCO is {country} of the population (table {row['synthesis']})."


def _tell_bands(figures: Content) -> Iterator[str]:
    """Return of how many people an amount is nearly told, where a target has a band."""
    for row in figures.get("bands", ()):
        told, others, guessed, guessed_others = (
            write_figure(row[name], require_words(name, "bands"))
            for name in ("DiSCO_within", "DiSCO_within_others", "guessed_within", "guessed_within_others")
        )
        yield (
            f"The {row['target']} of {told} of the people is told to within {row['within']} by table "
            f"{row['synthesis']}, of {others} by other people's records; the median of their keys is as near "
            f"for {guessed}, and for {guessed_others} among other people."
        )


def _tell_together(figures: Content) -> Iterator[str]:
    """Return what several tables that are published together tell."""
    for row in figures.get("together", ()):
        disclosed, others, fresh, agreed = (
            write_figure(row[name], require_words(name, "together"))
            for name in ("any", "DiSCO_any_others", "DiSCO_any_fresh", "agreed")
        )
        yield (
            f"If all synthetic tables are published, at least one tells the {row['target']} of {disclosed} "
            f"of the people, and several that agree that of {agreed}. As many draws of other people's "
            f"records tell it of {others}, as many fresh samples of {fresh} at most."
        )


def show_disclosure(content: Content) -> Figure | None:
    """Return the targets with what GT holds, what SD tells, what others would tell, and what chance gives."""
    rows = list(_worst_by_target(content["figures"]["attribute"]))
    marks = {
        "Dorig": charts.OWN,
        "DiSCO": charts.SYNTHETIC,
        "DiSCO_others": charts.OTHERS,
        "DiSCO_chance": charts.CHANCE,
    }
    if max(content["figures"]["N_s"]) > content["figures"]["N_d"]:
        # That of as many records stands beside the others; that of all records for itself.
        marks |= {"DiSCO_at_n": marks["DiSCO"], "DiSCO": charts.SQUARE}
    errors = errors_of_largest(len(rows))
    points = [
        (str(row["target"]), find_heading(column, "attribute"), row[column])
        for row in rows
        for column in marks
        if row.get(column) is not None
    ]
    if not points:
        return None
    return Figure(
        _find_largest(rows),
        charts.draw_rows(
            points,
            name_marks(marks, "attribute"),
            "% of the people",
            bars=[(str(row["target"]), *find_bar(row, errors)) for row in rows],
        ),
        "For each target, how many people can be told their value, by whom. A bar is where fresh samples of "
        f"other people lie, but for chance.{tell_few(rows, content)}",
        tabulate(
            "Who can tell a person's target, in percent of the people",
            rows,
            ["target", "synthesis", *marks, "DiSCO_beyond", "DiSCO_beyond_se"],
            "attribute",
        ),
    )


def _find_largest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the target that most is told of, by the figure that a policy bounds."""
    measured = [row for row in rows if row.get("DiSCO_beyond") is not None]
    if not measured:
        worst = max(rows, key=lambda row: row.get("DiSCO") or 0.0)
        return f"The synthetic table tells most about {worst['target']}"
    worst = max(measured, key=_beyond_both)
    beyond = write_figure(_beyond_both(worst), require_words("DiSCO_beyond", "attribute"))
    is_clear = _beyond_both(worst) > errors_of_largest(len(rows)) * (worst.get("DiSCO_beyond_se") or 0.0)
    which = f"{worst['target']} stands out:" if is_clear else "No target stands out: at most"
    return f"{which} {beyond} more than from other people's records or by chance"


def find_bar(row: Mapping[str, Any], errors: float) -> tuple[float, float]:
    """Return where DiSCO of fresh samples lies, so many standard errors off, in percent."""
    middle, reach = row.get("DiSCO_others") or 0.0, errors * (row.get("DiSCO_beyond_se") or 0.0)
    return max(0.0, middle - reach), min(100.0, middle + reach)


def tell_few(rows: Sequence[Mapping[str, Any]], content: Content) -> str:
    """Return a sentence that names the targets whose DiSCO few people are behind; empty if there is none."""
    smallest, people = content["smallest_count"], content["figures"]["N_d"]
    few = [str(row["target"]) for row in rows if (row["DiSCO"] or 0.0) * people / 100 < smallest]
    return f" Fewer than {smallest} people are behind DiSCO of {join_names(few)}." if few else ""


def _beyond_both(row: Mapping[str, Any]) -> float:
    """Return the figure that a policy bounds: of what is beyond chance, the smaller difference."""
    beyond, excess = row.get("DiSCO_beyond_chance"), row.get("DiSCO_excess")
    beyond = row["DiSCO_beyond"] if beyond is None else beyond
    return float(beyond if excess is None else min(beyond, excess))


def _worst_by_target(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return each target's synthesis with the largest DiSCO, the targets in their order."""
    for target in dict.fromkeys(row["target"] for row in rows):
        of_target = [row for row in rows if row["target"] == target and row.get("DiSCO") is not None]
        if of_target:
            yield max(of_target, key=lambda row: float(row["DiSCO"]))


def join_names(names: Sequence[Any]) -> str:
    """Return names as a sentence lists them.

    >>> join_names(["sex", "age", "region"])
    'sex, age and region'
    """
    texts = [str(name) for name in names]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
