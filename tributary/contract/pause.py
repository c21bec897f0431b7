"""A pause of one table: the Spark app leaves the table as it is, until somebody resumes it.

Its record is a small file on the lake's storage. The side that pauses writes it, and the Spark app reads it.
The table's position stays in its last commit, so it continues where it was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tributary.contract.table_name import NotATableName, TableName

PAUSES_FOLDER = "_paused"
"""The folder in the quarantine bucket that has the records. No source's name begins with an underscore."""

_SUFFIX = ".json"


@dataclass(frozen=True)
class Pause:
    """A paused table, and since when, in ISO 8601."""

    table: TableName
    since: str


def pause_name(table_path: str) -> str:
    """Return the path of a table's record below the quarantine location (`LakeNames.table_path`)."""
    return f"{PAUSES_FOLDER}/{table_path}{_SUFFIX}"


def to_json(pause: Pause) -> str:
    return json.dumps({"table": str(pause.table), "since": pause.since}, indent=2)


def from_json(text: str) -> Pause | None:
    """Parse a record. Return None for a text that is none."""
    try:
        found = json.loads(text)
        return Pause(TableName.parse(found["table"]), str(found["since"]))
    except (KeyError, NotATableName, TypeError, ValueError):
        return None
