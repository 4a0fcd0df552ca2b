"""Counts tables whose codes fit into memory."""
