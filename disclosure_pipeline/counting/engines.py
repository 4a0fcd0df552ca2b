"""The engines by name. Nothing is imported here, so that the command line can list them at once."""

from __future__ import annotations

DATABASE = "://"

# Name -> class. Every URL is that of a database.
ENGINES = {
    "memory": "disclosure_pipeline.counting.memory.engine.MemoryEngine",
    "partitioned": "disclosure_pipeline.counting.partitioned.opened_files.PartitionedEngine",
    DATABASE: "disclosure_pipeline.counting.relational.opened_database.DatabaseEngine",
}


def list_engines() -> list[str]:
    """Return the names of the engines that are no URLs."""
    return [name for name in ENGINES if name != DATABASE]
