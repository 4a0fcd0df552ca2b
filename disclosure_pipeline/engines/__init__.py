"""Engines: they count what the measures are made of, wherever the records are."""
