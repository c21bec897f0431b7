"""No stop of a connector loses a record: Debezium's own search for its place, with our transform."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.engines.postgres.connector import render
from tests.connectors.deployments import LAKE, local_deployment
from tests.postgres_source import postgres_source

pytestmark = pytest.mark.slow

AFTER_SNAPSHOT = {"lsn": 1, "txId": 1, "ts_usec": 1}
"""The first offset: Debezium has read all tables, and no change yet."""


@dataclass(frozen=True)
class Change:
    """A changed row. A change of its key is three records: a delete, a tombstone and an insert."""

    lsn: int
    changes_key: bool

    @property
    def records(self) -> int:
        return 3 if self.changes_key else 1


@dataclass(frozen=True)
class Transaction:
    """Changes in the order of their log positions. PostgreSQL sends transactions as they were committed."""

    changes: Sequence[Change]
    commit: int


@st.composite
def _histories(draw: st.DrawFn) -> Sequence[Transaction]:
    """Draw transactions, whose positions may be interleaved in the log. The rows of a page share one."""
    pages = draw(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=8))
    owners = [draw(st.integers(0, 2)) for _ in pages]
    end = 10 * (len(pages) + 1)
    return [
        Transaction(
            [
                Change(10 * (number + 1), changes_key)
                for number, page in enumerate(pages)
                if owners[number] == owner
                for changes_key in page
            ],
            commit=end + 10 * owner,
        )
        for owner in sorted(set(owners))
    ]


@example([Transaction([Change(10, False)] * 3, 20)], [1], True)
@example([Transaction([Change(10, False), Change(20, False), Change(20, False)], 30)], [2], True)
@example([Transaction([Change(10, True)], 20)], [1], True)
@example(
    [Transaction([Change(10, False)], 15), Transaction([Change(20, True), Change(30, True)], 40)],
    [2, 2],
    True,
)
@given(_histories(), st.lists(st.integers(1, 8), max_size=4), st.booleans())
@settings(deadline=None, max_examples=80)
def test_postgres_resumes_without_a_gap_wherever_it_is_stopped(
    java: _Java, history: Sequence[Transaction], stops: Sequence[int], log_is_confirmed: bool
) -> None:
    """`stops`: after how many records of each run the connector is stopped, before it runs to the end."""
    offset: Mapping[str, Any] = AFTER_SNAPSHOT
    confirmed = 0
    sent: set[tuple[Change, int, int]] = set()
    for stop in [*stops, None]:
        run = _Run(java, offset, [one for one in history if one.commit > confirmed])
        for count, (record, its_offset) in enumerate(run.records(), 1):
            sent.add(record)
            offset = its_offset
            if count == stop:
                break
        if log_is_confirmed:
            confirmed = offset.get("lsn_commit", 0)

    assert sent == {
        (change, place, record)
        for transaction in history
        for place, change in enumerate(transaction.changes)
        for record in range(change.records)
    }


class _Run:
    """A run of a connector: PostgresStreamingChangeEventSource, with Debezium's own offsets and search."""

    def __init__(self, java: _Java, stored: Mapping[str, Any], log: Sequence[Transaction]) -> None:
        self._java = java
        self._log = log
        self._context = java.loader.load(java.offset(stored))
        self._locator = self._locate(stored) if "lsn_proc" in stored else None

    def records(self) -> Iterator[tuple[tuple[Change, int, int], Mapping[str, Any]]]:
        """Yield each record as (change, its place in the transaction, number), with the offset to store."""
        for transaction in self._log:
            self._is_skipped(transaction.changes[0].lsn)
            self._context.clearOrigin()
            self._update(transaction.changes[0].lsn, self._context.lastCompletelyProcessedLsn(), "BEGIN")
            for place, change in enumerate(transaction.changes):
                if self._is_skipped(change.lsn):
                    continue
                lsn = self._java.lsn(change.lsn)
                self._context.incrementLsnEventsProcessed(lsn)
                self._update(change.lsn, lsn, "UPDATE")
                for number in range(change.records):
                    headers = ["__debezium.newkey"] if change.changes_key and number < 2 else []
                    yield (change, place, number), self._java.resumable(self._context.getOffset(), headers)
            self._is_skipped(transaction.commit)
            commit = self._java.lsn(transaction.commit)
            self._update(transaction.commit, commit, "COMMIT")
            self._context.resetLsnEventsProcessed()
            self._context.updateCommitPosition(commit, commit)

    def _locate(self, stored: Mapping[str, Any]) -> Any:
        """Return the locator that knows where to resume."""
        operation = stored.get("messageType")
        locator = self._java.postgres.connection.WalPositionLocator(
            self._context.lastCommitLsn(),
            self._context.lastCompletelyProcessedLsn(),
            None if operation is None else self._java.operations[operation],
            self._context.lsnEventsProcessed(),
        )
        for lsn, message in self._messages():
            if locator.resumeFromLsn(self._java.lsn(lsn), message).isPresent():
                break
        locator.enableFiltering()
        return locator

    def _messages(self) -> Iterator[tuple[int, Any]]:
        for transaction in self._log:
            yield transaction.changes[0].lsn, self._java.messages["BEGIN"]
            for change in transaction.changes:
                yield change.lsn, self._java.messages["UPDATE"]
            yield transaction.commit, self._java.messages["COMMIT"]

    def _is_skipped(self, lsn: int) -> bool:
        return self._locator is not None and self._locator.skipMessage(self._java.lsn(lsn))

    def _update(self, lsn: int, processed: Any, operation: str) -> None:
        self._context.updateWalPosition(
            self._java.lsn(lsn),
            processed,
            self._java.epoch,
            None,
            None,
            None,
            self._java.operations[operation],
        )


