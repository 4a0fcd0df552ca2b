"""Results of checks, tables and column schemas as Dagster's user interface shows them."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd

from disclosure_pipeline.candidates.arrival import Arrival
from disclosure_pipeline.candidates.evaluation import link_to_page
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.frames import LABELS, describe_column
from disclosure_pipeline.evaluation.long_table import tabulate_key_overlap, view_frame
from disclosure_pipeline.evidence.dossier import format_cell, to_rows
from disclosure_pipeline.orchestration.steps import ClauseCheck
from disclosure_pipeline.policy.clauses import Clause, list_effective_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.policy.sentences import Content, write_sentence, write_subject
from disclosure_pipeline.policy.verdict import Judgement, order_judgements
from disclosure_pipeline.release.releasing import Release
from disclosure_pipeline.release.standing import list_standings
from disclosure_pipeline.tables.dictionary import Violation
from disclosure_pipeline.tables.messages import capitalized, escape_markdown

# Dagster plots only a hundred numbers of an asset: five targets have fewer of these.
_ALWAYS = ("UiO", "UiS", "UiOiS", "repU", "Dorig", "iS", "DiSCO", "TCAP")


def show_numbers(figures: Mapping[str, float | None]) -> dict[str, dg.FloatMetadataValue]:
    """Return the finite numbers as metadata.

    >>> show_numbers({"value": 1, "bound": None})
    {'value': FloatMetadataValue(value=1.0)}
    """
    return {
        name: dg.MetadataValue.float(float(value))
        for name, value in figures.items()
        if value is not None and math.isfinite(value)
    }


def show_plots(
    figures: Mapping[str, Any], judgements: Iterable[Judgement], targets: Sequence[str | None]
) -> dict[str, dg.FloatMetadataValue]:
    """Return the worst figures by target (None: the whole table), under names that sort together.

    `figures` are those of a dossier.
    """
    worst: dict[str, float | None] = {}
    for target in targets:
        frames = ("identity",) if target is None else ("attribute", "cap")
        rows = [row for frame in frames for row in view_frame(figures, frame)]
        of_target = [row for row in rows if target in {None, row.get("target")}]
        for name in _ALWAYS:
            values = [row[name] for row in of_target if row.get(name) is not None]
            worst[_name_figure(name, target)] = max(values, default=None)
    for judgement in judgements:
        if judgement.clause.entry is not None and judgement.clause.entry.question != "trusted":
            worst |= _list_figures(judgement)
    return dict(sorted(show_numbers(worst).items()))


def _name_figure(figure: str, target: str | None) -> str:
    return figure if target is None else f"{figure}__{target}"


def _list_figures(judgement: Judgement) -> dict[str, float | None]:
    """Return the worst figure, what other people's records show, and what is bounded of it with its bound."""
    clause, row = judgement.clause, judgement.row
    label = _name_figure(clause.figure, judgement.column)
    figures = {} if row is None else {label: row.value, f"{label}__others": row.others}
    bounded = label + ("__beyond" if clause.statistic == "beyond" else "")
    bounded += "__mean" if clause.over == "mean" else ""
    side = "__at_least" if clause.at_least else "__bound"
    share = "" if clause.share_of is None else f"_of_{clause.share_of}"
    return {**figures, bounded: judgement.value, f"{bounded}{side}{share}": judgement.limit}


FLAGS_SHOWN = 20
"""The number of flags shown per check, target and synthesis."""


def build_clause_check(
    check: ClauseCheck, judgements: Mapping[Clause, Judgement], asset: dg.AssetKey, content: Content
) -> dg.AssetCheckResult:
    """Return the result of a check: it fails unless all clauses are kept, and warns if the broken ones do.

    Its description has a sentence on each broken clause, or on the one nearest to its bound.
    """
    exact = order_judgements(judgements[clause] for clause in check.clauses)
    worst = exact[0]
    broken = [judgement for judgement in exact if judgement.outcome != "kept"]
    metadata = describe_worst(worst, content)
    if len(exact) > 1:
        metadata["values"] = show_judgements(exact)
    return dg.AssetCheckResult(
        passed=not broken,
        asset_key=asset,
        check_name=check.name,
        severity=dg.AssetCheckSeverity.WARN if passes_with_warnings(exact) else dg.AssetCheckSeverity.ERROR,
        description=" ".join(write_sentence(judgement, content) for judgement in broken or [worst]),
        metadata=metadata,
    )


WORST_CLAUSE = "worst_clause"
"""The metadata of a check that names the clause of its `value`, `bound` and `outcome`."""


SUBJECT = "what"
"""The metadata of a check with the people or records that its worst clause is about, in words."""


