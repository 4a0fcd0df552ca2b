"""A policy's power, kept under a seal, so that a release need not believe the store."""

from __future__ import annotations

import hmac
from contextlib import suppress

from disclosure_pipeline.candidates.power import SECONDS, measure_power, read_power, record_power
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.release.keys import KeysError, make_seal


def keep_power(folders: GateFolders, seconds: float = SECONDS) -> GatePower:
    """Measure what the policy would notice, and keep it for `check`, dossiers and releases.

    Without a salt it is kept unsealed: then a release measures it again. Errors as `measure_power`.
    """
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
    """Return what is kept under a seal for the ground truth of this sha256, or what is measured now.

    None where the gate's `power_seconds` are 0, or it cannot be measured: a release says so then. KeysError
    where there is no salt.
    """
    kept = read_power(folders, ground_truth, _is_sealed)
    if kept is None and folders.gate.power_seconds:
        with suppress(DisclosurePipelineError):
            keep_power(folders, folders.gate.power_seconds)
            kept = read_power(folders, ground_truth, _is_sealed)
    return kept


def keep_power_once(folders: GateFolders, ground_truth: str) -> str:
    """Measure what the policy would notice unless that is kept; return it in a sentence, or why it is not.

    Nothing that goes wrong here stands in the way of a run.
    """
    if not folders.gate.power_seconds:
        return "not measured: power_seconds is 0"
    try:
        kept = read_power(folders, ground_truth)
        return (kept or keep_power(folders, folders.gate.power_seconds)).summarize()
    except DisclosurePipelineError as error:
        return f"not measured: {error}"
    except Exception as error:  # its message may quote a record
        return f"not measured: a {type(error).__name__} came up"
