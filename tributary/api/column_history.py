"""The columns of a table's commits, and how they changed from one commit to the next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from tributary.api.timeline import Commit


@dataclass(frozen=True)
class ColumnChange:
    """A column that came, went or got another type in a commit. None: there was, or is, no such column.

    completed  when the commit was completed, UTC
    """

    instant: str
    completed: datetime
    column: str
    before: str | None
    after: str | None


def columns_of(commit: Commit) -> Mapping[str, str]:
    """Return the types of the commit's columns by name. Empty if the commit does not tell."""
    if commit.schema is None:
        return {}
    fields: list[dict[str, Any]] = json.loads(commit.schema)["fields"]
    return {field["name"]: type_text(field["type"]) for field in fields}


def column_changes(commits: Sequence[Commit]) -> Iterator[ColumnChange]:
    """Yield the changes between the commits, which are sorted from the newest to the oldest."""
    known = [(commit, found) for commit in commits if (found := columns_of(commit))]
    for (now, new), (_, old) in pairwise(known):
        for name in {**new, **old}:
            if old.get(name) != new.get(name):
                yield ColumnChange(now.instant, now.completed, name, old.get(name), new.get(name))


def type_text(avro: Any) -> str:
    """Return an Avro type in a few words, such as `decimal(10, 2)` or `array of string`."""
    match avro:
        case list():
            return " or ".join(type_text(one) for one in avro if one != "null")
        case {"logicalType": "decimal", "precision": precision}:
            return f"decimal({precision}, {avro.get('scale', 0)})"
        case {"logicalType": str(logical)}:
            return logical
        case {"type": "array", "items": items}:
            return f"array of {type_text(items)}"
        case {"type": "map", "values": values}:
            return f"map of {type_text(values)}"
        case {"type": str(name)}:
            return name
        case _:
            return str(avro)
