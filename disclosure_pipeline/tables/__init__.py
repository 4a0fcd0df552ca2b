"""Turning tables into integer codes that mean the same in every table, or refusing them with a reason."""
