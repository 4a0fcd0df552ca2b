"""Counting: opens tables by one of the engines, and returns the same integers from each."""
