"""Read the lake without Spark: its tables, their rows, commits and quarantine."""
