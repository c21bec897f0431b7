"""Tables as MySQL describes them to tools that ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_STATUS = (
    *("Name", "Engine", "Version", "Row_format", "Rows", "Avg_row_length", "Data_length", "Max_data_length"),
    *("Index_length", "Data_free", "Auto_increment", "Create_time", "Update_time", "Check_time"),
    *("Collation", "Checksum", "Create_options", "Comment"),
)
"""The columns of SHOW TABLE STATUS, by MySQL's manual."""


def create_table(table: str, columns: Mapping[str, str]) -> str:
    """Return the statement that would create a table in MySQL. `columns` are types by name."""
    lines = ",\n".join(f"  {_quoted(name)} {type_} DEFAULT NULL" for name, type_ in columns.items())
    return f"CREATE TABLE {_quoted(table)} (\n{lines}\n) ENGINE=Hudi DEFAULT CHARSET=utf8mb4"


def table_status(tables: Iterable[str]) -> tuple[Sequence[Sequence[str | None]], Sequence[str]]:
    """Return the rows and columns of SHOW TABLE STATUS. Nothing is counted for it."""
    more = [None] * (len(_STATUS) - 3)
    return [(table, "Hudi", *more, "") for table in tables], _STATUS


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
