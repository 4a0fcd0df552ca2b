"""Candidates: their snapshots, canonical form, figures and dossiers."""
