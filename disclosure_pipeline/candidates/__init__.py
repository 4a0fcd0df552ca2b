"""What arrived: its snapshot, its canonical form, its figures and its dossier."""