def describe_worst(worst: Judgement, content: Content) -> dict[str, Any]:
    """Return the metadata of a check on its worst clause. Dagster sorts metadata: others have later names.

    The column is where dagster-openlineage looks for it.
    """
    return {
        **show_numbers({"value": worst.value, "bound": worst.limit}),
        **({} if worst.column is None else {"column": worst.column}),
        "outcome": worst.outcome,
        SUBJECT: capitalized(write_subject(worst, content)),
        WORST_CLAUSE: worst.clause.name,
    }


def passes_with_warnings(judgements: Sequence[Judgement]) -> bool:
    """Return True if some clauses are not kept, and all of these only warn or are waived."""
    broken = [judgement for judgement in judgements if judgement.outcome != "kept"]
    return bool(broken) and all(
        judgement.clause.warns or judgement.outcome == "waived" for judgement in broken
    )


def build_waivers_check(
    waivers: Sequence[Mapping[str, Any]], void: Sequence[str], asset: dg.AssetKey
) -> dg.AssetCheckResult:
    """Return the check on a dossier's waivers: refused ones are errors, used and void ones warnings."""
    refused = [
        f"waiver {waiver['name']} is refused: {waiver['problem']}" for waiver in waivers if waiver["problem"]
    ]
    used = [
        f"waiver {waiver['name']} lets {waiver['clause']} pass" for waiver in waivers if not waiver["problem"]
    ]
    description = "; ".join([*refused, *used, *void]) or "This content has no waiver"
    return dg.AssetCheckResult(
        passed=not (refused or used or void),
        asset_key=asset,
        check_name="without_waivers",
        severity=dg.AssetCheckSeverity.ERROR if refused else dg.AssetCheckSeverity.WARN,
        description=description,
    )


def link_page(gate: Gate, store: Path, page: Path) -> dg.UrlMetadataValue | dg.PathMetadataValue:
    """Return the address of a dossier's page if the gate has `pages`, else its path."""
    link = link_to_page(gate, store, page)
    return dg.MetadataValue.path(link) if gate.pages is None else dg.MetadataValue.url(link)


def describe_release(released: Release, trusted_keys: Path | Sequence[TrustedKey]) -> dict[str, Any]:
    """Return the published tables, the policy, and the command that verifies the release."""
    predicate = released.approval.predicate
    key = str(trusted_keys) if isinstance(trusted_keys, Path) else "PUBLIC_KEY.pem"
    lines = [
        ["disclosure-pipeline", "verify", str(released.folder)],
        ["--key", key],
        ["--gate", predicate.gate, "--candidate", predicate.candidate],
        ["--policy-digest", predicate.policy.digest],
    ]
    command = " \\\n  ".join(map(shlex.join, lines))
    tables = pd.DataFrame(
        [
            {"table": table.name, "records": table.records, "sha256": released.approval.files[table.name]}
            for table in predicate.synthetic
        ]
    )
    return {
        "published_at": predicate.published_at.isoformat(),
        "tables": show_table(tables),
        "gate": predicate.gate,
        "candidate": predicate.candidate,
        "policy_digest": predicate.policy.digest,
        "waivers": len(predicate.waivers),
        "signed_by": released.approval.keyid,
        "verify": dg.MetadataValue.md(f"```\n{command}\n```"),
    }


def show_table(frame: pd.DataFrame, name: str | None = None) -> dg.TableMetadataValue:
    """Return a frame without its index as a table; descriptions of columns are those of frame `name`."""

    def shorten(value: Any) -> Any:
        if value is None:
            return ""
        return round(value, 4) if isinstance(value, float) else value

    records = [
        dg.TableRecord({column: shorten(value) for column, value in row.items()}) for row in to_rows(frame)
    ]
    return dg.MetadataValue.table(records, schema=describe_frame(frame, name))


def view_table(figures: Mapping[str, Any], name: str) -> pd.DataFrame:
    """Return the rows of a dossier's `figures` that are those of a frame of the library, as a table."""
    rows = view_frame(figures, name)
    columns = [column for column in rows[0] if column in COLUMNS[name] or column in LABELS] if rows else []
    return pd.DataFrame(rows, columns=columns)


