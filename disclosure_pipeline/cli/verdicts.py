"""Verdicts and releases: `evaluate`, `run`, `report`, `verify`, `revoke` and `prune`."""

from __future__ import annotations

import sys
import time
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
    echo,
    find_exit_code,
    format_option,
    gate_argument,
    load_with_waivers,
    open_option,
    point_to_page,
    print_report,
    print_sentences,
    report_errors,
    show_step,
    to_csv,
    to_html,
)
from disclosure_pipeline.errors import DisclosurePipelineError, StoreError, write_count

if TYPE_CHECKING:
    from disclosure_pipeline.policy.verdict import Judgement

_CLAUSE_COLUMNS = ("clause", "value", "bound", "outcome", "if not kept")
_WORDS = ("name", "unit", "meaning")


@click.command(epilog=EXIT_CODES, short_help="Judge a folder of synthetic tables without a run.")
@gate_argument
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@format_option
@click.option("--all", "show_all", is_flag=True, help="Also show the clauses that are kept.")
@open_option
@report_errors(ExitCode.UNDETERMINED)
def evaluate(gate: Path, folder: Path, shown_as: Format | None, show_all: bool, opens: bool) -> None:
    """Show what GATE would decide on the synthetic tables in FOLDER, without a run and without publishing.

    GATE is a gate's defs.yaml, or its folder. FOLDER has one candidate and needs no file _SUCCESS. Engine,
    data dictionary, guards and clauses are those of a run. Only the evaluation itself
    (policy.evaluations_per_ground_truth) and its page are kept; a later run of the same content does not
    count again.
    """
    from disclosure_pipeline.candidates.rehearsal import rehearse
    from disclosure_pipeline.release.standing import record_releases

    _, folders = load_with_waivers(gate)
    with show_step("Measuring the candidate"):
        record_releases(folders)
        rehearsal = rehearse(folders, folder.resolve(), datetime.now(timezone.utc))
    clauses = _read_clauses(rehearsal.dossier)
    name = folder.resolve().name
    chosen = choose_format(shown_as)
    columns = folders.gate.describe_columns() if rehearsal.dossier else "nothing was measured"
    facts: dict[str, Any] = {
        "gate": folders.gate.name,
        "candidate": name,
        "decision": rehearsal.decision,
        "columns": columns,
    }
    if chosen != "table":
        facts |= {"reasons": list(rehearsal.reasons), "page": rehearsal.page}
    if chosen in {None, "table"} and not show_all:
        clauses = [judgement for judgement in clauses if judgement.outcome != "kept"]
    doubts = list(rehearsal.dossier.get("warnings", ())) if rehearsal.decision != "approved" else []
    told = list(dict.fromkeys([*rehearsal.reasons, *_write_sentences(clauses, rehearsal.dossier)]))
    sentences = [*told, *(f"warning: {doubt}" for doubt in doubts)]
    lines = [f"  {columns}", *(f"- {sentence}" for sentence in sentences)]
    has_rows = bool(clauses) or chosen in {"json", "csv"}
    tables = _show_clauses(clauses, chosen) if has_rows else ()
    print_report(Report(f"{name}: {rehearsal.decision}", facts, tables, lines), chosen)
    if chosen == "table":
        print_sentences(sentences)
    for reason in rehearsal.reasons if chosen == "csv" and not clauses else ():
        echo(reason, err=True)
    point_to_page(folders, rehearsal.page, chosen, opens=opens)
    sys.exit(find_exit_code(rehearsal.decision))


@click.command(epilog=EXIT_CODES, short_help="Run a gate on a candidate, to its release or refusal.")
@gate_argument
@click.argument("candidate")
@open_option
@report_errors(ExitCode.UNDETERMINED)
def run(gate: Path, candidate: str, opens: bool) -> None:
    """Run GATE (a gate's defs.yaml, or its folder) on a CANDIDATE in its folder of incoming candidates.

    This is the run that Dagster's sensor would start, without a daemon: the ground truth is recorded if it is
    new or changed, and the candidate is measured, judged, and published or refused. Dagster shows the run.
    The exit code is that of the verdict.
    """
    from disclosure_pipeline.candidates.evaluation import locate_page
    from disclosure_pipeline.orchestration.component import run_gate

    _, folders = load_with_waivers(gate)
    began = int(time.time())  # some file systems keep whole seconds
    ended = run_gate(folders, candidate, show_step)
    echo(f"{candidate}: {ended.verdict}")
    if ended.words:
        echo(ended.words)
    elif ended.verdict == "approved":
        echo(f"Published in {folders.releases / candidate}")
    echo(f"Run {ended.run_id}", err=True)
    page = locate_page(folders, candidate)
    is_new = page.is_file() and page.stat().st_mtime >= began
    point_to_page(folders, page if is_new else None, None, opens=opens)
    sys.exit(ExitCode.CRASHED if ended.verdict == "crashed" else find_exit_code(ended.verdict))


