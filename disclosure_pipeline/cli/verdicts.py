"""Verdicts and releases: `evaluate`, `run`, `report`; `verify`, `revoke` and `prune`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from disclosure_pipeline.cli.printing import (
    EXIT_CODES,
    ExitCode,
    Format,
    Report,
    Table,
    choose_format,
    code_of,
    echo,
    format_option,
    gate_argument,
    load_with_waivers,
    print_report,
    print_sentences,
    report_errors,
    show_step,
    to_csv,
    to_html,
)
from disclosure_pipeline.errors import DisclosurePipelineError

if TYPE_CHECKING:
    from disclosure_pipeline.policy.verdict import Judgement

_CLAUSE_COLUMNS = ("clause", "value", "bound", "outcome", "if not kept")
_WORDS = ("name", "unit", "meaning")


@click.command(epilog=EXIT_CODES, short_help="What would a gate decide on a folder of synthetic tables?")
@gate_argument
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@format_option
@click.option("--all", "show_all", is_flag=True, help="Show the clauses that are kept, too, in plain lines.")
@report_errors(ExitCode.UNDETERMINED)
def evaluate(gate: Path, folder: Path, shown_as: Format | None, show_all: bool) -> None:
    """Say what GATE would decide on the synthetic tables in FOLDER, without a run and without publishing.

    GATE is a gate's defs.yaml, or its folder. FOLDER holds one candidate; a file _SUCCESS is not needed. The
    engine, the data dictionary, the guards and the clauses are those of a run. Nothing is kept of it but that
    the ground truth was asked: the same content counts once, here and in a run together
    (policy.evaluations_per_ground_truth).
    """
    from disclosure_pipeline.candidates.evaluation import rehearse
    from disclosure_pipeline.release.standing import record_releases

    _, folders = load_with_waivers(gate)
    with show_step("Measuring the candidate"):
        record_releases(folders)
        rehearsal = rehearse(folders, folder.resolve(), datetime.now(timezone.utc))
    clauses = _read_clauses(rehearsal.dossier)
    name = folder.resolve().name
    chosen = choose_format(shown_as)
    columns = folders.gate.describe_columns()
    facts: dict[str, Any] = {
        "gate": folders.gate.name,
        "candidate": name,
        "decision": rehearsal.decision,
        "columns": columns,
    }
    if chosen != "table":
        facts["reasons"] = list(rehearsal.reasons)
    lines = [f"  {columns}", *_write_lines(clauses if show_all else [], rehearsal.reasons)]
    tables = _show_clauses(clauses, chosen)
    print_report(Report(f"{name}: {rehearsal.decision}", facts, tables, lines), chosen)
    if chosen == "table":
        print_sentences(rehearsal.reasons)
    sys.exit(code_of(rehearsal.decision))


@click.command(epilog=EXIT_CODES, short_help="Run a gate over a candidate, to its release or refusal.")
@gate_argument
@click.argument("candidate")
@report_errors(ExitCode.UNDETERMINED)
def run(gate: Path, candidate: str) -> None:
    """Run GATE (a gate's defs.yaml, or its folder) over a CANDIDATE in its folder of incoming ones.

    It is the run that Dagster's sensor would start, without a daemon: the ground truth is recorded where it
    is new or changed, the candidate measured, judged, and published or refused. Dagster shows it like any
    other. The exit code is that of the verdict.
    """
    from disclosure_pipeline.orchestration.component import run_gate

    _, folders = load_with_waivers(gate)
    ended = run_gate(folders, candidate, show_step)
    echo(f"{candidate}: {ended.verdict}")
    if ended.words:
        echo(ended.words)
    elif ended.verdict == "approved":
        echo(f"Published in {folders.releases / candidate}")
    echo(f"Run {ended.run_id}", err=True)
    sys.exit(ExitCode.CRASHED if ended.verdict == "crashed" else code_of(ended.verdict))


@click.command(epilog=EXIT_CODES, short_help="Show the verdict on a candidate, and every clause.")
@gate_argument
@click.argument("candidate")
@format_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it into this file instead of printing it.",
)
@report_errors(ExitCode.UNDETERMINED)
def report(gate: Path, candidate: str, shown_as: Format | None, output: Path | None) -> None:
    """Show the dossier of a CANDIDATE that a run of GATE has judged: the verdict, and every clause.

    json is the whole dossier, html the page that a run made of it. The exit code is that of its verdict.
    """
    from disclosure_pipeline.evidence.dossier import list_broken_clauses, to_markdown
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.runtime.files import read_json

    store = folders_of(load_gate(gate)).store
    path = store.candidate_folder(candidate) / "dossier.json"
    dossier = read_json(path, f"the gate for candidate {candidate!r}")
    facts = {
        name.replace("_", " "): dossier[name] for name in ("gate", "candidate", "decision", "policy_digest")
    }
    clauses = _read_clauses(dossier)
    lines = _write_lines(clauses, list_broken_clauses(dossier))
    chosen = choose_format(shown_as)
    summary = Report(f"{candidate}: {dossier['decision']}", facts, _show_clauses(clauses, chosen), lines)
    page = path.with_suffix(".html")
    if chosen == "json":
        text = path.read_text(encoding="utf-8")
    elif chosen == "html":
        text = page.read_text(encoding="utf-8") if page.is_file() else to_html(summary)
    else:
        text = to_csv(summary) if chosen == "csv" else to_markdown(dossier)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        echo(f"Written to {output}", err=True)
    elif chosen in {"json", "html", "csv"}:
        echo(text, nl=False)
    else:
        print_report(summary, chosen)
    sys.exit(code_of(dossier["decision"]))


def _read_clauses(dossier: Mapping[str, Any]) -> list[Judgement]:
    """Return the judgements of a dossier, those first that are not kept; none of a candidate not measured."""
    from disclosure_pipeline.policy.verdict import Judgement

    judgements = map(Judgement.from_row, dossier.get("clauses", ()))
    return sorted(judgements, key=lambda judgement: judgement.outcome == "kept")


def _show_clauses(clauses: Sequence[Judgement], shown_as: Format | None) -> tuple[Table, ...]:
    """Return the clauses as one table for programs; for readers with the meanings apart, so that both fit."""
    rows = [
        {
            "clause": judgement.clause.name,
            "value": judgement.value,
            "bound": judgement.limit_in_words or "",
            "outcome": judgement.outcome,
            "if not kept": judgement.clause.consequence.removeprefix("leaves "),
            **_find_words(judgement),
        }
        for judgement in clauses
    ]
    if shown_as != "table":
        return (Table("clauses", "Clauses of the policy", (*_CLAUSE_COLUMNS, *_WORDS), rows),)
    broken = {judgement.clause.measure: judgement for judgement in clauses if judgement.outcome != "kept"}
    meanings = [{"not kept": measure, **_find_words(judgement)} for measure, judgement in broken.items()]
    for row, judgement in zip(rows, clauses, strict=True):  # a terminal has little room
        row |= {"bound": judgement.limit_in_short or "", "outcome": judgement.outcome_in_words}
    return (
        Table("clauses", "Clauses of the policy", _CLAUSE_COLUMNS[:-1], rows),
        Table("meanings", "What is not kept", ("not kept", *_WORDS), meanings),
    )


def _find_words(judgement: Judgement) -> dict[str, str]:
    """Return name, unit and meaning of what the clause is about; a note of its own is the meaning."""
    from disclosure_pipeline.policy.clauses import words_of

    words = words_of(judgement.clause.measure)
    meaning = judgement.note or words.sentence
    return dict(zip(_WORDS, (words.title, words.unit_and_denominator, meaning), strict=True))


def _write_lines(clauses: Sequence[Judgement], reasons: Sequence[str]) -> list[str]:
    lines = []
    for judgement in clauses:
        value = "" if judgement.value is None else f" {judgement.value:.4g}"
        bound = judgement.limit_in_words or "no bound"
        lines.append(f"  {judgement.clause.name}:{value} ({bound}), {judgement.outcome}")
    return [*lines, *(f"- {reason}" for reason in reasons)]


_KEY = click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A public key (PEM), or a YAML list of them with their periods; repeat for more.",
)


def _parse_moment(text: str) -> datetime:
    from disclosure_pipeline.policy.reviewed_files import TrustError, parse_moment

    try:
        return parse_moment(text)
    except TrustError as error:
        raise click.BadParameter(str(error)) from None


@click.command(epilog=EXIT_CODES, short_help="Check a published release, with nothing but a public key.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--gate", help="The gate that it must be a release of.")
@click.option("--candidate", help="The candidate that it must be.")
@click.option("--policy-digest", help="The digest of the policy that it must have been held against.")
@click.option(
    "--not-before",
    callback=lambda _context, _option, text: None if text is None else _parse_moment(text),
    help="A time with an offset, before which it must not have been published.",
)
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="A file of signed revocations, as `revoke` writes it, none of which may concern it.",
)
@report_errors()
def verify(
    folder: Path,
    keys: tuple[Path, ...],
    gate: str | None,
    candidate: str | None,
    policy_digest: str | None,
    not_before: datetime | None,
    revocations: Path | None,
) -> None:
    """Say what was approved of a published FOLDER, or what is wrong with it (exit code 1).

    Nothing is needed but the folder and the public key. What was approved is printed; with an option, the
    release must be the one that it names.
    """
    from disclosure_pipeline.policy.reviewed_files import read_trusted
    from disclosure_pipeline.release.verifying import Expected
    from disclosure_pipeline.release.verifying import verify as verify_release

    expected = Expected(gate, candidate, policy_digest, not_before)
    trusted_keys = [key for path in keys for key in read_trusted(path)]
    echo(verify_release(folder, trusted_keys, expected, revocations))


@click.command(epilog=EXIT_CODES, short_help="Write a signed revocation of a release.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--reason", required=True, help="Why it is no longer stood by; everyone who verifies sees it.")
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="The file that the signed revocation is added to, which is made if it is not there; by default "
    "RELEASES/GATE.revocations, where the gate that published it reads it.",
)
@report_errors(expected=(DisclosurePipelineError, OSError))
def revoke(folder: Path, keys: tuple[Path, ...], reason: str, revocations: Path | None) -> None:
    """Write a signed revocation of the release in FOLDER, for everyone who verifies it.

    It is signed with the gate's key (DISCLOSURE_PIPELINE_SIGNING_KEY). The release itself is not touched:
    hand the file of revocations to its recipients. The same table is not published again, in whatever order,
    format or release.
    """
    from disclosure_pipeline.candidates.store import locate_revocations
    from disclosure_pipeline.policy.reviewed_files import read_trusted
    from disclosure_pipeline.release.keys import load_signer
    from disclosure_pipeline.release.verifying import revoke as write_revocation

    revocations = revocations or locate_revocations(folder.absolute().parent)
    trusted_keys = [key for path in keys for key in read_trusted(path)]
    now = datetime.now(timezone.utc)
    revocation = write_revocation(folder, revocations, reason, trusted_keys, load_signer(), now)
    echo(f"{revocation}\nAdded to {revocations}: hand it to whoever has the release.")


@click.command(epilog=EXIT_CODES, short_help="Remove old bytes of candidates that were not released.")
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--releases",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder in which the gate publishes: RELEASES/GATE.",
)
@click.option(
    "--older-than",
    "days",
    required=True,
    type=click.IntRange(1, 36500),
    help="How many days old they are at least.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@report_errors(expected=(DisclosurePipelineError, OSError))
def prune(store: Path, releases: Path, days: int, dry_run: bool) -> None:
    """Remove the old bytes of candidates that were refused or never decided from STORE, a gate's store/GATE.

    Bytes of what is published or approved stay, and so do all records.
    """
    from disclosure_pipeline.candidates.store import Store
    from disclosure_pipeline.release.standing import prune as prune_store

    age, now = timedelta(days=days), datetime.now(timezone.utc)
    pruning = prune_store(Store(store), releases, age, now, dry_run=dry_run)
    for path in pruning.removed:
        echo(f"{'would remove' if dry_run else 'removed'} {path}")
    echo(f"{len(pruning.removed)} files, {pruning.bytes} bytes")
    if pruning.unclear:
        reasons = "".join(f"\n- {reason}" for reason in pruning.unclear)
        raise click.ClickException(
            f"All stored tables were kept, for it is not clear what is needed:{reasons}"
        )
