"""A table's name in Tributary: source, schema and table, written `shop.public.orders`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tributary.contract.errors import TributaryError

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


class NotATableName(TributaryError):
    """A text that is not `source.schema.table`."""


@dataclass(frozen=True, order=True)
class TableName:
    """One table of one source. `parse(str(name)) == name` for every name, even with dots or quotes."""

    source: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(_quoted_where_needed(part) for part in (self.source, self.schema, self.table))

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse a table's name. A part with a dot or a quote is in double quotes, as in SQL.

        Raises NotATableName.
        """
        parts = _parts(text)
        if len(parts) != 3:
            raise NotATableName(
                "not the name of a table",
                found=repr(text),
                expected='source.schema.table, such as shop.public.orders or shop.public."odd.name"',
            )
        return cls(*parts)


def _parts(text: str) -> list[str]:
    """Return the unquoted parts of a dotted name, or no parts if the text is malformed."""
    parts: list[str] = []
    position = 0
    while match := _PART.match(text, position):
        quoted, plain = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain)
        position = match.end()
        if position == len(text):
            return parts
        if text[position] != ".":
            return []
        position += 1
    return []


def _quoted_where_needed(part: str) -> str:
    if "." in part or '"' in part or not part:
        return '"' + part.replace('"', '""') + '"'
    return part
