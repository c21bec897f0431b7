"""The SQL that computes the comparable form of each type of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.engines.forms import (
    BITS,
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    TIME_OF_DAY,
    Readable,
)


def readable(data_type: str, column_type: str, *, is_nullable: bool) -> Readable | None:
    """Return how a column's values are compared, or None if they cannot be compared exactly.

    data_type    as information_schema.COLUMNS has it, such as `bigint`
    column_type  likewise, such as `bigint(20) unsigned`
    """
    if data_type == "bigint" and "unsigned" in column_type:
        return Readable(NUMBER, lambda column: f"CAST({column} AS CHAR)")
    if data_type == "bit" and column_type in ("bit(1)", "bit"):
        return Readable(BOOLEAN, lambda column: f"{column} + 0 = 1")
    found = _BY_TYPE.get(data_type)
    if found is None or is_nullable or data_type not in _WITH_ZERO:
        return found
    # Debezium sends a zero date as NULL, or, if the column has no NULL, as the first moment of 1970.
    return Readable(found.form, lambda column: f"coalesce({found.expression(column)}, 0)")


_WITH_ZERO = ("date", "datetime", "timestamp")
"""Types with zero values, such as 0000-00-00."""

_INTEGER = Readable(INTEGER, lambda column: f"{column} + 0")
# As text, a float has six digits only. A double has all of them.
_FLOAT = Readable(FLOAT, lambda column: f"{column} + 0e0")
_NUMBER = Readable(
    NUMBER,
    lambda column: (
        f"CASE WHEN {column} LIKE '%.%' THEN trim(TRAILING '.' FROM trim(TRAILING '0' FROM {column})) "
        f"ELSE CAST({column} AS CHAR) END"
    ),
)
_TEXT = Readable(TEXT, lambda column: f"CONVERT({column} USING utf8mb4)")
_BYTES = Readable(BYTES, lambda column: column)
_DATE = Readable(DATE, lambda column: f"to_days(nullif({column}, 0)) - to_days('1970-01-01')")
_MOMENT = Readable(
    MOMENT, lambda column: f"timestampdiff(MICROSECOND, '1970-01-01 00:00:00', nullif({column}, 0))"
)
_TIME = Readable(TIME_OF_DAY, lambda column: f"CAST(CAST({column} AS TIME(6)) AS CHAR)")
_BITS = Readable(BITS, lambda column: f"trim(LEADING '0' FROM bin({column} + 0))")

_BY_TYPE: Mapping[str, Readable] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), _INTEGER),
    **dict.fromkeys(("float", "double"), _FLOAT),
    "decimal": _NUMBER,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"), _TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _BYTES),
    "date": _DATE,
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
    "time": _TIME,
    "bit": _BITS,
    "uuid": Readable(TEXT, lambda column: f"CAST({column} AS CHAR)"),
}
"""By information_schema.COLUMNS.DATA_TYPE. MySQL's JSON has no exact form: a snapshot and the log write the
same document with other blanks."""
