"""The readiness of a gate, as far as it can be checked before a candidate arrives, and its sealed power."""

from __future__ import annotations

import hmac
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from disclosure_pipeline.candidates.measuring import (
    find_like_identifiers,
    measure_limits,
    measure_repeats,
    open_with_itself,
)
from disclosure_pipeline.candidates.power import measure_power, read_power, record_power
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import DisclosurePipelineError, StoreError, choose_form, write_count
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.copies import MANY_REPEATS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey, read_key_file
from disclosure_pipeline.policy.sentences import describe_limits
from disclosure_pipeline.release.keys import (
    KeysError,
    hash_with_salt,
    load_signer,
    make_seal,
    parse_keys_by_id,
)
from disclosure_pipeline.runtime.files import is_open_to_others, read_json
from disclosure_pipeline.tables.sources import DuckDBSource, LinkedSource, Source, SqlSource


def find_missing(folders: GateFolders, now: datetime) -> list[tuple[str, str]]:
    """List missing tables and keys: the attribute of the gate's definition, and a sentence."""
    return [
        *_check_exists("ground_truth", "the ground truth", folders.ground_truth),
        *(
            problem
            for name, source in folders.confidential.items()
            for problem in _check_exists("confidential", f"the table {name!r}", source)
        ),
        *_check_keys(folders, now),
    ]


def _check_exists(attribute: str, table: str, source: Source | LinkedSource) -> Iterator[tuple[str, str]]:
    try:
        if not source.exists():
            yield attribute, f"{table} does not exist: {source.redacted_location}"
    except DisclosurePipelineError as error:
        yield attribute, f"{table}: {error}"


def _check_keys(folders: GateFolders, now: datetime) -> Iterator[tuple[str, str]]:
    trusted: dict[str, TrustedKey] = {}
    try:
        keys = read_trusted_keys(folders)
        trusted = {keyid: key for keyid, (_, key) in parse_keys_by_id(keys).items()}
    except DisclosurePipelineError as error:
        yield "trusted_keys", str(error)
    try:
        keyid = load_signer().public_key.keyid
        if trusted and (keyid not in trusted or not trusted[keyid].covers(now)):
            yield "trusted_keys", f"they do not include the gate's key {keyid} for today"
    except DisclosurePipelineError as error:
        yield "trusted_keys", f"no release can be signed: {error}"
    try:
        hash_with_salt("0" * 64)
    except DisclosurePipelineError as error:
        yield "ground_truth", f"its hash cannot be salted for a statement: {error}"


def read_trusted_keys(folders: GateFolders) -> tuple[TrustedKey, ...]:
    """Read the public keys that the gate trusts. Raise TrustError if they are missing or unreadable."""
    keys = folders.trusted_keys
    return read_key_file(keys) if isinstance(keys, Path) else keys


_HOME = "DAGSTER_HOME"


def describe_open(folder: Path) -> str:
    """Return the sentence on a folder with exact figures that others can enter."""
    return (
        f"others on this machine can read {folder}, which is for exact figures of the ground truth: run "
        f"`chmod 700 {shlex.quote(str(folder))}`"
    )


@dataclass(frozen=True)
class Finding:
    """A sentence on an attribute of the definition or a variable; with a doubt the gate is still ready."""

    subject: str
    sentence: str
    is_problem: bool = False
    is_doubt: bool = False


def check_readiness(folders: GateFolders, now: datetime) -> list[Finding]:
    """Check ground truth, contract, keys, folders, environment and packages, without writing anything."""
    missing = find_missing(folders, now)
    attributes = {attribute for attribute, _ in missing}
    findings = [Finding(attribute, problem, is_problem=True) for attribute, problem in missing]
    if "trusted_keys" not in attributes:
        findings.append(Finding("trusted_keys", "the gate's key can sign, and its signatures are trusted"))
    if "ground_truth" not in attributes:
        findings += _check_contract(folders)
    findings.append(Finding("columns", folders.gate.describe_columns()))
    findings += _check_folders(folders)
    findings += _check_home()
    return [*findings, *_check_packages(folders)]


