"""A person's decision about an orphan, which is a table that its source no longer has: keep or remove it.

The record is a small file on the lake's storage. The side that decides writes it. The Spark app reads it, and
takes no events of a removed table, whose topic may stay in Kafka for days.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from tributary.contract.table_name import NotATableName, TableName

ORPHANS_FOLDER = "_orphans"
"""The folder in the quarantine bucket that has the records. No source's name begins with an underscore."""

Decision = Literal["kept", "removed"]

_SUFFIX = ".json"


@dataclass(frozen=True)
class DecidedOrphan:
    """An orphan that somebody has kept or removed.

    topic  of its events; None if it is unknown
    since  when the decision was taken, in ISO 8601
    """

    table: TableName
    decision: Decision
    topic: str | None
    since: str


def orphan_name(table_path: str) -> str:
    """Return the path of a table's record below the quarantine location (`LakeNames.table_path`)."""
    return f"{ORPHANS_FOLDER}/{table_path}{_SUFFIX}"


def to_json(orphan: DecidedOrphan) -> str:
    return json.dumps({**asdict(orphan), "table": str(orphan.table)}, indent=2)


def from_json(text: str) -> DecidedOrphan | None:
    """Parse a record. Return None for a text that is none."""
    try:
        found = json.loads(text)
        if found["decision"] not in get_args(Decision):
            return None
        topic = found["topic"]
        return DecidedOrphan(
            TableName.parse(found["table"]),
            found["decision"],
            None if topic is None else str(topic),
            str(found["since"]),
        )
    except (KeyError, NotATableName, TypeError, ValueError):
        return None
