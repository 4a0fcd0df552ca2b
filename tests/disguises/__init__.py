"""Disguises of ground truth that no gate may publish, and honest tables that it must not refuse."""
