"""Counting tables whose codes fit into memory."""
