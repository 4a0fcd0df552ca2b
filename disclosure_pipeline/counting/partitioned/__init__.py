"""Counts files batch by batch, and spills to disk what does not fit into memory."""
