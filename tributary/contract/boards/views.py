"""Views of a board: queries in files of their own that the SQL of its tiles can name like tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """A query with the name under which tiles know it. `file` is where it was read from."""

    name: str
    file: str
    sql: str


def with_views(sql: str, views: Sequence[View]) -> str:
    """Return the statement with the views that it names, directly or through another view.

    A view can name the views before it. The others stay out, because each one costs the reading of tables.
    """
    needed: list[View] = []
    for view in reversed(views):
        if any(_names(text, view.name) for text in (sql, *(other.sql for other in needed))):
            needed.insert(0, view)
    if not needed:
        return sql
    # On lines of their own, because the last line of a query can be a comment.
    queries = ", ".join(f"{view.name} AS (\n{without_end(view.sql)}\n)" for view in needed)
    return f"WITH {queries}\nSELECT * FROM (\n{without_end(sql)}\n)"


def _names(sql: str, view: str) -> bool:
    return re.search(rf"(?<!\w){view}(?!\w)", sql, re.IGNORECASE) is not None


def without_end(sql: str) -> str:
    """Return a statement without its semicolon, to be put into another one."""
    return sql.rstrip().removesuffix(";")
