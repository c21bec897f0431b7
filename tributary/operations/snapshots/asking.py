"""Ask for online snapshots of tables, and see them through until Kafka holds the tables."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tributary.api.tables import resolve_names
from tributary.contract.online_snapshot import Failed, Reading, Record
from tributary.contract.table_name import TableName
from tributary.operations.kafka_topics import read_table_names
from tributary.operations.snapshots.keeper import (
    SECONDS_BETWEEN_STEPS,
    SnapshotKeeper,
    is_unread,
    record_files,
)
from tributary.operations.snapshots.silent import ask
from tributary.operations.sourced_lake import SourcedLake


@dataclass(frozen=True)
class ReadAgain:
    """The tables that were to be read again.

    failed  why some could not be
    unread  those that the connector still reads, or has yet to read
    """

    tables: tuple[TableName, ...]
    failed: Mapping[TableName, str]
    unread: tuple[TableName, ...] = ()


def read_again(
    lake: SourcedLake,
    tables: Sequence[str],
    tell: Callable[[str], None],
    show: Callable[[str], None],
    stop: threading.Event | None = None,
    seconds: float | None = None,
) -> ReadAgain:
    """Ask for snapshots of the tables, and return once Kafka holds them. None: of those that wait for one.

    tell  gets what a person should know
    show  gets how far the reading is, which replaces what it got before
    stop  ends the waiting. The reading continues as soon as somebody takes it further.
    seconds  after which the waiting ends, too; None: never

    Raises UnknownTable, PipelineDown and the errors of `SnapshotKeeper.step`.
    """
    stop = stop or threading.Event()
    wanted = _asked(lake, tables)
    keeper = SnapshotKeeper(lake, tell, stop)
    # Also if nothing is wanted: what a table has applied since is over.
    records = keeper.step()
    ends = math.inf if seconds is None else time.monotonic() + seconds
    while not stop.is_set() and time.monotonic() < ends:
        unread = [records[table] for table in wanted if table in records and is_unread(records[table])]
        if not unread:
            break
        show("; ".join(map(_progress, unread[:3])))
        stop.wait(SECONDS_BETWEEN_STEPS)
        records = keeper.step()
    failed = {table: one.problem for table in wanted if isinstance(one := records.get(table), Failed)}
    left = sorted(table for table in wanted if table in records and is_unread(records[table]))
    return ReadAgain(tuple(sorted(wanted)), failed, tuple(left))


def _asked(lake: SourcedLake, tables: Sequence[str]) -> Collection[TableName]:
    files = record_files(lake)
    if not tables:
        return [table for table, record in files.read().items() if is_unread(record)]
    known = set(read_table_names(lake.kafka, lake.lake))
    for source in lake.lake.connected_sources:
        look = files.read_look(source.name)
        known |= set() if look is None else set(look.tables)
    wanted = resolve_names(tables, sorted(known))
    ask(files, wanted, "somebody asked for it")
    return wanted


def _progress(record: Record) -> str:
    if isinstance(record, Reading) and record.total:
        return f"{record.request.table}: {record.rows:,} of {record.total:,} rows"
    return f"{record.request.table}: waiting for the connector"
