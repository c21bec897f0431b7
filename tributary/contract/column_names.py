"""The names that a column can have in a lake table."""

from __future__ import annotations

import re

HUDI_PREFIX = "_hoodie_"
"""The prefix of Hudi's own columns."""

ALLOWED = f"letters A to Z, digits and underscores, not beginning with a digit or {HUDI_PREFIX}"

OWN_COLUMNS = (
    "_key",
    "_op",
    "_seq",
    "_source_ts",
    "_topic",
    "_partition",
    "_offset",
    "_log_position",
    "_deleted",
)
"""The columns that the Spark app adds to a lake table. The last one is only there if deletes are soft."""

ALLOWED_OF_SOURCES = f"{ALLOWED}, and none of {', '.join(OWN_COLUMNS)}"
"""What a column of a source may be called."""

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_column_name(name: str) -> bool:
    """Tell whether a lake table can have a column with this name.

    Hudi's schemas follow Avro's rules (Avro specification, "Names"). Java accepts other letters too, but then
    hudi-rs and others cannot read the table.
    """
    return _AVRO_NAME.fullmatch(name) is not None and not name.startswith(HUDI_PREFIX)


def is_source_column_name(name: str) -> bool:
    """Tell whether a lake table can have a column of its source with this name."""
    return is_column_name(name) and name not in OWN_COLUMNS