@click.command(epilog=EXIT_CODES, short_help="Show the verdict on a candidate, and every clause.")
@gate_argument
@click.argument("candidate")
@format_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of printing.",
)
@open_option
@report_errors(ExitCode.UNDETERMINED)
def report(gate: Path, candidate: str, shown_as: Format | None, output: Path | None, opens: bool) -> None:
    """Show the dossier of a CANDIDATE that a run of GATE has judged: the verdict, and every clause.

    json is the whole dossier, html its page. The exit code is that of the verdict.
    """
    from disclosure_pipeline.evidence.dossier import describe_broken_clauses, to_markdown
    from disclosure_pipeline.evidence.page.rendering import is_dossier
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.runtime.files import read_json

    folders = folders_of(load_gate(gate))
    path = folders.store.candidate_folder(candidate) / "dossier.json"
    dossier = read_json(path, f"the gate for candidate {candidate!r}")
    if not is_dossier(dossier):
        raise StoreError(f"{path.name} is damaged: run the gate for candidate {candidate!r} again.")
    facts = {name: dossier[name] for name in ("gate", "candidate", "decision", "policy_digest")}
    clauses = _read_clauses(dossier)
    reasons = describe_broken_clauses(dossier, dossier["smallest_count"])
    told = dict.fromkeys([*reasons, *_write_sentences(clauses, dossier)])
    lines = [f"- {sentence}" for sentence in told]
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
    point_to_page(folders, page if page.is_file() and output is None else None, chosen, opens=opens)
    sys.exit(find_exit_code(dossier["decision"]))


def _read_clauses(dossier: Mapping[str, Any]) -> list[Judgement]:
    """Return the judgements of a dossier, broken clauses first; none if nothing was measured."""
    from disclosure_pipeline.policy.verdict import Judgement, order_judgements

    return order_judgements(map(Judgement.from_row, dossier.get("clauses", ())))


def _show_clauses(clauses: Sequence[Judgement], shown_as: Format | None) -> tuple[Table, ...]:
    """Return the clauses as one table for programs, or as two that fit a terminal."""
    rows = [
        {
            "clause": judgement.subject if shown_as == "table" else judgement.clause.name,
            "value": judgement.value,
            "bound": judgement.limit_text or "",
            "outcome": judgement.outcome,
            "if not kept": judgement.clause.consequence.removeprefix("leaves "),
            **_find_words(judgement),
        }
        for judgement in clauses
    ]
    if shown_as != "table":
        return (Table("clauses", "Clauses of the policy", (*_CLAUSE_COLUMNS, *_WORDS), rows),)
    broken = {judgement.clause.figure: judgement for judgement in clauses if judgement.outcome != "kept"}
    meanings = [{"not kept": figure, **_find_words(judgement)} for figure, judgement in broken.items()]
    for row, judgement in zip(rows, clauses, strict=True):
        row |= {"bound": judgement.short_limit or "", "outcome": judgement.outcome_text}
    return (
        Table("clauses", "Clauses of the policy", _CLAUSE_COLUMNS[:-1], rows),
        Table("meanings", "Clauses that are not kept", ("not kept", *_WORDS), meanings),
    )


def _find_words(judgement: Judgement) -> dict[str, str]:
    """Return the name, unit and meaning of what a clause bounds; a note replaces the meaning."""
    words = judgement.clause.words
    meaning = judgement.note or words.sentence
    return dict(zip(_WORDS, (words.title, words.unit_and_denominator, meaning), strict=True))


def _write_sentences(clauses: Sequence[Judgement], dossier: Mapping[str, Any]) -> list[str]:
    from disclosure_pipeline.policy.sentences import write_sentence

    return [write_sentence(judgement, dossier) for judgement in clauses]


_KEY = click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A public key (PEM), or a YAML list of keys and their periods; repeat for more.",
)


def _parse_moment(text: str) -> datetime:
    from disclosure_pipeline.policy.reviewed_files import TrustError, parse_moment

    try:
        return parse_moment(text)
    except TrustError as error:
        raise click.BadParameter(str(error)) from None


