"""The record of a derived table: what its rows follow from. The commit with the rows also has the record.

This module imports no PySpark, so that a reader of the timeline does not need it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from spark_app.ledger.ledger import LEDGER_KEY, RETYPED_KEY, Ledger

RECORD_KEY = f"{LEDGER_KEY}.derivation"
"""The metadata key of the record. Such a commit also has `LEDGER_KEY`, for those who list commits."""

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Record:
    """What a commit records about the state of its derived table.

    digest      of the query
    number      of the commit: one more than the last one's. It orders the versions of a row.
    buckets     that hold the rows; None before the table is written
    inputs      for tables: the instant of each input, by its name in the lake
    generation  for streams: how many times the table was derived from the beginning of its topics
    batch       for streams: the last batch of this generation in the table
    offsets     for streams: the next offset of each partition after that batch, by topic
    """

    digest: str
    number: int
    buckets: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    generation: int | None = None
    batch: int | None = None
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"version": FORMAT_VERSION, **asdict(self)}, separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Record | None:
        """Return the record; None for one of another version, whose table begins again."""
        found = json.loads(text)
        return Record(**found) if found.pop("version", None) == FORMAT_VERSION else None


def commit_metadata(
    record: Record, topic: str, events: int, deletes: int, retyped: tuple[str, ...] | None = None
) -> Mapping[str, str]:
    """Return the metadata of a commit.

    `retyped`: the columns that have other types than before, if the commit replaces all files; else None."""
    positions = {int(partition): offset for partition, offset in record.offsets.get(topic, {}).items()}
    ledger = Ledger(topic=topic, positions=positions, events=events, deletes=deletes)
    metadata = {LEDGER_KEY: ledger.to_json(), RECORD_KEY: record.to_json()}
    return metadata if retyped is None else {**metadata, RETYPED_KEY: json.dumps(list(retyped))}
