"""What a database's catalog says of a table, and which of its changes change rows without an event."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ColumnDefinition:
    """A column.

    identity  stays when the column gets another name
    version   changes when the column's definition does, for example its type
    filled    older rows have the value that the column was added with
    labels    the names of its type's values, by their identities, if the type enumerates them
    """

    name: str
    identity: str
    version: str
    filled: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PartDefinition:
    """A part of a table that is a table itself: a partition.

    identity  stays when the part gets another name
    files     changes when all of its rows are written again
    rows      the condition, in the engine's own language, for the table's rows that are in this part
    came_full it can have been a table of its own before, and holds rows
    """

    name: str
    identity: str
    files: str
    rows: str
    came_full: bool


@dataclass(frozen=True)
class TableDefinition:
    """A table as its database's catalog has it now.

    identity  stays when the table gets another name, and differs if another table has this name
    files     changes when all rows are written again; empty if all rows are in parts
    followed  all rows that it ever got were streamed under this name

    names_identify  the database identifies tables and columns by name only: a renamed column or table looks
                    like one that was dropped and a new one
    taken           what of the table the lake file keeps out of the lake; empty: nothing
    """

    identity: str
    files: str
    columns: tuple[ColumnDefinition, ...]
    parts: tuple[PartDefinition, ...] = ()
    followed: bool = True
    names_identify: bool = False
    taken: str = ""

    @property
    def fingerprint(self) -> str:
        """A digest that differs after every change but one of rows."""
        found = asdict(self)
        del found["followed"]
        if not self.taken:
            del found["taken"]
        for part in found["parts"]:
            del part["came_full"]
        return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:32]

    def to_json(self) -> Any:
        return asdict(self)

    @staticmethod
    def from_json(found: Any) -> TableDefinition:
        """Read what `to_json` returned. Raises KeyError or TypeError if it is of another version."""
        return TableDefinition(
            **{
                **found,
                "columns": tuple(ColumnDefinition(**column) for column in found["columns"]),
                "parts": tuple(PartDefinition(**part) for part in found["parts"]),
            }
        )


@dataclass(frozen=True)
class SilentChanges:
    """What has changed rows without an event.

    reasons    sentences for a person
    condition  holds for all changed rows; None: it can be any row, and rows can be gone
    """

    reasons: tuple[str, ...]
    condition: str | None = None


def silent_changes(before: TableDefinition, now: TableDefinition) -> SilentChanges | None:
    """Return what has changed rows of a table without an event between two looks at its definition.

    None: nothing did. A change of a definition does not always say whether rows were changed. If they may
    have been, the answer is yes."""
    reasons_of = _reasons_by_name if now.names_identify else _reasons_for_all_rows
    hidden = ["the lake file hides other columns or rows of it now"] if before.taken != now.taken else []
    reasons = (*reasons_of(before, now), *hidden)
    new_parts = [part for part in _without(now.parts, before.parts) if part.came_full]
    came = tuple(f"the partition {part.name} came with rows" for part in new_parts)
    if reasons:
        return SilentChanges((*reasons, *came))
    if not came:
        return None
    return SilentChanges(came, " OR ".join(part.rows for part in new_parts))


def _reasons_for_all_rows(before: TableDefinition, now: TableDefinition) -> Iterator[str]:
    if before.identity != now.identity:
        yield "another table has this name now"
        return
    columns: Mapping[str, ColumnDefinition] = {column.identity: column for column in before.columns}
    for column in now.columns:
        was = columns.get(column.identity)
        if was is None and column.filled:
            yield f"the column {column.name} was added with a value for all rows"
        elif was is not None and was.name != column.name:
            yield f"the column {was.name} is called {column.name} now"
        if was is not None:
            for value in sorted(was.labels.keys() & column.labels.keys()):
                old, new = was.labels[value], column.labels[value]
                if old != new:
                    yield f"the value {old} of {column.name} is called {new} now"
    is_redefined = any(
        column.identity not in columns or columns[column.identity].version != column.version
        for column in now.columns
    )
    if is_redefined and _are_rewritten(before, now):
        yield "all rows were written again, for example for a column's new type"
    else:
        files = {part.identity: part.files for part in before.parts}
        for part in now.parts:
            # PostgreSQL publishes a partition's changes as its root's, but no TRUNCATE of a partition alone.
            if files.get(part.identity, part.files) != part.files:
                yield f"the partition {part.name} was truncated, or all of its rows were written again"
    for part in _without(before.parts, now.parts):
        yield f"the partition {part.name} was detached or dropped"


def _reasons_by_name(before: TableDefinition, now: TableDefinition) -> Iterator[str]:
    """Compare two definitions of a database that tells no identities.

    If the files are the same, it is the same table, and only its columns can have changed.
    """
    were = {column.name: column for column in before.columns}
    are = {column.name: column for column in now.columns}
    gone = sorted({were[name].version for name in were.keys() - are.keys()})
    for name in sorted(are.keys() - were.keys()):
        if are[name].filled:
            yield f"the column {name} was added with a value for all rows"
        elif are[name].version in gone:
            yield f"the column {name} came, perhaps another one's new name"
    for name in sorted(are.keys() & were.keys()):
        if are[name].version != were[name].version:
            yield f"the column {name} has another type"
    if before.files != now.files:
        yield "its files were made anew: by an ALTER TABLE, or it is another table with this name"


def _are_rewritten(before: TableDefinition, now: TableDefinition) -> bool:
    files = {part.identity: part.files for part in before.parts}
    are_parts = any(files.get(part.identity, part.files) != part.files for part in now.parts)
    return before.files != now.files or are_parts


def _without(parts: Iterable[PartDefinition], others: Iterable[PartDefinition]) -> list[PartDefinition]:
    known = {part.identity for part in others}
    return [part for part in parts if part.identity not in known]
