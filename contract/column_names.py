"""Knows which names a column can have in a lake table."""

from __future__ import annotations

HUDI_PREFIX = "_hoodie_"
"""Begins the names of Hudi's own columns."""

ALLOWED = f"letters, digits and underscores, no digit in front, and not {HUDI_PREFIX} there"


def is_column_name(name: str) -> bool:
    """Whether a lake table can have a column of that name: Hudi's schemas are Avro's, whose names are made of
    what Java takes for letters and digits (org.apache.avro.Schema#validateName)."""
    is_avro = all(char == "_" or char.isalpha() or char.isdecimal() for char in name)
    return bool(name) and is_avro and not name[0].isdecimal() and not name.startswith(HUDI_PREFIX)
