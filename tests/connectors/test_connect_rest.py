"""Answers of Connect's REST interface, over real HTTP, become clear results and errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from connectors.connect_rest import (
    ConnectBusy,
    ConnectorFailed,
    ConnectorStatus,
    ConnectRefused,
    ConnectRest,
    ConnectUnreachable,
    TaskStatus,
)
from connectors.deployment import ConnectorConfig
from tributary.contract.remedies import CheckStatus, in_words
from tributary.local import connector_state
from tributary.local.connector_state import ConnectorKeeper
from tributary.operations.remedy_words import remedy_words

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: outer\n"
    "\tat io.debezium.Somewhere.method(Somewhere.java:1)\n"
    "Caused by: io.debezium.DebeziumException: middle\n"
    "\t... 5 more\n"
    "Caused by: org.postgresql.util.PSQLException: FATAL: role does not exist\n"
    "\t... 9 more\n"
)
SOURCE = ConnectorConfig("a", {"connector.class": "io.debezium.PostgresConnector", "tasks.max": "1"})


@dataclass
class Script:
    """The worker's answers in turn, with the last one repeated, and the requests that it got."""

    answers: list[tuple[int, Any]]
    requests: list[tuple[str, str, Any]] = field(default_factory=list)


@pytest.fixture
def script() -> Script:
    return Script([])


@pytest.fixture
def connect(script: Script) -> Iterator[ConnectRest]:
    class Worker(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            script.requests.append((self.command, self.path, body))
            status, content = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            encoded = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Worker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield ConnectRest(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(state: str, *tasks: tuple[str, str]) -> dict[str, Any]:
    return {
        "name": "a",
        "connector": {"state": state, "worker_id": "127.0.0.1:18083"},
        "tasks": [
            {"id": number, "state": state, "trace": trace} for number, (state, trace) in enumerate(tasks)
        ],
    }


def test_a_config_is_put_as_it_was_rendered(connect: ConnectRest, script: Script) -> None:
    script.answers = [(201, {})]
    connect.put(SOURCE)
    assert script.requests == [("PUT", "/connectors/a/config", dict(SOURCE.config))]


GONE = (
    "The connector is trying to read change stream starting at {}, but this is no longer available on the "
    "server. Reconfigure the connector to use a snapshot mode when needed."
)
"""How Debezium's connectors say that they cannot resume, each with its own offset."""


def test_a_connector_that_was_never_started_forgets_its_offsets(connect: ConnectRest, script: Script) -> None:
    script.answers = [(201, {}), (200, {"message": "The offsets have been reset"})]
    connect.create_stopped(SOURCE)
    connect.forget_offsets("a")
    created = {"name": "a", "config": dict(SOURCE.config), "initial_state": "STOPPED"}
    assert script.requests == [("POST", "/connectors", created), ("DELETE", "/connectors/a/offsets", None)]


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (GONE.format("PostgresOffsetContext [lsn=7]"), "replication slot was dropped"),
        (GONE.format("BinlogOffsetContext{sourceInfo=…}"), "no longer has the log"),
        (GONE.format("BinlogOffsetContext{sourceInfo=…}"), "--resnapshot"),
        (GONE.format("SqlServerOffsetContext [x]"), "no longer has the captured changes"),
        ("Incompatible artifact: shop.orders-value [AVRO]; error code: 409", "rule of the topic"),
        ("Schema being registered is incompatible with an earlier schema for subject", "to NONE"),
        ("Schema evolution check failed. schemaVersionId 1 is in FAILURE status.", "to NONE"),
        (
            "The message is 20971600 bytes when serialized which is larger than 16777216, which is the value "
            "of the max.request.size configuration.",
            "[lake].max_event_mb",
        ),
        ("FATAL: role does not exist", "log of the Connect worker"),
    ],
)
def test_a_failure_has_its_remedy(message: str, remedy: str) -> None:
    failed = TaskStatus(0, "FAILED", f"org.example.Outer: outer\nCaused by: org.example.Inner: {message}\n")
    assert remedy in in_words(ConnectorStatus("a", "RUNNING", (failed,)).remedies, remedy_words)
    assert ConnectorStatus("a", "RUNNING", (TaskStatus(0, "RUNNING"),)).remedies == ()


