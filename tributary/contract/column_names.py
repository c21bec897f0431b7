"""The names that a column can have in a lake table."""

from __future__ import annotations

import re

HUDI_PREFIX = "_hoodie_"
"""The prefix of Hudi's own columns."""

ALLOWED = f"letters A to Z, digits and underscores, not beginning with a digit or {HUDI_PREFIX}"

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_column_name(name: str) -> bool:
    """Tell whether a lake table can have a column with this name.

    Hudi's schemas follow Avro's rules (Avro specification, "Names"). Java accepts other letters too, but then
    hudi-rs and others cannot read the table.
    """
    return _AVRO_NAME.fullmatch(name) is not None and not name.startswith(HUDI_PREFIX)
