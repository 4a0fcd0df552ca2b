"""Snapshots of what arrived, and the publication of what was approved."""