def _check_contract(folders: GateFolders) -> Iterator[Finding]:
    gate = folders.gate
    try:
        with open_with_itself(folders) as (opened, engine, table, digest):
            people = None if gate.unit is None else len(table.values[gate.unit])
            alike, repeats = (0.0, 0.0) if people else measure_repeats(gate, opened)
            identifiers = find_like_identifiers(gate, opened)
            limits = {} if gate.counts_in_database else measure_limits(gate, opened)
    except DisclosurePipelineError as error:
        yield Finding("ground_truth", str(error), is_problem=True)
        return
    recorded = "recorded by a run" if _is_recorded(folders, digest) else "not yet recorded by a run"
    yield Finding(
        "ground_truth",
        f"{write_count(table.records, 'record')} that {choose_form(table.records, 'keeps', 'keep')} the "
        f"data dictionary, {recorded}; counted by {engine.description}",
    )
    if not alike <= gate.policy.find_bound("alike"):
        yield Finding(
            "columns",
            f"the table hardly tells anybody apart: {alike:.1f} % of the records equal another one in every "
            "column, so copies of these people cannot be noticed, and every candidate stays undetermined. "
            "Publish more columns or finer groups, or accept this with guards: {alike: 100}",
            is_problem=True,
        )
    if identifiers:
        yield Finding("columns", _describe_identifiers(identifiers), is_doubt=True)
    if gate.keeping_real_values:
        kept = ", ".join(sorted(gate.keeping_real_values))
        yield Finding("columns", f"real values of {kept} may be published, whoever they identify")
    if limits:
        yield _describe_limits(gate, limits)
    yield _describe_power(folders, digest)
    if people is not None:
        yield Finding("unit", f"the records belong to {write_count(people, 'unit')}")
    elif repeats > MANY_REPEATS:
        yield Finding(
            "unit",
            f"{repeats:.0f} % of the records, beyond chance, equal another in all columns or all but one. "
            "If people have several records, name the column that says whose each is: otherwise those count "
            "as other people's, and copies of them are not noticed",
            is_doubt=True,
        )


def _describe_identifiers(names: Sequence[str]) -> str:
    subject = "is like an identifier" if len(names) == 1 else "are like identifiers"
    return (
        f"{', '.join(names)} {subject}: nearly everybody in the ground truth has a value that nobody else "
        "has. A candidate with more of these values than by chance is not approved. Do not publish such a "
        "column (type: text identifier), or declare real_values: keep if real values may be published"
    )


def _describe_limits(gate: Gate, limits: Mapping[str, float]) -> Finding:
    """Describe which copies the gate would notice; beyond the bound, every candidate stays undetermined."""
    sentence = "; ".join(describe_limits(limits))
    if limits["detection_limit"] <= gate.policy.find_bound("detection_limit"):
        return Finding("policy", sentence)
    sentence = f"{sentence}. That is more than allowed, so every candidate stays undetermined"
    return Finding("policy", f"{sentence}. {FIGURES['detection_limit'].meaning}", is_doubt=True)


def _describe_power(folders: GateFolders, digest: str) -> Finding:
    power = read_power(folders, digest)
    if power is None:
        return Finding("policy", "its power is not measured yet: run disclosure-pipeline policy power")
    if power.is_blind:
        sentence = (
            f"{power.summarize()} Publish more columns, form fewer groups, or lower the bounds, then run "
            "disclosure-pipeline policy power again"
        )
        return Finding("policy", sentence, is_problem=True)
    honest = power.false_refusals
    refuses_all = honest.are_enough and honest.are_reliable
    sentences = power.describe()
    if power.unknown:
        sentences.append("Run disclosure-pipeline policy power with more --seconds")
    is_doubt = refuses_all or power.unnoticed is not None or bool(power.unknown)
    return Finding("policy", " ".join(sentences), is_doubt=is_doubt)


def _is_recorded(folders: GateFolders, digest: str) -> bool:
    try:
        return read_json(folders.store.ground_truth, "").get("sha256") == digest
    except (StoreError, OSError):
        return False


def _check_folders(folders: GateFolders) -> Iterator[Finding]:
    if folders.gate.synthesis_asset is None:
        existing = _find_existing(folders.incoming)
        if existing == folders.incoming and existing.is_dir() and os.access(existing, os.R_OK | os.X_OK):
            yield Finding("incoming", f"candidates are expected in {folders.incoming}")
        else:
            sentence = f"{folders.incoming} is not a readable folder: make it, candidates arrive there"
            yield Finding("incoming", sentence, is_problem=True)
    for attribute, folder in (("store", folders.store.root), ("releases", folders.releases)):
        existing = _find_existing(folder)
        if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
            yield Finding(attribute, f"{folder} can be written")
        else:
            sentence = f"{folder} cannot be written: {existing} is not a folder that this user can write to"
            yield Finding(attribute, sentence, is_problem=True)
    store = _find_existing(folders.store.root)
    if store == folders.store.root and store.is_dir() and is_open_to_others(store):
        yield Finding("store", describe_open(store), is_doubt=True)
    staging, releases = _find_existing(folders.staging), _find_existing(folders.releases)
    if staging.stat().st_dev != releases.stat().st_dev:
        sentence = (
            f"{folders.staging} and {folders.releases} are on different file systems: make releases a folder "
            "inside the mounted one"
        )
        yield Finding("releases", sentence, is_problem=True)


