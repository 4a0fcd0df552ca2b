"""Threads, free memory, atomic writes, hashes, and progress."""
