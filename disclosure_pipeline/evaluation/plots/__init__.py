"""Pictures of figures: one module a picture, and one style for all."""
