"""Analyses that no gate needs: sets of keys, single records."""
