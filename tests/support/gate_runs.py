"""A run of the small gate, or of its release alone, in a home of its own: the work of a forked process."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from support.event_stores import kept_connections
from support.homes import opened
from support.outcomes import Ran, ran


def run_gate(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    """One run of the gate's job over a candidate."""
    with opened(path, defs) as home:
        return ran(home.run_gate(candidate))


def run_gate_undisturbed(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    """The same, of a run that nobody kills or copies halfway."""
    with kept_connections():
        return run_gate(path, defs, candidate)


def release_alone(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    """One run of the release of a candidate, and nothing before it."""
    with opened(path, defs) as home:
        return ran(home.materialize("release", candidate))
