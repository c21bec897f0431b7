"""A connector whose database or schema registry did not answer is restarted, and no other one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from connectors.connect_rest import ConnectorStatus, ConnectorUnknown, Peer, TaskStatus
from tributary.operations.lost_connections import ConnectionKeeper

LOST = (
    "org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event producer.\n"
    "Caused by: io.debezium.DebeziumException: Failed to read next byte from position 10067\n"
    "Caused by: java.io.EOFException: Failed to read next byte from position 10067\n"
)
REFUSED = (
    "org.apache.kafka.connect.errors.ConnectException: Error configuring an instance of the connector\n"
    "Caused by: com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure\n"
    "Caused by: java.net.ConnectException: Connection refused\n"
)
GONE = (
    "io.debezium.DebeziumException: The connector is trying to read change stream starting at "
    "BinlogOffsetContext [...], but this is no longer available on the server.\n"
)
WRONG_PASSWORD = (
    "org.apache.kafka.connect.errors.ConnectException: outer\n"
    "Caused by: java.sql.SQLException: Access denied for user 'debezium'\n"
)
CONNECT_S_OWN = "org.apache.kafka.connect.errors.ConnectException: The value has no field id\n"


NO_APICURIO = (
    "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n"
    "Caused by: io.apicurio.registry.rest.client.exception.RestClientException\n"
    "\tat io.apicurio.registry.rest.client.impl.ErrorHandler.parseError(ErrorHandler.java:95)\n"
)
APICURIO_REFUSES = (
    "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n"
    "Caused by: io.apicurio.registry.rest.client.exception.RestClientException: Too many requests\n"
    "\tat io.apicurio.registry.rest.client.impl.ErrorHandler.handleErrorResponse(ErrorHandler.java:64)\n"
)
NO_CONFLUENT = (
    "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n"
    "Caused by: org.apache.kafka.common.errors.SerializationException: Error serializing Avro message\n"
    "Caused by: java.net.ConnectException: Connection refused\n"
    "\tat io.confluent.kafka.schemaregistry.client.rest.RestService.sendHttpRequest(RestService.java:1)\n"
)
NO_GLUE = (
    "com.amazonaws.services.schemaregistry.exception.AWSSchemaRegistryException: Failed to get a version\n"
    "Caused by: software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: "
    "Connection refused\n"
)


@dataclass
class Worker:
    """A worker with one connector, whose task fails for the given reason; none: it runs."""

    trace: str | None = None
    is_known: bool = True
    restarted: list[str] = field(default_factory=list)

    def status(self, name: str) -> ConnectorStatus:
        if not self.is_known:
            raise ConnectorUnknown("unknown")
        state = "RUNNING" if self.trace is None else "FAILED"
        return ConnectorStatus(name, "RUNNING", (TaskStatus(0, state, self.trace or ""),))

    def restart_failed(self, name: str) -> None:
        self.restarted.append(name)


def keeper_of(worker: Worker, told: list[str]) -> ConnectionKeeper:
    return ConnectionKeeper(worker, lambda: ("a",), told.append)


@pytest.mark.parametrize(
    ("trace", "lost"),
    [
        (LOST, "database"),
        (REFUSED, "database"),
        (NO_APICURIO, "schema registry"),
        (NO_CONFLUENT, "schema registry"),
        (NO_GLUE, "schema registry"),
        (APICURIO_REFUSES, None),
        (GONE, None),
        (WRONG_PASSWORD, None),
        (CONNECT_S_OWN, None),
    ],
)
def test_only_a_failure_that_a_restart_can_mend_counts_as_a_lost_connection(
    trace: str, lost: Peer | None
) -> None:
    worker, told = Worker(trace=trace), list[str]()
    status = worker.status("a")
    assert status.lost_peer == lost
    assert (f"The {lost} does not answer" in str(status.remedies)) == (lost is not None)
    keeper_of(worker, told).step(0.0)
    assert worker.restarted == ["a"] * (lost is not None)
    assert all(f"a lost its {lost}: " in line for line in told)


def test_a_connector_is_restarted_at_once_and_then_less_and_less_often() -> None:
    worker, told = Worker(trace=LOST), list[str]()
    keeper = keeper_of(worker, told)
    at = [second for second in range(300) if _restarts(keeper, worker, float(second))]
    assert at == [0, 10, 40, 100, 160, 220, 280]
    assert len(told) == 1
    assert "EOFException: Failed to read next byte" in told[0]


def test_after_a_good_run_a_lost_connection_is_told_and_mended_at_once_again() -> None:
    worker, told = Worker(trace=LOST), list[str]()
    keeper = keeper_of(worker, told)
    keeper.step(0.0)
    worker.trace = None
    keeper.step(60.0)
    keeper.step(130.0)
    worker.trace = REFUSED
    keeper.step(131.0)
    assert (len(worker.restarted), len(told)) == (2, 2)


def test_a_connector_that_the_worker_does_not_know_is_left_alone() -> None:
    worker = Worker(trace=LOST, is_known=False)
    keeper_of(worker, []).step(0.0)
    assert worker.restarted == []


def _restarts(keeper: ConnectionKeeper, worker: Worker, now: float) -> bool:
    before = len(worker.restarted)
    keeper.step(now)
    return len(worker.restarted) > before


SEQUENCE = (
    "org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event producer.\n"
    "Caused by: io.debezium.DebeziumException: Encountered change event for table shop.numbers whose schema "
    "isn't known to this connector\n"
)


def test_a_connector_skips_the_table_that_it_failed_at_and_nothing_else_is_tried_at_each_look() -> None:
    worker, told, asked = Worker(trace=SEQUENCE), list[str](), list[tuple[str, str]]()

    def skip(name: str, failure: str) -> bool:
        asked.append((name, failure))
        return len(asked) == 2

    keeper = ConnectionKeeper(worker, lambda: ("a",), told.append, skip)
    for second in range(0, 60, 5):
        keeper.step(float(second))
    assert [name for name, _ in asked] == ["a", "a"]
    assert "shop.numbers" in asked[0][1]
    assert worker.restarted == []
    assert len(told) == 1
    assert told[0].endswith("isn't known to this connector. It runs again without that table.")
    worker.trace = SEQUENCE.replace("numbers", "others")
    keeper.step(60.0)
    assert "shop.others" in asked[2][1]
