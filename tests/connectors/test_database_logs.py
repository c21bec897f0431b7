"""How much log a database keeps for the connector: of a real PostgreSQL, and of other engines' answers."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from connectors.connect_rest import ConnectUnreachable
from connectors.engines.binlog.gtids import read_gtids
from connectors.engines.binlog.progress import ServerGtids, log_after, log_after_gtids
from connectors.engines.database_log import DatabaseLog, LogReader, size_text
from connectors.engines.postgres.slot import read_log
from connectors.engines.sqlserver import progress

FILES = {7: 1000, 8: 500, 9: 300}
"""The files of a binary log, with their sizes."""


@pytest.mark.slow
def test_a_slot_that_nobody_reads_holds_back_what_is_written(admin: psycopg.Connection) -> None:
    streaming = LogReader(lambda: {"lsn": 7}, lambda: False)
    assert read_log(admin, "t_log", streaming) == DatabaseLog(problem="There is no replication slot t_log.")
    admin.execute("SELECT pg_create_logical_replication_slot('t_log', 'pgoutput')")
    try:
        admin.execute("CREATE TABLE t AS SELECT g, repeat('x', 100) AS x FROM generate_series(1, 10000) AS g")
        found = read_log(admin, "t_log", streaming)
        before_it, in_it = (
            read_log(admin, "t_log", LogReader(partial(next, iter([offset])), lambda: False))
            for offset in _FIRST
        )
        failed = [
            read_log(admin, "t_log", LogReader(partial(next, iter([offset])), lambda: True))
            for offset in _FIRST
        ]
        without_connect = read_log(admin, "t_log", LogReader(_without_connect, _without_connect))
    finally:
        admin.execute("SELECT pg_drop_replication_slot('t_log')")
    assert found.unread is not None
    assert found.kept is not None
    assert found.kept >= found.unread > 1_000_000
    assert found.problem == "Nobody reads the replication slot t_log, and the server keeps its WAL."
    assert without_connect.problem == found.problem
    assert (before_it.problem, in_it.problem) == (None, None)
    assert {one.problem for one in failed} == {found.problem}, "a connector that has failed reads nothing"


_FIRST = (None, {"lsn": 7, "snapshot": "INITIAL", "last_snapshot_record": False})
"""The offsets of a connector that reads its first snapshot."""


def _without_connect() -> Any:
    raise ConnectUnreachable("Kafka Connect does not answer")


@pytest.mark.parametrize(
    ("offset", "unread"),
    [
        ({"file": "binlog.000009", "pos": 300}, 0),
        ({"file": "binlog.000009", "pos": 100}, 200),
        ({"file": "binlog.000007", "pos": 999}, 801),
        ({"file": "binlog.000010", "pos": 4}, 0),
        (None, None),
    ],
)
def test_a_binary_log_has_to_be_read_from_the_offset_on(offset: Any, unread: int | None) -> None:
    assert log_after(offset, FILES) == DatabaseLog(1800, unread)


def test_a_log_that_was_reset_is_told() -> None:
    found = log_after({"file": "binlog.000011", "pos": 4}, FILES)
    assert "newest file is number 9: its log was reset" in str(found.problem)
    assert found.unread is None


def test_a_file_that_the_server_has_removed_is_told() -> None:
    found = log_after({"file": "binlog.000006", "pos": 4}, FILES)
    assert "the server's oldest file is number 7" in str(found.problem)
    assert found.unread is None


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"behind_ms": 1500, "is_gone": 0}, DatabaseLog(behind=1.5)),
        ({"behind_ms": None, "is_gone": 0}, DatabaseLog()),
        ({"behind_ms": -10, "is_gone": 0}, DatabaseLog(behind=0.0)),
    ],
)
def test_sql_server_tells_a_time(monkeypatch: pytest.MonkeyPatch, row: Any, found: DatabaseLog) -> None:
    asked: list[Any] = []

    def first_row(*question: Any) -> Any:
        asked.append(question)
        return row

    monkeypatch.setattr(progress, "first_row", first_row)
    session: Any = SimpleNamespace()
    assert progress.read_log(session, {"commit_lsn": "00000027:00000ac0:0002"}) == found
    assert asked[0][2] == ("0x0000002700000ac00002",)
    assert progress.read_log(session, None) == DatabaseLog()


def test_sql_server_tells_that_its_cleanup_has_removed_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "first_row", lambda *_: {"behind_ms": None, "is_gone": 1})
    session: Any = SimpleNamespace()
    found = progress.read_log(session, {"commit_lsn": "00000027:00000ac0:0002"})
    assert "The connector has read up to 00000027:00000ac0:0002" in str(found.problem)
    assert "no longer keeps all that followed" in str(found.problem)


def test_sizes_have_the_largest_unit_that_fits() -> None:
    texts = [size_text(size) for size in (0, 999, 1000, 16_777_216, 2.5e9, 3e12)]
    assert texts == ["0 bytes", "999 bytes", "1.0 kB", "16.8 MB", "2.5 GB", "3.0 TB"]


OLD, NEW = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "8a94f357-aab4-11df-86ab-c80aa9429489"


@pytest.mark.parametrize(
    ("executed", "purged", "problem"),
    [
        (f"{OLD}:1-100,{NEW}:1-7", "", None),
        (f"{OLD}:1-95,{NEW}:1-7", "", f"lacks transactions that the connector has read: {OLD}:96-100"),
        (f"{NEW}:1-7", "", f"lacks transactions that the connector has read: {OLD}:1-100"),
        (f"{OLD}:1-120", f"{OLD}:1-110", f"has removed transactions .* of {OLD}:101-120"),
        (f"{OLD}:1-120", f"{OLD}:1-100", None),
    ],
)
def test_gtids_tell_whether_a_connector_can_continue_at_another_server(
    executed: str, purged: str, problem: str | None
) -> None:
    offset = {"file": "binlog.000030", "pos": 4, "gtids": f"{OLD}:1-100"}
    log = log_after(offset, FILES)
    assert log.problem is not None, "the names of the files alone"

    found = log_after_gtids(log, offset, ServerGtids(read_gtids(executed), read_gtids(purged)))

    if problem is None:
        assert found == DatabaseLog(1800)
    else:
        assert re.search(problem, found.problem or "")
    assert log_after_gtids(log, offset, None) == log