def show_flags(figures: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the number of flags of a check, and the first `FLAGS_SHOWN` of each target and synthesis."""
    frame = view_table(figures, name)
    if frame.empty:
        frame = pd.DataFrame(columns=["target", "synthesis", *COLUMNS[name]])
    first = frame.groupby(["target", "synthesis"], sort=False).head(FLAGS_SHOWN)
    return {name: show_table(first, name), f"{name}_flags": len(frame)}


def describe_frame(frame: pd.DataFrame, name: str | None) -> dg.TableSchema:
    """Return the columns of a frame for Dagster's column panel; `name` as in `show_table`."""
    types = {"f": "float", "i": "int", "b": "bool"}
    return dg.TableSchema(
        [
            dg.TableColumn(
                str(column),
                types.get(dtype.kind, "string"),
                (describe_column(str(column), name) or None) if name else None,
            )
            for column, dtype in frame.dtypes.items()
        ]
    )


def describe_dictionary(gate: Gate) -> dg.TableSchema:
    """Return the data dictionary of a gate for Dagster's column panel, with keys and targets tagged."""
    role = dict.fromkeys(gate.keys, "key") | dict.fromkeys(gate.targets, "target")
    return dg.TableSchema(
        [
            dg.TableColumn(
                name,
                column.type,
                column.description or None,
                tags={"role": role[name]} if name in role else {},
            )
            for name, column in gate.columns.items()
        ]
    )


def show_effective_clauses(clauses: Sequence[Clause]) -> dg.MarkdownMetadataValue:
    """Return the clauses in force as a list."""
    return dg.MetadataValue.md(
        "\n".join(f"- {escape_markdown(str(clause))}" for clause in list_effective_clauses(clauses))
    )


def show_judgements(judgements: Iterable[Judgement]) -> dg.TableMetadataValue:
    """Return a table of judgements with clause, value, bound and outcome."""
    records = [
        {
            "clause": judgement.subject,
            "value": format_cell(judgement.value),
            "bound": judgement.short_limit or "-",
            "outcome": judgement.outcome_text,
        }
        for judgement in judgements
    ]
    return show_table(pd.DataFrame(records, columns=["clause", "value", "bound", "outcome"]))


NOT_MEASURED = "Not measured: the contract is broken"
KEPT = "Every rule of the data dictionary is kept"


def build_contract_check(key: dg.AssetKey, violations: Sequence[Violation]) -> dg.AssetCheckResult:
    """Return the check that a table keeps its data dictionary, with each violation but no value."""
    listed = pd.DataFrame(
        [vars(violation) for violation in violations],
        columns=["table", "column", "rule", "records", "share"],
    )
    return dg.AssetCheckResult(
        passed=not violations,
        asset_key=key,
        check_name="contract",
        description="; ".join(map(str, violations)) or KEPT,
        metadata={
            "value": len(violations),
            "bound": 0,
            "outcome": "exceeded" if violations else "kept",
            **({"violations": show_table(listed)} if violations else {}),
        },
    )


def build_overlap_check(
    key: dg.AssetKey, arrival: Arrival, clauses: int, content: Content
) -> dg.AssetCheckResult:
    """Return the check that GT and SD share enough values; it fails unless exactly `clauses` are kept."""
    ordered = order_judgements(arrival.overlaps)
    kept = [judgement.outcome == "kept" for judgement in ordered]
    rows = tabulate_key_overlap(arrival.key_overlap, len(arrival.records))
    figures = {"table": [row.to_record() for row in rows]}
    return dg.AssetCheckResult(
        # Tables that break the contract are not compared: without judgements the check fails.
        passed=len(kept) == clauses and all(kept),
        asset_key=key,
        check_name="key_overlap",
        description=" ".join(write_sentence(judgement, content) for judgement in ordered) or NOT_MEASURED,
        metadata={
            **(describe_worst(ordered[0], content) if ordered else {"outcome": "undetermined"}),
            "values": show_table(view_table(figures, "key_overlap"), "key_overlap"),
        },
    )


SHOWN = 50
"""The number of newest candidates that are shown with their worst clause."""


def describe_candidates(folders: GateFolders) -> dict[str, Any]:
    """Return the standings of all candidates; for the newest ones with a sentence on the worst clause."""
    standings = list_standings(folders)
    newest_first = sorted(
        standings, key=lambda standing: (standing.judged_at is not None, standing.judged_at), reverse=True
    )
    rows = [
        {
            "candidate": standing.candidate,
            "records": "" if standing.records is None else f"{standing.records:,}",
            "date (UTC)": "" if standing.judged_at is None else f"{standing.judged_at:%Y-%m-%d}",
        }
        for standing in newest_first
    ]
    decisions = Counter(standing.decision or "not judged" for standing in standings)
    # One entry per candidate: Dagster would cut the columns of a table within its table, but folds values.
    # Names of candidates have no blanks, so none can collide with the other entries.
    return {
        **{
            standing.candidate: ": ".join(filter(None, (str(standing), standing.reason)))
            for standing in newest_first[:SHOWN]
        },
        "records and dates": show_table(pd.DataFrame(rows, columns=["candidate", "records", "date (UTC)"])),
        "dagster/row_count": len(standings),
        **{f"are {name}": decisions[name] for name in ("approved", "refused", "undetermined")},
        "are published": sum(standing.is_published for standing in standings),
    }