class _Java:
    """The classes of Debezium and Connect that a run needs, and our transform."""

    def __init__(self, jvm: Any) -> None:
        self._connect = jvm.org.apache.kafka.connect
        ours = jvm.io.tributary.connect
        self._postgres = ours.postgres.PostgresOffsets()
        self.binlog, self.sql_server = ours.binlog.BinlogOffsets(), ours.sqlserver.SqlServerOffsets()
        self._json = self._connect.json.JsonConverter()
        self._json.configure({"schemas.enable": "false"}, False)
        self.postgres = jvm.io.debezium.connector.postgresql
        config = jvm.io.debezium.config.Configuration.empty().edit()
        for name, value in render(LAKE, postgres_source(LAKE), local_deployment()).config.items():
            config = config.withDefault(name, value)
        self.loader = self.postgres.PostgresOffsetContext.Loader(
            self.postgres.PostgresConnectorConfig(config.build())
        )
        self.initial = jvm.io.debezium.snapshot.mode.InitialSnapshotter()
        self.epoch = jvm.java.time.Instant.EPOCH
        known = getattr(self.postgres.connection, "ReplicationMessage$Operation")
        self.operations = {name: getattr(known, name) for name in ("BEGIN", "UPDATE", "COMMIT")}
        self.messages = {
            name: self.postgres.connection.TransactionMessage(operation, 1, self.epoch)
            for name, operation in self.operations.items()
        }

    def lsn(self, number: int) -> Any:
        return self.postgres.connection.Lsn.valueOf(f"0/{number:X}")

    def offset(self, stored: Mapping[str, Any]) -> Any:
        """Return the offset that Connect reads from its topic. Its numbers are Longs."""
        return self._json.toConnectData("offsets", json.dumps(stored).encode()).value()

    def is_dropped(self, partition: Mapping[str, str], offset: Mapping[str, Any]) -> bool:
        """Return whether a record is not sent, so that Connect does not store its offset either."""
        record = self._connect.source.SourceRecord(partition, self.offset(offset), "topic", None, None)
        return self._postgres.apply(record) is None

    def resumable(self, offset: Any, headers: Sequence[str] = (), transform: Any = None) -> Mapping[str, Any]:
        """Return the offset that Connect stores for a record with this offset and these headers."""
        its_headers = self._connect.header.ConnectHeaders()
        for header in headers:
            its_headers.addString(header, "7")
        record = self._connect.source.SourceRecord(
            {"server": "shop"}, offset, "topic", None, None, None, None, None, None, its_headers
        )
        mended = (transform or self._postgres).apply(record).sourceOffset()
        stored: Mapping[str, Any] = json.loads(bytes(self._json.fromConnectData("offsets", None, mended)))
        return stored


@pytest.fixture(scope="module")
def java(jvm: Any) -> _Java:
    return _Java(jvm)


def test_a_key_change_in_a_binlog_is_read_again_until_its_insert_was_sent(java: _Java) -> None:
    stored = {"file": "binlog.000003", "pos": 40, "event": 2, "row": 5}

    def resumable(*headers: str) -> Mapping[str, Any]:
        return java.resumable(java.offset(stored), headers, java.binlog)

    assert resumable("__debezium.newkey") == {"file": "binlog.000003", "pos": 40, "event": 2}
    assert resumable("__debezium.oldkey") == stored
    assert resumable() == stored


def test_an_update_of_a_key_in_sql_server_is_read_again_until_its_insert_was_sent(java: _Java) -> None:
    stored = {"commit_lsn": "00000027:00000ac0:0003", "change_lsn": "00000027:00000ac0:0002"}

    def resumable(count: int, *headers: str) -> Mapping[str, Any]:
        return java.resumable(java.offset({**stored, "event_serial_no": count}), headers, java.sql_server)

    assert resumable(2, "__debezium.newkey") == {**stored, "event_serial_no": 0}
    assert resumable(5, "__debezium.newkey") == {**stored, "event_serial_no": 3}
    assert resumable(2, "__debezium.oldkey") == {**stored, "event_serial_no": 2}
    assert resumable(2) == {**stored, "event_serial_no": 2}


def test_an_empty_offset_with_which_no_snapshot_would_be_taken_is_not_stored(java: _Java) -> None:
    # After a crash, Debezium takes it for the offset of a snapshot that is over.
    loaded = java.loader.load(java.offset({}))
    assert not java.initial.shouldSnapshotData(True, loaded.isInitialSnapshotRunning())

    assert java.is_dropped({"server": "shop"}, {})
    assert not java.is_dropped({"server": "shop"}, {"lsn": 1})
    assert not java.is_dropped({}, {}), "a notification of no partition"
