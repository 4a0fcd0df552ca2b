"""Analyses that no gate needs: sets of keys, exposure, single records, releases over time."""
