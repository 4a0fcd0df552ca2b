"""Counting: each engine opens tables and returns the same integers."""
