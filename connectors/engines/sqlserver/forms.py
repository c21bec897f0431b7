"""The SQL that computes the comparable form of each type of SQL Server."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.engines.forms import (
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


def readable(data_type: str) -> Readable | None:
    """Return how the values of a type, such as `bigint`, are compared; None if they cannot be exactly."""
    return _BY_TYPE.get(data_type)


def _trimmed(digits: str) -> str:
    """Remove zeros behind the last digit after the point, and a point behind the last digit.

    Only a blank can be removed from a text's end alone. So each character is one for a moment."""
    without_zeros = f"REPLACE(RTRIM(REPLACE({digits}, '0', ' ')), ' ', '0')"
    without_point = f"REPLACE(RTRIM(REPLACE({without_zeros}, '.', ' ')), ' ', '.')"
    return f"CASE WHEN CHARINDEX('.', {digits}) > 0 THEN {without_point} ELSE {digits} END"


def _micros(moment: str) -> str:
    # It counts the borders of microseconds in between, so it rounds down, before 1970 too.
    return f"DATEDIFF_BIG(microsecond, CAST('1970-01-01' AS datetime2(7)), {moment})"


_INTEGER = Readable(INTEGER, lambda column: f"CAST({column} AS bigint)")
_NUMBER = Readable(NUMBER, lambda column: _trimmed(f"CONVERT(varchar(60), {column})"))
# Style 2: all four places, and no commas.
_MONEY = Readable(NUMBER, lambda column: _trimmed(f"CONVERT(varchar(60), {column}, 2)"))
_FLOAT = Readable(FLOAT, lambda column: f"CAST({column} AS float)")
_TEXT = Readable(TEXT, lambda column: f"CAST({column} AS nvarchar(max))")
_BYTES = Readable(BYTES, lambda column: f"CAST({column} AS varbinary(max))")

_BY_TYPE: Mapping[str, Readable] = {
    "bit": Readable(BOOLEAN, lambda column: column),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER),
    **dict.fromkeys(("decimal", "numeric"), _NUMBER),
    **dict.fromkeys(("money", "smallmoney"), _MONEY),
    **dict.fromkeys(("real", "float"), _FLOAT),
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "text", "ntext"), _TEXT),
    "uniqueidentifier": Readable(TEXT, lambda column: f"CAST({column} AS char(36))"),
    **dict.fromkeys(("binary", "varbinary", "image", "timestamp"), _BYTES),
    "date": Readable(DATE, lambda column: f"DATEDIFF(day, CAST('1970-01-01' AS date), {column})"),
    # Java's driver rounds the three hundredths of a second of a datetime to milliseconds, as this does.
    "datetime": Readable(MOMENT, lambda column: _micros(f"CAST({column} AS datetime2(3))")),
    **dict.fromkeys(
        ("smalldatetime", "datetime2"),
        Readable(MOMENT, lambda column: _micros(f"CAST({column} AS datetime2(7))")),
    ),
    "datetimeoffset": Readable(
        MOMENT, lambda column: _micros(f"CAST(SWITCHOFFSET({column}, '+00:00') AS datetime2(7))")
    ),
    "time": Readable(
        TIME_OF_DAY, lambda column: f"LEFT(CONVERT(varchar(16), CAST({column} AS time(7)), 121), 15)"
    ),
}
"""By the type's name in sys.types. XML has no exact form, because the server keeps it parsed and writes it in
its own way."""