def test_a_request_during_a_rebalance_is_repeated(connect: ConnectRest, script: Script) -> None:
    expected = {"message": "Request cannot be completed because a rebalance is expected."}
    script.answers = [(409, {"message": "rebalance"}), (500, expected), (201, {})]
    connect.put(SOURCE)
    assert len(script.requests) == 3


BUSY = (500, {"error_code": 500, "message": "Request timed out. The worker is currently starting a task."})


def test_what_may_be_done_twice_is_asked_of_a_busy_worker_again(connect: ConnectRest, script: Script) -> None:
    script.answers = [BUSY, (200, {})]
    connect.put(SOURCE)
    assert [method for method, *_ in script.requests] == ["PUT", "PUT"]


@pytest.mark.parametrize(
    ("ask", "times"), [(lambda connect: connect.status("a"), 2), (lambda connect: connect.delete("a"), 1)]
)
def test_a_worker_that_stays_busy_is_reported_with_what_it_does(
    connect: ConnectRest, script: Script, ask: Callable[[ConnectRest], Any], times: int
) -> None:
    script.answers = [BUSY]
    with pytest.raises(ConnectBusy, match=r"too busy .* found .* currently starting a task"):
        ask(connect)
    assert len(script.requests) == times


def test_a_refused_config_is_reported_with_the_workers_own_reason(
    connect: ConnectRest, script: Script
) -> None:
    script.answers = [(400, {"error_code": 400, "message": "slot.name is invalid"})]
    with pytest.raises(ConnectRefused, match=r"^a: .*slot\.name is invalid"):
        connect.put(SOURCE)


def test_an_answer_without_json_is_reported_with_its_status(connect: ConnectRest, script: Script) -> None:
    script.answers = [(502, None)]
    with pytest.raises(ConnectRefused, match="status 502"):
        connect.connectors()


def test_a_missing_worker_is_reported_with_its_address() -> None:
    connect = ConnectRest("http://127.0.0.1:1")
    with pytest.raises(ConnectUnreachable, match=r"127\.0\.0\.1:1: ") as caught:
        connect.connectors()
    assert CheckStatus() in caught.value.remedies


def test_connectors_are_listed_in_order(connect: ConnectRest, script: Script) -> None:
    script.answers = [(200, ["b", "a"])]
    assert connect.connectors() == ("a", "b")


def test_waiting_ends_when_the_connector_and_all_its_tasks_run(connect: ConnectRest, script: Script) -> None:
    script.answers = [
        (404, {"message": "not yet"}),
        (200, status("RUNNING")),
        (200, status("RUNNING", ("RUNNING", ""), ("UNASSIGNED", ""))),
        (200, status("RUNNING", ("RUNNING", ""), ("RUNNING", ""))),
    ]
    seen: list[ConnectorStatus] = []
    connect.wait_running(["a"], 30, seen.append)
    assert [len(status.tasks) for status in seen] == [0, 0, 2]


def test_a_task_that_failed_ends_the_waiting_with_its_innermost_cause(
    connect: ConnectRest, script: Script
) -> None:
    script.answers = [(200, status("RUNNING", ("FAILED", TRACE)))]
    with pytest.raises(ConnectorFailed) as caught:
        connect.wait_running(["a"], 30, settle_seconds=0)
    assert caught.value.where == "a"
    assert caught.value.found == "PSQLException: FATAL: role does not exist"


UNPARSED = (
    "io.debezium.DebeziumException: Error processing binlog event\n"
    "Caused by: io.debezium.text.ParsingException: DDL statement couldn't be parsed. Please open an issue "
    "with the statement 'ALTER TABLE t DROP SYSTEM VERSIONING'\n"
    "no viable alternative at input 'ALTER TABLE t DROP SYSTEM'\n"
    "\tat io.debezium.antlr.ParsingErrorListener.syntaxError(ParsingErrorListener.java:44)\n"
    "Caused by: org.antlr.v4.runtime.NoViableAltException\n"
    "\t... 9 more\n"
)


