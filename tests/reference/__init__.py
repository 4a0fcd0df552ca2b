"""The slow reference: every figure from its formula, record by record."""
