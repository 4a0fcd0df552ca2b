"""Turn measures and clauses into verdicts: arithmetic shared by the checks, the dossier and the release."""
