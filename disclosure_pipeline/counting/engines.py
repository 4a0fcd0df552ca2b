"""The engines by name. Imports nothing, so that the command line lists them without delay."""

from __future__ import annotations

DATABASE = "://"

# Name -> class. Every URL means a database.
ENGINES = {
    "memory": "disclosure_pipeline.counting.memory.engine.MemoryEngine",
    "partitioned": "disclosure_pipeline.counting.partitioned.opened_files.PartitionedEngine",
    DATABASE: "disclosure_pipeline.counting.relational.opened_database.DatabaseEngine",
}


def list_engines() -> list[str]:
    """Return the names of all engines but the databases, which are named by URLs."""
    return [name for name in ENGINES if name != DATABASE]
