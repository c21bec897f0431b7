"""SQL texts that MySQL and MariaDB read alike, whatever their `sql_mode` is."""

from __future__ import annotations


def identifier(*names: str) -> str:
    """Return a quoted name, with the names that qualify it before it."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    """Return a text. It must have no backslash, which some modes of SQL read as an escape."""
    if "\\" in text:
        raise ValueError(f"a text with a backslash: {text!r}")
    return "'" + text.replace("'", "''") + "'"


def database_pattern(wildcard: str) -> str:
    """Return the quoted name in a GRANT for all databases that match a pattern with `*` and `?`.

    A GRANT reads `%` and `_` in a database's name as wildcards."""
    escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in wildcard)
    return identifier(escaped.replace("*", "%").replace("?", "_"))
