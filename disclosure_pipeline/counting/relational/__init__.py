"""Counting tables where they are, in a database, by Ibis expressions."""
