"""The record of a table that is verified again and again: its parts, and when each was proven equal.

The record is a small file on the lake's storage, beside those of online snapshots.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from connectors.engines.checksums import Between, Bucket, KeyValues, Part
from tributary.contract.naming import LakeNames
from tributary.contract.table_name import TableName
from tributary.operations.text_files import delete_file, read_texts, write_text

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

RECORDS_FOLDER = "_verified"
"""The folder in the quarantine bucket. No source's name begins with an underscore."""

_FORMAT = 2
_WITH_OTHER_BUCKETS = 1
"""A format in which a row's bucket was told by an MD5. It is the same for ranges of keys."""


@dataclass(frozen=True)
class FoundRow:
    """A row that differs: its key, the kind of difference, and both values of columns that differ, as texts.

    kind   `missing`, `extra`, `repeated` or `changed`
    cells  by column the value in the database and that in the lake
    """

    key: Mapping[str, str]
    kind: str
    cells: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class CheckedPart:
    """The state of one part of a table.

    upto         the last key of the part; None for the last part, and for a bucket
    rows         in the lake
    equal_us     a time, in microseconds since 1970, as of which the lake's part equals the database's
    fingerprint  of the lake's part when it was found equal; None: it has to be checked again
    differences  the number of rows that differ since then; `found` has some of them
    in_flight    the number of rows that changed whenever they were looked at, so that they were not judged
    """

    upto: KeyValues | None = None
    rows: int = 0
    equal_us: int | None = None
    fingerprint: str | None = None
    differences: int = 0
    in_flight: int = 0
    found: tuple[FoundRow, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The state of a table.

    order     the key columns by which its parts are ranges; empty: its parts are buckets of the key
    columns   identifies the columns that are compared
    state     of the lake's table at the last look (`LakeRows.state`)
    looked_us when the last round looked at the table
    problem   why the last round could not look at it, as a sentence
    repair_us when it was to be read again because of these differences; None: it was not
    cause     of the differences, probably
    quarantined  how many of its events are in quarantine, so that they may be the cause
    uncompared  columns that are not compared
    database_seconds, seconds  of the last round: how long the database worked, and the whole round
    """

    table: TableName
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    columns: str = ""
    parts: tuple[CheckedPart, ...] = ()
    state: str | None = None
    looked_us: int = 0
    problem: str | None = None
    repair_us: int | None = None
    cause: str | None = None
    quarantined: int = 0
    uncompared: tuple[str, ...] = ()
    checked_rows: int = 0
    database_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def equal_us(self) -> int | None:
        """The time as of which the whole table equals the database; None: not all of it was checked yet."""
        times = [part.equal_us for part in self.parts]
        return min((one for one in times if one is not None), default=None) if None not in times else None

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def rows_proven(self) -> int:
        """The number of the lake's rows in parts that were ever found equal, and do not differ since."""
        return sum(part.rows for part in self.parts if part.equal_us is not None and not part.differences)

    @property
    def differences(self) -> int:
        return sum(part.differences for part in self.parts)

    @property
    def in_flight(self) -> int:
        return sum(part.in_flight for part in self.parts)

    @property
    def found(self) -> tuple[FoundRow, ...]:
        return tuple(row for part in self.parts for row in part.found)

    def places(self) -> tuple[Part, ...]:
        """Return the parts of the table, in the order of `parts`."""
        if not self.order:
            return tuple(Bucket(self.key, number, len(self.parts)) for number in range(len(self.parts)))
        ends = [part.upto for part in self.parts]
        return tuple(
            Between(self.order, after, upto) for after, upto in zip([None, *ends[:-1]], ends, strict=True)
        )

    def with_part(self, place: int, part: CheckedPart) -> Verification:
        return replace(self, parts=(*self.parts[:place], part, *self.parts[place + 1 :]))


def verification_name(table_path: str) -> str:
    """Return the path of a table's record below the quarantine location (`LakeNames.table_path`)."""
    return f"{RECORDS_FOLDER}/{table_path}.json"


def to_json(found: Verification) -> str:
    return json.dumps({"format": _FORMAT, **asdict(found), "table": str(found.table)})


def from_json(text: str) -> Verification | None:
    """Parse a record. Return None for a text of another format: that table is checked from the beginning."""
    try:
        found: dict[str, Any] = json.loads(text)
        form = found.pop("format")
        if form != _FORMAT and not (form == _WITH_OTHER_BUCKETS and found["order"]):
            return None
        parts = tuple(
            CheckedPart(
                **{
                    **part,
                    "upto": None if part["upto"] is None else tuple(part["upto"]),
                    "found": tuple(_found_row(row) for row in part["found"]),
                }
            )
            for part in found.pop("parts")
        )
        for name in ("key", "order", "uncompared"):
            found[name] = tuple(found[name])
        return Verification(**{**found, "table": TableName.parse(found["table"]), "parts": parts})
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _found_row(row: Mapping[str, Any]) -> FoundRow:
    return FoundRow(row["key"], row["kind"], {name: (old, new) for name, (old, new) in row["cells"].items()})


@dataclass(frozen=True)
class VerificationFiles:
    """The records below `location`, the quarantine bucket, or bucket and prefix."""

    filesystem: S3FileSystem
    names: LakeNames
    location: str

    def read(self) -> Mapping[TableName, Verification]:
        """Return the records of all tables."""
        found = map(from_json, read_texts(self.filesystem, f"{self.location}/{RECORDS_FOLDER}"))
        return {one.table: one for one in found if one is not None}

    def write(self, found: Verification) -> None:
        write_text(self.filesystem, self._path(found.table), to_json(found))

    def remove(self, table: TableName) -> None:
        delete_file(self.filesystem, self._path(table))

    def _path(self, table: TableName) -> str:
        return f"{self.location}/{verification_name(self.names.table_path(table))}"
