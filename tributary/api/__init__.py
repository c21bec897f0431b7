"""Read a lake from Python, without Spark: its tables, their rows, commits and quarantine.

`tributary.open_lake` is the way in; the command reads the lake with the same functions.
"""
