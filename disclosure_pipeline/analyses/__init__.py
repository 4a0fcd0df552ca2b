"""Analyses beyond the gate: sets of keys, exposure, records one by one, releases over time."""
