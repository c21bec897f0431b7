"""Continuous verification: checksums of parts of a table, computed in the database and on the lake."""