def _find_existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that exists and that this user may know of."""
    for folder in (path, *path.parents):
        with suppress(PermissionError):  # it lies in a folder that this user may not enter
            if folder.exists():
                return folder
    return Path(path.anchor)


def find_home_problem() -> str | None:
    """Return why Dagster could keep no run in DAGSTER_HOME, as the end of a sentence, or None."""
    home = os.environ.get(_HOME)
    if not home:
        return "is not set: Dagster would forget every run"
    if not Path(home).is_absolute():
        return f"is {home}: Dagster needs an absolute path"
    return (
        None if Path(home).is_dir() else f"names {home}, which is not a folder: make it with `mkdir -m 700`"
    )


def _check_home() -> Iterator[Finding]:
    problem, home = find_home_problem(), os.environ.get(_HOME, "")
    if problem is not None:
        yield Finding(_HOME, problem, is_problem=True)
        return
    settings = Path(home, "dagster.yaml")
    is_set_up = settings.is_file()
    origin = (
        f", set up by {settings.name}" if is_set_up else "; without a dagster.yaml, Dagster's defaults apply"
    )
    yield Finding(_HOME, f"{home}{origin}")
    if is_open_to_others(Path(home)):
        yield Finding(_HOME, describe_open(Path(home)), is_doubt=True)


def _check_packages(folders: GateFolders) -> Iterator[Finding]:
    gate = folders.gate
    needed = {
        "measures": ("sklearn", "prediction", bool(gate.measures.prediction)),
        "notify": ("dagster_slack", "slack", gate.notify.slack is not None),
        "engine": ("ibis", "ibis", gate.counts_in_database),
        "ground_truth": (
            ("duckdb", "duckdb", True)
            if isinstance(folders.ground_truth, DuckDBSource)
            else ("sqlalchemy", "sql", isinstance(folders.ground_truth, SqlSource))
        ),
    }
    for attribute, (package, extra, is_needed) in needed.items():
        if is_needed and find_spec(package) is None:
            sentence = f"needs the package {package}: install disclosure-pipeline[{extra}]"
            yield Finding(attribute, sentence, is_problem=True)


def measure_and_record_power(folders: GateFolders, seconds: float) -> GatePower:
    """Measure the policy's power and record it, under a seal that a release believes if there is a salt."""
    power, ground_truth = measure_power(folders, seconds)
    record_power(folders, ground_truth, power, _seal_if_possible)
    return power


def _seal_if_possible(content: bytes) -> str:
    try:
        return make_seal(content)
    except KeysError:
        return ""


def _is_sealed(content: bytes, seal: str) -> bool:
    return hmac.compare_digest(make_seal(content), seal)


def find_power(folders: GateFolders, ground_truth: str) -> GatePower | None:
    """Return the policy's power for the ground truth with this sha256: as sealed, or measured now.

    None if the gate's `power_seconds` are 0 or it cannot be measured, which the release then says. Raise
    KeysError if there is no salt.
    """
    power = read_power(folders, ground_truth, _is_sealed)
    if power is None and folders.gate.power_seconds:
        with suppress(DisclosurePipelineError):
            measure_and_record_power(folders, folders.gate.power_seconds)
            power = read_power(folders, ground_truth, _is_sealed)
    return power


def summarize_gate_power(folders: GateFolders, ground_truth: str) -> str:
    """Return a sentence on the policy's power, measured unless it is recorded. Never raise an error."""
    if not folders.gate.power_seconds:
        return "not measured: power_seconds is 0"
    try:
        recorded = read_power(folders, ground_truth)
        return (recorded or measure_and_record_power(folders, folders.gate.power_seconds)).summarize()
    except DisclosurePipelineError as error:
        return f"not measured: {error}"
    except Exception as error:  # its message may quote a record
        return f"not measured: {type(error).__name__} was raised"
