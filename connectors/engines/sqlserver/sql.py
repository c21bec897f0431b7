"""SQL texts that SQL Server reads alike, whatever the session's options are."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(*names: str) -> str:
    """Return a quoted name, with the names that qualify it before it."""
    return ".".join("[" + name.replace("]", "]]") + "]" for name in names)


def literal(text: str) -> str:
    """Return a text of Unicode."""
    return "N'" + text.replace("'", "''") + "'"


def like(wildcard: str) -> str:
    """Return the pattern of LIKE, as a literal, for a pattern with `*` and `?`.

    In a pattern of LIKE, `%`, `_` and `[` have a meaning of their own; brackets around one take it away."""
    own = {"*": "%", "?": "_"}
    return literal("".join(own.get(each, f"[{each}]" if each in "%_[" else each) for each in wildcard))


def any_of(conditions: Iterable[str]) -> str:
    """Return a condition that holds if one of the conditions does; with none of them, one that never does."""
    found = " OR ".join(f"({condition})" for condition in conditions)
    return f"({found})" if found else "(1 = 0)"
