"""Threads, worker processes, free memory, atomic writes, hashes, and progress."""