def test_the_cause_of_a_failure_is_the_innermost_one_with_a_message(
    connect: ConnectRest, script: Script
) -> None:
    script.answers = [(200, status("RUNNING", ("FAILED", UNPARSED)))]
    with pytest.raises(ConnectorFailed, match="read them all again") as caught:
        connect.wait_running(["a"], 30, settle_seconds=0)
    assert "ALTER TABLE t DROP SYSTEM VERSIONING" in str(caught.value)
    script.answers = [(200, status("RUNNING", ("FAILED", "java.lang.NullPointerException\n\tat a.B.c()")))]
    with pytest.raises(ConnectorFailed, match="found NullPointerException"):
        connect.wait_running(["a"], 30, settle_seconds=0)


def test_a_failure_from_before_a_restart_does_not_end_the_waiting(
    connect: ConnectRest, script: Script
) -> None:
    failed, running = status("RUNNING", ("FAILED", TRACE)), status("RUNNING", ("RUNNING", ""))
    script.answers = [(200, failed), (200, failed), (200, running)]
    connect.wait_running(["a"], 30)
    assert len(script.requests) == 3


def test_a_task_that_fails_just_after_its_start_does_not_count_as_running(
    connect: ConnectRest, script: Script
) -> None:
    failed, running = status("RUNNING", ("FAILED", TRACE)), status("RUNNING", ("RUNNING", ""))
    script.answers = [(200, running), (200, failed)]
    with pytest.raises(ConnectorFailed, match="role does not exist"):
        connect.wait_running(["a"], 30, settle_seconds=0, running_seconds=0.3)
    script.answers = [(200, running)]
    connect.wait_running(["a"], 30, running_seconds=0.3)


def test_a_connector_that_does_not_start_in_time_is_reported_with_its_states(
    connect: ConnectRest, script: Script
) -> None:
    script.answers = [(200, status("RUNNING", ("UNASSIGNED", "")))]
    with pytest.raises(ConnectorFailed, match="RUNNING, UNASSIGNED"):
        connect.wait_running(["a"], 0)


def test_a_status_has_the_states_and_the_traces(connect: ConnectRest, script: Script) -> None:
    script.answers = [(200, status("RUNNING", ("RUNNING", ""), ("FAILED", TRACE)))]
    found = connect.status("a")
    assert found == ConnectorStatus(
        "a", "RUNNING", (TaskStatus(0, "RUNNING", ""), TaskStatus(1, "FAILED", TRACE))
    )
    assert not found.is_running


def test_a_connector_is_deleted_by_its_name(connect: ConnectRest, script: Script) -> None:
    script.answers = [(204, None)]
    connect.delete("a b")
    assert [(method, path) for method, path, _ in script.requests] == [("DELETE", "/connectors/a%20b")]


def test_a_worker_that_has_not_joined_its_group_is_waited_for(connect: ConnectRest, script: Script) -> None:
    running, unknown = (200, status("RUNNING", ("RUNNING", ""))), (404, {"message": "unknown"})
    script.answers = [running, unknown, running, (204, None), running, unknown, unknown, (200, [])]
    ConnectorKeeper(connect, threading.Event()).remove("a")
    methods = [method for method, path, _ in script.requests]
    assert methods == ["GET", "DELETE", "GET", "DELETE", "GET", "DELETE", "GET", "GET"]


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED", "FAILED"])
def test_a_connector_that_stands_still_is_created_again(
    connect: ConnectRest, script: Script, state: str
) -> None:
    config, gone = (200, {**SOURCE.config, "name": "a"}), (404, {"message": "unknown"})
    looks = [(200, ["a"]), config, (200, status(state)), (200, status(state)), (204, None), gone, (200, [])]
    script.answers = [*looks, (201, {}), (200, status("RUNNING", ("RUNNING", "")))]
    assert ConnectorKeeper(connect, threading.Event()).ensure_running(SOURCE, recreate=False)
    assert [method for method, *_ in script.requests if method != "GET"] == ["DELETE", "PUT"]


def test_a_connector_that_cannot_be_removed_is_an_error(
    connect: ConnectRest, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_state, "CONNECTOR_SECONDS", 0.2)
    script.answers = [(200, status("RUNNING", ("RUNNING", "")))]
    with pytest.raises(ConnectorFailed, match="still there"):
        ConnectorKeeper(connect, threading.Event()).remove("a")
