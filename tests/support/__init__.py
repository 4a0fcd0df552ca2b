"""What several tests need: gates, tables, processes, services."""
