"""Counting files batch by batch; what does not fit into memory is spilled to disk."""
