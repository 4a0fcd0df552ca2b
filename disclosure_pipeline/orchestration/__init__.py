"""The gate in Dagster: asset bodies load, call and return with metadata; they calculate nothing."""
