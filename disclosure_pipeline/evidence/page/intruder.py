"""An intruder's chances, in sentences and as a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from disclosure_pipeline.evaluation.glossary import LABELS, find_words
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.evidence.page.charts import (
    Figure,
    list_points,
    name_marks,
    require_words,
    tabulate,
    write_figure,
    write_figures,
)
from disclosure_pipeline.measures.chance import errors_of_largest
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
        found, told = write_figures(worst, "attribute", "iS", "DiSCO")
        sentences.append(
            f"Somebody who knows {keys} of a person finds {found} of the people in the synthetic table. For "
            f"{told} of all people it then claims their {worst['target']} with certainty, and rightly."
        )
    return [*sentences, *_tell_frames(figures)]


def tell_found(content: Content) -> str:
    """Return how many people are singled out by their keys, and found so."""
    figures = content["figures"]
    if not figures["identity"]:
        return "Whether people can be found was not measured."
    worst = max(figures["identity"], key=lambda row: row.get("repU") or 0.0)
    unique, both = write_figures(worst, "identity", "UiO", "repU")
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


# What stands in the frames that not every dossier has, one sentence a row, in this order.
_TOLD = {
    "holdout": (
        "Of the people who took no part in the synthesis, {holdout} can be told their {target}; of those who "
        "did, {ground_truth} (table {synthesis})."
    ),
    "membership": (
        "By whole records it is told who took part with an advantage of {advantage_records}; by the nearest "
        "record {TPR_at_1} of those who did are found at 1 % false alarms (table {synthesis})."
    ),
    "units": (
        "Somebody who knows these columns of everybody names {individual_risk} of the people rightly by "
        "table {synthesis}, and at least one of {household_risk} of the units that they belong to."
    ),
    "bands": (
        "The {target} of {DiSCO_within} of the people is told to within {within} by table {synthesis}, of "
        "{DiSCO_within_others} by other people's records; the median of their keys is as near for "
        "{guessed_within}, and for {guessed_within_others} among other people."
    ),
    "population": (
        "Somebody who does not know who took part names {repU_population} of the people rightly by table "
        "{synthesis}; of matches with exactly one confidential record {DIS} would be right."
    ),
    "population_targets": (
        "Without knowing who took part, the {target} of {DiSCO_population} of the people is told{by_weight} "
        "(table {synthesis})."
    ),
    "together": (
        "If all synthetic tables are published, at least one tells the {target} of {any} of the people, and "
        "several that agree that of {agreed}. As many draws of other people's records tell it of "
        "{DiSCO_any_others}, as many fresh samples of {DiSCO_any_fresh} at most."
    ),
}


def _tell_frames(figures: Content) -> Iterator[str]:
    for frame, sentence in _TOLD.items():
        for row in figures.get(frame, ()):
            if row.get("measure", "DiSCO") != "DiSCO":
                continue
            written = {
                name: value if name in LABELS else write_figure(value, find_words(name, frame))
                for name, value in row.items()
            }
            if row.get("DiSCO_weighted") is not None:
                weighted = f"; by weight, DiSCO is {written['DiSCO_weighted']} of the population"
                yield sentence.format(**written, by_weight=weighted)
            else:
                yield sentence.format(**written, by_weight="")


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
    points = list_points(rows, "target", marks, "attribute")
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
