"""Threads, free memory, hashes of streams, and a line that shows progress."""
