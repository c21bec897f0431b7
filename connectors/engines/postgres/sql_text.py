"""Names and texts in SQL that every client sends unchanged, psql and the RDS Data API too."""

from __future__ import annotations

from collections.abc import Iterable

IS_OF_KEY = "a.attnum IN (SELECT i.indkey[k] FROM generate_series(0, i.indnkeyatts - 1) AS k)"
"""Holds for a column, a, of the key of an index, i. An index can include more columns than its key has."""


def like(wildcard: str) -> str:
    """Return a pattern with `*` and `?` as a literal for LIKE."""
    escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in wildcard)
    return literal(escaped.replace("*", "%").replace("?", "_"))


def literals(texts: Iterable[str]) -> str:
    """Return a list for IN. SQL has no empty list, so an empty one becomes a text that equals no name."""
    return ", ".join(map(literal, texts)) or "''"


def literal(text: str) -> str:
    """Return a literal that reads the same everywhere, even between dollar quotes.

    It contains no colon and no question mark, because some clients read these as parameters.
    """
    quoted = text.replace("'", "''")
    if not any(character in quoted for character in "\\$:?"):
        return f"'{quoted}'"
    escaped = quoted.replace("\\", "\\\\")
    for character in "$:?":
        escaped = escaped.replace(character, f"\\x{ord(character):x}")
    return f"E'{escaped}'"


def identifier(name: str) -> str:
    """Return a name in quotes, without a colon."""
    quoted = '"' + name.replace('"', '""') + '"'
    if ":" not in name:
        return quoted
    return "U&" + quoted.replace("\\", "\\\\").replace(":", "\\003a")


def comment(text: str) -> str:
    """Return a text for a comment: one line without a colon."""
    return " ".join(text.replace(":", " ").split())
