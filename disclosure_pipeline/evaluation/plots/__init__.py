"""Pictures of figures, and their common style."""
