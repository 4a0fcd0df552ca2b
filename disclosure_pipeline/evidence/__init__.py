"""Evidence of an evaluation: figures and dossier, without a single value of the ground truth."""
