"""Measures and clauses in, verdicts out: arithmetic that the checks, the dossier and the release all call."""
