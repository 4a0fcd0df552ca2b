"""Gates, tables, processes and services that several tests need."""
