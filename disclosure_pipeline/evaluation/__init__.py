"""From two tables to figures: the public functions that measure disclosure."""
