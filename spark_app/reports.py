"""The reports of a running app, written to standard output as one JSON object a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from spark_app.ledger.ledger import SourceTimes
from tributary.contract.acceleration import Acceleration
from tributary.contract.remedies import Remedies, remedies_as_json

if TYPE_CHECKING:  # Whoever reads a report needs no PySpark.
    from spark_app.steps.steps import Name


@dataclass(frozen=True)
class Freshness:
    """Milliseconds from the source's commit to the lake's, over the streamed changes of a lake commit."""

    p50: int
    p95: int
    max: int

    @staticmethod
    def of(times: SourceTimes | None, committed_us: int) -> Freshness | None:
        if times is None:
            return None
        return Freshness(
            p50=(committed_us - times.p50) // 1000,
            p95=(committed_us - times.p05) // 1000,
            max=(committed_us - times.min) // 1000,
        )


@dataclass(frozen=True)
class StepsChosen:
    """Which steps the app uses (`spark_app.steps`), why, and which ones the lake file asks for."""

    event: ClassVar[str] = "steps"
    steps: Name
    reason: str
    wanted: Acceleration = "auto"


@dataclass(frozen=True)
class Started:
    event: ClassVar[str] = "started"
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Committed:
    """A commit to a table.

    at         when the commit was complete
    rows       upserted rows
    positions  the next offset of each partition
    phases     the part of `seconds` that each phase took
    """

    event: ClassVar[str] = "commit"
    table: str
    instant: str
    at: str
    events: int
    rows: int
    deletes: int
    quarantined: int
    positions: Mapping[int, int]
    freshness_ms: Freshness | None
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CaughtUp:
    """The table has all events that were in the source at the last poll."""

    event: ClassVar[str] = "caught_up"
    table: str


@dataclass(frozen=True)
class Failed:
    """An attempt failed, and a retry follows."""

    event: ClassVar[str] = "failed"
    table: str
    error: str
    attempt: int
    retry_in_seconds: float


@dataclass(frozen=True)
class Blocked:
    """The table stays as it is until a person does something. Its events are unread, but not lost.

    is_lacking_classes  the running Spark or Hudi lacks a class or a member that the app calls
    is_unchanged        an erasure was refused before it changed anything
    """

    event: ClassVar[str] = "blocked"
    table: str
    error: str
    remedies: Remedies = ()
    is_lacking_classes: bool = False
    is_unchanged: bool = False


@dataclass(frozen=True)
class Paused:
    """Somebody has paused the table. It stays as it is until somebody resumes it."""

    event: ClassVar[str] = "paused"
    table: str


@dataclass(frozen=True)
class Resumed:
    """The table continues after a pause."""

    event: ClassVar[str] = "resumed"
    table: str


@dataclass(frozen=True)
class Replayed:
    """The number of a table's quarantined events that were applied, and of those left in quarantine."""

    event: ClassVar[str] = "replayed"
    table: str
    applied: int
    left: int


@dataclass(frozen=True)
class Serviced:
    """The table's services have run: its log files are merged, and files older than its history are gone."""

    event: ClassVar[str] = "serviced"
    table: str
    seconds: float


@dataclass(frozen=True)
class Erased:
    """Keys are forgotten in bronze, in the table with its history, and in quarantine.

    events       of the keys that were blanked in bronze
    rows         of the table that were removed, such as one whose delete is soft
    quarantined  events that were removed from quarantine
    linked       other keys that rows of these keys had before or got later, as JSON
    unknown      the keys without an event in bronze
    in_stream_until  when the stream of the source has deleted the last record of the keys, at the latest;
                     None: the source has no stream, so Kafka had their events
    """

    event: ClassVar[str] = "erased"
    table: str
    keys: tuple[Mapping[str, str], ...]
    events: int
    rows: int
    quarantined: int
    linked: tuple[str, ...] = ()
    unknown: tuple[Mapping[str, str], ...] = ()
    in_stream_until: str | None = None


@dataclass(frozen=True)
class Trimmed:
    """A table's old events were removed from bronze. `kept_from`: the first offset that is still there."""

    event: ClassVar[str] = "trimmed"
    table: str
    events: int
    kept_from: Mapping[int, int]


@dataclass(frozen=True)
class EventsDeleted:
    """All events of a topic were deleted from bronze."""

    event: ClassVar[str] = "events_deleted"
    topic: str
    events: int


@dataclass(frozen=True)
class BronzeServiced:
    """What was done for one table of bronze as a whole. `table` is its name in the catalog."""

    event: ClassVar[str] = "bronze_serviced"
    table: str
    merged_files: int
    expired_snapshots: int
    orphan_files: int
    seconds: float


@dataclass(frozen=True)
class Cataloged:
    """The table's catalog entry, under `name`, is up to date and has this number of partitions."""

    event: ClassVar[str] = "cataloged"
    table: str
    name: str
    partitions: int


@dataclass(frozen=True)
class CatalogFailed:
    """The table's catalog entry is out of date. The table itself has all its rows.

    `retry_in_seconds` is None if a retry cannot help.
    """

    event: ClassVar[str] = "catalog_failed"
    table: str
    error: str
    attempt: int
    retry_in_seconds: float | None


@dataclass(frozen=True)
class DerivedRow:
    """A changed row of a derived table that is printed: its key and its values as JSON.

    `value` is None for a deleted row."""

    event: ClassVar[str] = "derived_row"
    table: str
    key: str
    value: str | None


@dataclass(frozen=True)
class EventsDropped:
    """Events that are in no row of a derived table.

    late        rows behind the watermark, as Spark counts them: after it combined those of a group in a task
    unreadable  events that are not JSON with the columns' types
    """

    event: ClassVar[str] = "events_dropped"
    table: str
    late: int
    unreadable: int


@dataclass(frozen=True)
class Stopped:
    """The end of the run.

    tables          "ok" or an error for each table
    not_in_catalog  the reason for each table whose catalog entry is out of date
    """

    event: ClassVar[str] = "stopped"
    tables: Mapping[str, str]
    not_in_catalog: Mapping[str, str] = field(default_factory=dict)


Report = (
    StepsChosen
    | Started
    | Committed
    | CaughtUp
    | Failed
    | Blocked
    | Paused
    | Resumed
    | Replayed
    | Serviced
    | Erased
    | Trimmed
    | EventsDeleted
    | BronzeServiced
    | Cataloged
    | CatalogFailed
    | DerivedRow
    | EventsDropped
    | Stopped
)


class ProgressWriter:
    """A writer that prints each report at once as a whole line, also from several threads."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._lock = Lock()

    def write(self, report: Report) -> None:
        line = json.dumps(_as_json(report))
        with self._lock:
            print(line, file=self._out, flush=True)


def _as_json(report: Report) -> Mapping[str, Any]:
    content = {"event": report.event, **asdict(report)}
    if isinstance(report, Blocked):
        content["remedies"] = remedies_as_json(report.remedies)
    return content


def iso_utc(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(timespec="milliseconds")
