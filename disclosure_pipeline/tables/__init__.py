"""From tables to integer codes that mean the same in every table, or a refusal that says why."""
