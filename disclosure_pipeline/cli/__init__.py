"""The command line: `disclosure-pipeline`."""
