"""Take the online snapshots of a source as far as they can get now. Any process may do it, at any time.

A snapshot goes from one record to the next. If a step is interrupted, the record still says what to do.

1. Kafka holds all that the source had committed. So all earlier events are below the ends of the topic,
   which the record keeps as the beginning.
2. The connector gets the signal. It reads the table chunk by chunk, and streams all tables meanwhile.
3. The connector tells that it has read the last row. Once more, Kafka has to hold all that was committed. By
   then it also holds the reads, and a crash of the connector can no longer repeat any.
4. If the table is still defined as before, the snapshot is whole. Otherwise, it begins again.

A row that was not read and has no event since the beginning is gone. The Spark app removes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from connectors.engines.engine import NotReadable
from tributary.api.timeline import read_last_commit
from tributary.contract.online_snapshot import Failed, Noticed, Read, Reading, Record, Request, Requested
from tributary.contract.table_name import TableName
from tributary.operations.kafka_topics import read_notifications, read_topics
from tributary.operations.reconcile.barrier import Patience, wait_for_connector
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots.notifications import Notification, Progress, is_reading, progress_of
from tributary.operations.snapshots.record_files import RecordFiles


def advance(
    link: SourceLink, session: Any, files: RecordFiles, records: Collection[Record], patience: Patience
) -> Mapping[TableName, Record]:
    """Take the source's snapshots further, from these records, and return their new records.

    The records of snapshots that are over are removed. `session` is the connector's user's. Raises
    `LakeBehind`, and the errors of the database, Kafka and S3.
    """
    requested = [record for record in records if isinstance(record, Requested)]
    reading = [record for record in records if isinstance(record, Reading)]
    after: list[Record] = [record for record in records if isinstance(record, Noticed | Failed)]
    after += _begin(link, session, files, requested, patience)
    after += _follow(link, session, files, reading, patience)
    read = (_settle(link, files, record) for record in records if isinstance(record, Read))
    after += (record for record in read if record is not None)
    return {record.request.table: record for record in after}


def _begin(
    link: SourceLink, session: Any, files: RecordFiles, requested: Sequence[Requested], patience: Patience
) -> list[Record]:
    """Tell the connector to read tables."""
    if not requested:
        return []
    engine, names = link.engine, link.lake.source_names(link.source)
    definitions = engine.read_definitions(session, link.lake, link.source)
    wait_for_connector(link.steps_to_kafka(session), patience)
    topics = read_topics(link.kafka, [names.notification_topic, *_topics_of(link, requested)])
    told = topics.get(names.notification_topic)
    begun: list[Record] = []
    for record in requested:
        table = record.request.table
        if table not in definitions:
            begun.append(
                Failed(record.request, "the source has no such table, or the lake file leaves it out")
            )
            files.write(begun[-1])
            continue
        topic = topics.get(_topic_of(link, table))
        reading = Reading(
            record.request,
            topic_id=None if topic is None else topic.id,
            began={} if topic is None else topic.ends,
            notifications_end=0 if told is None else told.ends.get(0, 0),
            fingerprint=definitions[table].fingerprint,
        )
        files.write(reading)
        begun.append(_ask(link, session, files, reading))
    return begun


def _follow(
    link: SourceLink, session: Any, files: RecordFiles, readings: list[Reading], patience: Patience
) -> list[Record]:
    """Take note of what the connector has told about the tables that it reads."""
    if not readings:
        return []
    told = _told_since(link, readings)
    followed: list[Record] = []
    read: list[Reading] = []
    for record in readings:
        progress = progress_of(record.request.table, told[record.notifications_end])
        if progress.problem is not None:
            followed.append(Failed(record.request, progress.problem))
            _end(link, session, files, followed[-1])
        elif progress.is_read:
            read.append(record)
        else:
            now = replace(record, rows=progress.rows, total=progress.total)
            if now != record:
                files.write(now)
            # It tells nothing of a table that waits for the one that it reads.
            is_known = now.total or is_reading(told[record.notifications_end])
            followed.append(now if is_known else _ask_again(link, session, files, now, patience))
    return [*followed, *_finish(link, session, files, read, patience)]


def _ask(link: SourceLink, session: Any, files: RecordFiles, record: Reading) -> Reading | Failed:
    try:
        link.engine.ask_for_snapshot(session, link.lake, link.source, record.request)
    except NotReadable as error:
        failed = Failed(record.request, error.reason)
        files.write(failed)
        return failed
    return record


def _ask_again(
    link: SourceLink, session: Any, files: RecordFiles, record: Reading, patience: Patience
) -> Reading | Failed:
    """Ask about a table of which the connector has told nothing, although it reads no other.

    The process that began may have ended before it could ask. If the connector has the request and still
    tells nothing, it has refused it."""
    asked = _ask(link, session, files, record)
    if isinstance(asked, Failed):
        return asked
    wait_for_connector(link.steps_to_kafka(session), patience)
    told = _told_since(link, [record])[record.notifications_end]
    if is_reading(told) or progress_of(record.request.table, told) != Progress():
        return record
    failed = Failed(record.request, "the connector did not take the request; the log of Connect says why")
    _end(link, session, files, failed)
    return failed


def _finish(
    link: SourceLink, session: Any, files: RecordFiles, read: list[Reading], patience: Patience
) -> list[Record]:
    """End the snapshots of tables that the connector says it has read."""
    if not read:
        return []
    wait_for_connector(link.steps_to_kafka(session), patience)
    told, topics = _told_since(link, read), read_topics(link.kafka, _topics_of(link, read))
    definitions = link.engine.read_definitions(session, link.lake, link.source)
    finished: list[Record] = []
    for record in read:
        table = record.request.table
        if not progress_of(table, told[record.notifications_end]).is_read:
            finished.append(record)
            continue
        definition = definitions.get(table)
        if definition is None or definition.fingerprint != record.fingerprint:
            reasons = (*record.request.reasons, "it was defined anew while it was read")
            again = replace(
                record.request, id=str(uuid4()), reasons=tuple(dict.fromkeys(reasons)), condition=None
            )
            _end(link, session, files, Requested(again), of=record.request)
            finished.append(Requested(again))
            continue
        topic = topics.get(_topic_of(link, table))
        whole = Read(record.request, record.topic_id, record.began, {} if topic is None else topic.ends)
        _end(link, session, files, whole)
        finished.append(whole)
    return finished


def _end(
    link: SourceLink, session: Any, files: RecordFiles, record: Record, of: Request | None = None
) -> None:
    # In this order, an interruption leaves nothing behind in the database: what the connector has told stays.
    link.engine.forget_request(session, link.lake, link.source, of or record.request)
    files.write(record)


def _settle(link: SourceLink, files: RecordFiles, record: Read) -> Record | None:
    """Return what is left of a snapshot that Kafka holds to its end; None once the table has applied it."""
    table = record.request.table
    if any(record.began.values()):
        commit = read_last_commit(files.filesystem, _silver_path(link, table))
        applied = None if commit is None else commit.ledger.snapshot
        if applied is None or applied.id != record.request.id:
            return record
        if applied.quarantined:
            problem = (
                f"{applied.quarantined:,} of its events are in quarantine, so rows that are gone "
                "from the source were kept; replay these events, and ask for the snapshot again"
            )
            files.write(Failed(record.request, problem))
            return Failed(record.request, problem)
    files.remove(table)
    return None


def _topics_of(link: SourceLink, records: Iterable[Requested | Reading]) -> list[str]:
    return [_topic_of(link, record.request.table) for record in records]


def _topic_of(link: SourceLink, table: TableName) -> str:
    return link.lake.source_names(link.source).topic(table.schema, table.table)


def _silver_path(link: SourceLink, table: TableName) -> str:
    return f"{link.silver}/{link.lake.names.table_path(table)}"


def _told_since(link: SourceLink, readings: Iterable[Reading]) -> dict[int, list[Notification]]:
    """Return what the connector has told since each of the offsets at which some table's reading began."""
    starts = {record.notifications_end for record in readings}
    topic = link.lake.source_names(link.source).notification_topic
    told = [
        (offset, parsed)
        for offset, value in read_notifications(link.kafka, topic, min(starts))
        if (parsed := Notification.of(link.payloads.read(value))) is not None
    ]
    return {start: [parsed for offset, parsed in told if offset >= start] for start in starts}
