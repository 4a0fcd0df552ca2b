"""Counts the tables of a database where they are, by expressions of Ibis."""
