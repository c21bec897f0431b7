"""Progress: what the app reports while it runs, one JSON object a line on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, ClassVar, TextIO

from spark_app.ledger.ledger import SourceTimes
from tributary.contract.remedies import Remedies, remedies_as_json


@dataclass(frozen=True)
class Freshness:
    """From the source's commit of a change to the lake's, in milliseconds, over the streamed changes of a
    commit."""

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
class Started:
    event: ClassVar[str] = "started"
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Committed:
    """`at`: when the commit was complete. `rows`: upserted; `positions`: the next offsets, by partition.

    `phases`: what part of the `seconds` was for what, by name."""

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
    """All events that the source held when it was last asked are in the table."""

    event: ClassVar[str] = "caught_up"
    table: str


@dataclass(frozen=True)
class Failed:
    """An attempt has failed and another will be made."""

    event: ClassVar[str] = "failed"
    table: str
    error: str
    attempt: int
    retry_in_seconds: float


@dataclass(frozen=True)
class Blocked:
    """The table stays as it is until a person does something; its events are unread, not lost."""

    event: ClassVar[str] = "blocked"
    table: str
    error: str
    remedies: Remedies = ()


@dataclass(frozen=True)
class Replayed:
    """What became of a table's quarantined events: those that were applied now, and those left in
    quarantine."""

    event: ClassVar[str] = "replayed"
    table: str
    applied: int
    left: int


@dataclass(frozen=True)
class Serviced:
    """The table's services have run: its log files are merged, what is older than its history is gone."""

    event: ClassVar[str] = "serviced"
    table: str
    seconds: float


@dataclass(frozen=True)
class Cataloged:
    """The catalog shows the table as it is, under `name`, with so many partitions."""

    event: ClassVar[str] = "cataloged"
    table: str
    name: str
    partitions: int


@dataclass(frozen=True)
class CatalogFailed:
    """The catalog does not show the table as it is; the table has all its rows nevertheless. No
    `retry_in_seconds` where another attempt would end alike."""

    event: ClassVar[str] = "catalog_failed"
    table: str
    error: str
    attempt: int
    retry_in_seconds: float | None


@dataclass(frozen=True)
class Stopped:
    """The end of the run: what each table is left with, "ok" or an error; and the tables that the catalog
    does not show as they are, with the reason."""

    event: ClassVar[str] = "stopped"
    tables: Mapping[str, str]
    not_in_catalog: Mapping[str, str] = field(default_factory=dict)


Report = (
    Started
    | Committed
    | CaughtUp
    | Failed
    | Blocked
    | Replayed
    | Serviced
    | Cataloged
    | CatalogFailed
    | Stopped
)


class ProgressWriter:
    """Writes reports as they come, whole lines also from several threads."""

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
