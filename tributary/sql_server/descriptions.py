"""Tables as MySQL describes them to tools that ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_STATUS = (
    *("Name", "Engine", "Version", "Row_format", "Rows", "Avg_row_length", "Data_length", "Max_data_length"),
    *("Index_length", "Data_free", "Auto_increment", "Create_time", "Update_time", "Check_time"),
    *("Collation", "Checksum", "Create_options", "Comment"),
)
"""The columns of SHOW TABLE STATUS, by MySQL's manual."""


_NO_ROWS: tuple[Sequence[str], ...] = ()
SHOWN: Mapping[str, tuple[Sequence[Sequence[str]], Sequence[str]]] = {
    "ENGINES": (
        (("Hudi", "DEFAULT", "Tables of the lake, which can only be read", "NO", "NO", "NO"),),
        ("Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"),
    ),
    "CHARACTER SET": (
        (("utf8mb4", "UTF-8 Unicode", "utf8mb4_general_ci", "4"),),
        ("Charset", "Description", "Default collation", "Maxlen"),
    ),
    "COLLATION": (
        (("utf8mb4_general_ci", "utf8mb4", "45", "Yes", "Yes", "1"),),
        ("Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"),
    ),
    "PLUGINS": (_NO_ROWS, ("Name", "Status", "Type", "Library", "License")),
    "PRIVILEGES": ((("Select", "Tables", "To retrieve rows"),), ("Privilege", "Context", "Comment")),
}
"""The rows and columns of SHOW commands whose answers are the same for every lake, by MySQL's manual."""


def create_table(table: str, columns: Mapping[str, str]) -> str:
    """Return the statement that would create a table in MySQL. `columns` are types by name."""
    lines = ",\n".join(f"  {_quoted(name)} {type_} DEFAULT NULL" for name, type_ in columns.items())
    return f"CREATE TABLE {_quoted(table)} (\n{lines}\n) ENGINE=Hudi DEFAULT CHARSET=utf8mb4"


def table_status(tables: Iterable[str]) -> tuple[Sequence[Sequence[str | None]], Sequence[str]]:
    """Return the rows and columns of SHOW TABLE STATUS. Nothing is counted for it."""
    more = [None] * (len(_STATUS) - 3)
    return [(table, "Hudi", *more, "") for table in tables], _STATUS


def is_like(text: str, pattern: str) -> bool:
    """Tell whether the text matches MySQL's pattern, in which % stands for any text and _ for a character."""
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(one, re.escape(one)) for one in pattern), text) is not None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
