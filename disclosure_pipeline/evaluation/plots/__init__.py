"""How figures are drawn: one module a picture, one style for all, and how a picture is saved."""
