"""The logs of databases are read side by side, and nobody waits long for one that is away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from connectors.connect_rest import ConnectorStatus, ConnectRest, TaskStatus
from connectors.engines.database_log import DatabaseLog
from tests.ports import free_port
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName
from tributary.local.databases import SourceDatabase
from tributary.local.state import StateFolder, choose_settings
from tributary.operations import source_facts
from tributary.operations.source_facts import KeptLogs, KeptSizes, read_source_logs
from tributary.operations.workspace import Workspace


def workspace_of(folder: Path, port: int) -> Workspace:
    entries = "".join(
        f'[source.{name}]\nengine = "{engine}"\n{more}tables = ["shop.*"]\n'
        f'[source.{name}.connection]\nhost = "127.0.0.1"\nport = {port}\nuser = "reader"\n'
        'password_env = "HUNTER"\n'
        for name, engine, more in (("web", "postgres", 'database = "shop"\n'), ("stock", "mysql", ""))
    )
    lake = parse_lake(f'[lake]\nname = "shop"\n{entries}')
    state = StateFolder(folder)
    state.create()
    state.write_settings(choose_settings(state, lake.name, {}, frozenset()))
    return Workspace(folder / "lake.toml", lake, state)


def test_a_log_that_cannot_be_read_has_the_reason_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNTER", "hunter2")
    logs = read_source_logs(workspace_of(tmp_path / "state", free_port()))
    assert logs.keys() == {"web", "stock"}
    for log in logs.values():
        assert str(log.problem).startswith("Its log cannot be read now: ")
        assert "no connection to the database" in str(log.problem)
        assert "hunter2" not in str(log.problem)
        assert (log.kept, log.unread) == (None, None)


def test_a_database_that_does_not_answer_delays_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = threading.Event(), 0
    known = {"web": DatabaseLog(kept=5)}

    def read(*_: Any) -> Any:
        nonlocal asked
        asked += 1
        assert answers.wait(30)
        return known

    monkeypatch.setattr(source_facts, "read_source_logs", read)
    kept, workspace = KeptLogs(seconds=0, patience=0.01), cast(Workspace, None)
    assert [kept.read(workspace) for _ in range(3)] == [{}, {}, {}]
    assert asked == 1, "one question at a time"
    answers.set()
    assert kept._reading is not None
    kept._reading.join(30)
    assert kept.read(workspace) == known


@pytest.fixture
def first_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Two databases that answer, whose connectors read their first snapshots."""
    workspace = workspace_of(tmp_path / "state", free_port())
    monkeypatch.setattr(SourceDatabase, "connect_for_replication", lambda _: nullcontext())
    monkeypatch.setattr(ConnectRest, "offset", lambda *_: None)
    monkeypatch.setattr(ConnectRest, "status", _status_of("RUNNING"))
    for source in workspace.lake.sources:
        engine = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings).engine
        monkeypatch.setattr(type(engine), "read_log", lambda *_: DatabaseLog(kept=5))
    return workspace


def test_sizes_are_read_only_for_those_who_show_them_and_kept(
    first_snapshot: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def read(_: Workspace, database: SourceDatabase, __: Any) -> Any:
        asked.append(database.source.name)
        return {TableName(database.source.name, "shop", "orders"): 7}

    monkeypatch.setattr(source_facts, "_read_sizes", read)
    assert read_source_logs(first_snapshot)["web"].first is None
    assert asked == []
    sizes = KeptSizes()
    for _ in range(3):
        assert read_source_logs(first_snapshot, sizes)["web"].first == {TableName("web", "shop", "orders"): 7}
    assert sorted(asked) == ["stock", "web"]


def test_a_connector_that_failed_before_its_first_offset_reads_no_snapshot(
    first_snapshot: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConnectRest, "status", _status_of("FAILED"))
    monkeypatch.setattr(source_facts, "_read_sizes", lambda *_: {TableName("web", "shop", "orders"): 7})
    assert read_source_logs(first_snapshot, KeptSizes())["web"].first is None


def _status_of(state: str) -> Callable[[ConnectRest, str], ConnectorStatus]:
    return lambda _, name: ConnectorStatus(name, state, (TaskStatus(0, state),))


def test_a_log_is_good_without_the_sizes(first_snapshot: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("permission denied")

    monkeypatch.setattr(source_facts, "_read_sizes", fail)
    logs = read_source_logs(first_snapshot, KeptSizes())
    assert logs == dict.fromkeys(("web", "stock"), DatabaseLog(kept=5))
