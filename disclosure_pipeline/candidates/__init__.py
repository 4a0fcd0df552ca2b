"""Candidates: the snapshot of what arrived, its canonical form, its figures and its dossier."""
