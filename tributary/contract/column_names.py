"""Knows which names a column can have in a lake table."""

from __future__ import annotations

import re

HUDI_PREFIX = "_hoodie_"
"""Begins the names of Hudi's own columns."""

ALLOWED = f"letters from A to Z, digits and underscores, no digit in front, and not {HUDI_PREFIX} there"

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_column_name(name: str) -> bool:
    """Whether a lake table can have a column of that name: Hudi's schemas are Avro's (its specification,
    "Names"). Java takes other letters too, but then hudi-rs and others cannot read the table."""
    return _AVRO_NAME.fullmatch(name) is not None and not name.startswith(HUDI_PREFIX)
