"""The gate in Dagster. Asset bodies load, call and return with metadata; they calculate nothing."""
