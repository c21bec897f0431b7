"""Read a lake from Python, without Spark: its tables, their rows, commits and quarantine.

Start with `tributary.open_lake`. The command line reads the lake with the same functions.
"""
