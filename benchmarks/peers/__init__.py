"""Whoever computes the figures: each module prepares tables in its library's own form, untimed."""
