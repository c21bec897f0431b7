"""An online snapshot: the source's connector reads one table again, while it keeps streaming all tables.

Its record is a small file on the lake's storage. Only the side that asks for snapshots writes it. The Spark
app reads it, and tells in the table's ledger what it has applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from tributary.contract.table_name import NotATableName, TableName

RECORDS_FOLDER = "_snapshots"
"""The folder in the quarantine bucket that has the records. No source's name begins with an underscore."""

_SUFFIX = ".json"


@dataclass(frozen=True)
class Request:
    """Why and since when a table is to be read again.

    id            unique among all snapshots
    reasons       sentences for a person
    requested_us  in microseconds since 1970
    condition     if given, only the rows for which this SQL holds are read, and no row is removed
    """

    id: str
    table: TableName
    reasons: tuple[str, ...]
    requested_us: int
    condition: str | None = None


@dataclass(frozen=True)
class Noticed:
    """The table differs from its source. The lake file leaves it to a person to ask for a snapshot."""

    state: ClassVar[str] = "noticed"
    request: Request


@dataclass(frozen=True)
class Requested:
    """The connector does not know of the snapshot yet."""

    state: ClassVar[str] = "requested"
    request: Request


@dataclass(frozen=True)
class Reading:
    """The connector reads the table, or is about to.

    topic_id           the id of the table's topic; None if it has no topic yet
    began              by partition, the end of the topic before the connector was told
    notifications_end  the end of the source's notification topic at that time
    fingerprint        of the table's definition at that time
    rows, total        how many of the rows have been read, at least; 0 while that is unknown
    """

    state: ClassVar[str] = "reading"
    request: Request
    topic_id: str | None
    began: Mapping[int, int]
    notifications_end: int
    fingerprint: str
    rows: int = 0
    total: int = 0


@dataclass(frozen=True)
class Read:
    """Kafka holds all reads. The table has yet to apply them, and to remove the rows that are gone.

    ended  by partition, an end of the topic after the last read
    """

    state: ClassVar[str] = "read"
    request: Request
    topic_id: str | None
    began: Mapping[int, int]
    ended: Mapping[int, int]


@dataclass(frozen=True)
class Failed:
    """The connector could not read the table. `problem` is a sentence for a person."""

    state: ClassVar[str] = "failed"
    request: Request
    problem: str


Record = Noticed | Requested | Reading | Read | Failed


def record_name(table_path: str) -> str:
    """Return the path of a table's record below the quarantine location (`LakeNames.table_path`)."""
    return f"{RECORDS_FOLDER}/{table_path}{_SUFFIX}"


def to_json(record: Record) -> str:
    request = {**asdict(record.request), "table": str(record.request.table)}
    values = {name: value for name, value in vars(record).items() if name != "request"}
    return json.dumps({"state": record.state, "request": request, **values}, indent=2)


def from_json(text: str) -> Record | None:
    """Parse a record. Return None for a text of another version: that snapshot has to be asked for again."""
    try:
        found: dict[str, Any] = json.loads(text)
        asked = found.pop("request")
        request = Request(
            **{**asked, "table": TableName.parse(asked["table"]), "reasons": tuple(asked["reasons"])}
        )
        variant = _VARIANTS[found.pop("state")]
        for name in ("began", "ended"):
            if name in found:
                found[name] = {int(partition): offset for partition, offset in found[name].items()}
        return variant(request=request, **found)
    except (AttributeError, KeyError, NotATableName, TypeError, ValueError):
        return None


_VARIANTS: Mapping[str, type[Record]] = {
    variant.state: variant for variant in (Noticed, Requested, Reading, Read, Failed)
}