@click.command(epilog=EXIT_CODES, short_help="Verify a published release with only a public key.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--gate", help="The expected gate.")
@click.option("--candidate", help="The expected candidate.")
@click.option("--policy-digest", help="The expected digest of the policy.")
@click.option(
    "--not-before",
    callback=lambda _context, _option, text: None if text is None else _parse_moment(text),
    help="The earliest time of publication accepted, with an offset.",
)
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="A file of signed revocations, as written by `revoke`; a revoked release is an error.",
)
@click.option("--verbose", is_flag=True, help="Also show hashes, versions and every clause.")
@report_errors()
def verify(
    folder: Path,
    keys: tuple[Path, ...],
    gate: str | None,
    candidate: str | None,
    policy_digest: str | None,
    not_before: datetime | None,
    revocations: Path | None,
    verbose: bool,
) -> None:
    """Print what was approved for a published FOLDER, or what is wrong with it (exit code 1).

    Only the folder and the public key are needed. Options give what the release is expected to be.
    """
    from disclosure_pipeline.policy.reviewed_files import read_key_file
    from disclosure_pipeline.release.verifying import Expected
    from disclosure_pipeline.release.verifying import verify as verify_release

    expected = Expected(gate, candidate, policy_digest, not_before)
    trusted_keys = [key for path in keys for key in read_key_file(path)]
    approval = verify_release(folder, trusted_keys, expected, revocations)
    echo(approval if verbose else approval.summarize())


@click.command(epilog=EXIT_CODES, short_help="Write a signed revocation of a release.")
@click.argument("folder", type=click.Path(path_type=Path))
@_KEY
@click.option("--reason", required=True, help="The reason, shown to everyone who verifies the release.")
@click.option(
    "--revocations",
    type=click.Path(path_type=Path),
    help="The file to add the signed revocation to; by default RELEASES/GATE.revocations, which the gate "
    "itself reads.",
)
@report_errors(expected=(DisclosurePipelineError, OSError))
def revoke(folder: Path, keys: tuple[Path, ...], reason: str, revocations: Path | None) -> None:
    """Write a signed revocation of the release in FOLDER, for everyone who verifies it.

    It is signed with the gate's key (DISCLOSURE_PIPELINE_SIGNING_KEY). The release itself is not changed:
    send the file of revocations to its recipients. The gate will not publish the same table again, whatever
    its order, format or release.
    """
    from disclosure_pipeline.candidates.store import locate_revocations
    from disclosure_pipeline.policy.reviewed_files import read_key_file
    from disclosure_pipeline.release.keys import load_signer
    from disclosure_pipeline.release.revoking import RevocationError, read_signed_statement
    from disclosure_pipeline.release.revoking import revoke as write_revocation

    trusted_keys = [key for path in keys for key in read_key_file(path)]
    if revocations is None:
        releases, gate = folder.absolute().parent, read_signed_statement(folder, trusted_keys).predicate.gate
        if releases.name != gate:
            raise RevocationError(
                f"{releases} is not where the gate {gate} publishes, which would not know of the revocation: "
                "give the folder in its releases or, by --revocations, the file that the gate reads."
            )
        revocations = locate_revocations(releases)
    now = datetime.now(timezone.utc)
    revocation = write_revocation(folder, revocations, reason, trusted_keys, load_signer(), now)
    echo(f"{revocation}\nAdded to {revocations}: send it to everyone who has the release.")


@click.command(epilog=EXIT_CODES, short_help="Remove old stored tables of candidates not released.")
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--releases",
    required=True,
    type=click.Path(path_type=Path),
    help="The gate's folder of releases: RELEASES/GATE.",
)
@click.option(
    "--older-than",
    "days",
    required=True,
    type=click.IntRange(1, 36500),
    help="The smallest age in days.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@report_errors(expected=(DisclosurePipelineError, OSError))
def prune(store: Path, releases: Path, days: int, dry_run: bool) -> None:
    """Remove old tables of candidates that were refused or never judged from STORE, a gate's store/GATE.

    Tables that are published or approved are kept, and so are all records.
    """
    from disclosure_pipeline.candidates.store import Store
    from disclosure_pipeline.release.pruning import prune as prune_store

    age, now = timedelta(days=days), datetime.now(timezone.utc)
    pruning = prune_store(Store(store), releases, age, now, dry_run=dry_run)
    for path in pruning.removed:
        echo(f"{'would remove' if dry_run else 'removed'} {path}")
    echo(f"{write_count(len(pruning.removed), 'file')}, {write_count(pruning.bytes, 'byte')}")
    if pruning.unclear:
        reasons = "".join(f"\n- {reason}" for reason in pruning.unclear)
        raise click.ClickException(
            f"No stored table was removed, because it is unclear which are needed:{reasons}"
        )
