"""Threads, free memory, files that are written whole, and a line that shows progress."""
