"""Kafka Connect's REST interface: create, watch and remove connectors, and explain their errors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import requests

from connectors import avro_converter
from connectors.deployment import ConnectorConfig
from connectors.engines.registry import remedies
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import BringUp, CheckStatus, ReadRunbook, Remedies, remedies_of

_POLL_SECONDS = 0.2
_REBALANCE_SECONDS = 60.0
"""The group notices a killed worker only after a session timeout, 10 seconds by default."""
GLANCE_SECONDS = 60.0
"""How long those wait for an answer who only look at a connector, and can look again."""
_REQUEST_SECONDS = 100
"""Connect gives up after 90 seconds, and then says what keeps it busy (RestServer, HerderRequestHandler)."""
_BUSY = "Request timed out"
_TIMES = {"GET": 2, "PUT": 2}
"""How often a request is sent to a busy worker. Without an answer, nobody knows whether a worker has done or
will still do what a request asks for, so only those are repeated that may be done twice."""
_NOT_FOUND = 404
_CONFLICT = 409
_REBALANCE_EXPECTED = "a rebalance is expected"
"""Reading a connector's config then fails with status 500 and these words
(DistributedHerder.checkRebalanceNeeded). A request that changes something fails with 409
(HerderRequestHandler.completeOrForwardRequest)."""


_REMEDIES = {
    # Kafka's producer (KafkaProducer#ensureValidRecordSize).
    "the value of the max.request.size configuration": remedies_of(
        ["An event is larger than [lake].max_event_mb.", ReadRunbook("event too large")]
    ),
}
"""Remedies by a part of the innermost cause's text. The engines of the sources know more of them."""


_LOST_CONNECTION = re.compile(
    r"java\.io\.EOFException|java\.net\.\w+Exception|\bSQL(?:Non)?TransientConnectionException"
    r"|\bCommunicationsException|The connection is closed|Connection reset|Server shutdown in progress"
    # Apicurio's client says no more than this, and other words if the registry has answered.
    r"|\bio\.apicurio\.registry\.rest\.client\.exception\.RestClientException$"
    r"|\bSdkClientException: Unable to execute HTTP request",
    re.MULTILINE,
)
"""How Java, the databases' drivers and the schema registries' clients call a connection that broke or that
nobody accepts."""

_OF_A_REGISTRY = re.compile(
    r"\bio\.apicurio\.registry\.|\bio\.confluent\.kafka\.schemaregistry\."
    r"|\bcom\.amazonaws\.services\.schemaregistry\."
)
"""The packages of the registries' clients."""

Peer = Literal["database", "schema registry"]
"""What a connector needs beside Kafka."""


class ConnectUnreachable(TributaryError):
    """The Connect worker does not answer."""


class ConnectBusy(ConnectUnreachable):
    """The Connect worker has not done in time what it was asked for."""


class ConnectRefused(TributaryError):
    """The Connect worker refuses a request."""


class ConnectorUnknown(ConnectRefused):
    """The Connect worker does not know the connector, or not its status yet."""


class ConnectorFailed(TributaryError):
    """A connector or one of its tasks stopped with an error, or did not start in time."""


@dataclass(frozen=True)
class TaskStatus:
    """A task's state. `trace` is the Java stack trace of a failed task, and empty otherwise."""

    id: int
    state: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """The state of a connector and its tasks, in Connect's words.

    The states are RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED and RESTARTING.
    """

    name: str
    state: str
    tasks: tuple[TaskStatus, ...]
    trace: str = ""

    @property
    def is_running(self) -> bool:
        return (
            self.state == "RUNNING"
            and bool(self.tasks)
            and all(task.state == "RUNNING" for task in self.tasks)
        )

    @property
    def failure(self) -> str | None:
        """The innermost cause of the first failure, or None if nothing failed."""
        for state, trace in ((self.state, self.trace), *((task.state, task.trace) for task in self.tasks)):
            if state == "FAILED":
                return _cause(trace)
        return None

    @property
    def remedies(self) -> Remedies:
        """What to do about the failure. Empty if nothing failed."""
        failure = self.failure
        if failure is None:
            return ()
        if known := _known_remedies(failure):
            return known
        lost = self.lost_peer
        first = (
            "See the log of the Connect worker. Once the cause is gone, start the connector again."
            if lost is None
            else f"The {lost} does not answer. Once it does, start the connector again."
        )
        return remedies_of([first, BringUp()])

    @property
    def lost_peer(self) -> Peer | None:
        """What did not answer, if that and nothing else made the connector fail. A restart can help then."""
        if self.failure is None or _known_remedies(self.failure):
            return None
        traces = (self.trace, *(task.trace for task in self.tasks if task.state == "FAILED"))
        lost = [trace for trace in traces if _LOST_CONNECTION.search(trace)]
        if not lost:
            return None
        return "schema registry" if any(map(_OF_A_REGISTRY.search, lost)) else "database"


@dataclass(frozen=True)
class ConnectRest:
    """A worker's REST interface.

    url              such as http://127.0.0.1:8083
    timeout_seconds  how long to wait for an answer
    """

    url: str
    timeout_seconds: float = _REQUEST_SECONDS

    def put(self, connector: ConnectorConfig) -> None:
        """Create the connector or change its config. Raise ConnectRefused with the reason."""
        self._request(
            "PUT", f"/connectors/{quote(connector.name)}/config", dict(connector.config), connector.name
        )

    def connectors(self) -> tuple[str, ...]:
        """Return the names of all connectors, sorted."""
        return tuple(sorted(self._request("GET", "/connectors")))

    def config(self, name: str) -> dict[str, str] | None:
        """Return the connector's current config, or None if the connector does not exist."""
        if name not in self.connectors():
            return None
        answer = self._request("GET", f"/connectors/{quote(name)}/config", where=name)
        return {option: value for option, value in answer.items() if option != "name"}

    def status(self, name: str) -> ConnectorStatus:
        """Return the connector's status. Raise ConnectorUnknown."""
        answer = self._request("GET", f"/connectors/{quote(name)}/status", where=name)
        return ConnectorStatus(
            name=name,
            state=answer["connector"]["state"],
            trace=answer["connector"].get("trace", ""),
            tasks=tuple(
                TaskStatus(task["id"], task["state"], task.get("trace", "")) for task in answer["tasks"]
            ),
        )

    def wait_running(
        self,
        names: Iterable[str],
        timeout_seconds: float,
        progress: Callable[[ConnectorStatus], None] = lambda _: None,
        *,
        settle_seconds: float = 3.0,
        running_seconds: float = 0.0,
    ) -> None:
        """Return when the connectors and all their tasks run. Raise ConnectorFailed with the cause.

        settle_seconds   how long a failure must last before it counts. Right after a PUT, the worker still
                         reports the old connector's status.
        running_seconds  how long a connector must run before that counts. Only after its task is reported as
                         running does Debezium check that the database still has what it needs.
        """
        for name in names:
            began = time.monotonic()
            failed_since: float | None = None
            running_since: float | None = None
            while True:
                status, now = self.status_if_known(name), time.monotonic()
                running_since = running_since or now if status.is_running else None
                if running_since is not None and now >= running_since + running_seconds:
                    break
                progress(status)
                failed_since = None if status.failure is None else failed_since or now
                if failed_since is not None and now >= failed_since + settle_seconds:
                    raise _failed(status)
                if now > began + timeout_seconds:
                    raise _not_in_time(status, timeout_seconds)
                time.sleep(_POLL_SECONDS)

    def create_stopped(self, connector: ConnectorConfig) -> None:
        """Create the connector without starting it (KIP-980, Kafka 3.7). Raise ConnectRefused."""
        body = {"name": connector.name, "config": dict(connector.config), "initial_state": "STOPPED"}
        self._request("POST", "/connectors", body, connector.name)

    def offset(self, name: str) -> dict[str, Any] | None:
        """Return the offset that is stored for a connector with one source partition (KIP-875).

        None: no offset is stored yet. Raise ConnectorUnknown."""
        answer = self._request("GET", f"/connectors/{quote(name)}/offsets", where=name)
        # Debezium sends some notifications without an offset, and without a partition.
        return next((entry["offset"] for entry in answer["offsets"] if entry["offset"]), None)

    def forget_offsets(self, name: str) -> None:
        """Delete the offsets of a stopped connector (KIP-875). Its next start is like its first."""
        self._request("DELETE", f"/connectors/{quote(name)}/offsets", where=name)

    def restart_failed(self, name: str) -> None:
        """Restart what has failed of a connector: itself and its tasks (KIP-745). Raise ConnectorUnknown."""
        query = "includeTasks=true&onlyFailed=true"
        self._request("POST", f"/connectors/{quote(name)}/restart?{query}", where=name)

    def delete(self, name: str) -> None:
        """Delete the connector but keep its offsets. Raise ConnectorUnknown."""
        self._request("DELETE", f"/connectors/{quote(name)}", where=name)

    def status_if_known(self, name: str) -> ConnectorStatus:
        """Return the status, or UNASSIGNED until the worker has read it back from its status topic."""
        try:
            return self.status(name)
        except ConnectorUnknown:
            return ConnectorStatus(name, "UNASSIGNED", ())

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, where: str | None = None
    ) -> Any:
        """Send a request and return the answer's JSON. Wait while the worker rebalances or is busy."""
        deadline = time.monotonic() + _REBALANCE_SECONDS
        times = _TIMES.get(method, 1)
        while True:
            answer = self._send(method, path, body)
            if _is_busy(answer):
                times, deadline = times - 1, time.monotonic() + _REBALANCE_SECONDS
                if times == 0:
                    raise ConnectBusy(
                        "the Kafka Connect worker is too busy to answer",
                        where=where or self.url,
                        found=_message(answer),
                        remedy=[CheckStatus(), "The log of the worker says what it does."],
                    )
            elif not _is_rebalancing(answer) or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        if not answer.ok:
            refused = ConnectorUnknown if answer.status_code == _NOT_FOUND else ConnectRefused
            raise refused(
                "the Kafka Connect worker refused the request",
                where=where or self.url,
                found=_message(answer),
            )
        return answer.json() if answer.content else None

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> requests.Response:
        try:
            return requests.request(method, f"{self.url}{path}", json=body, timeout=self.timeout_seconds)
        except requests.RequestException as error:
            raise ConnectUnreachable(
                "the Kafka Connect worker does not answer",
                where=self.url,
                found=type(error).__name__,
                remedy=[CheckStatus(), "The log of the worker says why it does not run."],
            ) from error


def _known_remedies(failure: str) -> Remedies:
    known = {**remedies(), **avro_converter.REMEDIES, **_REMEDIES}
    return next((found for words, found in known.items() if words in failure), ())


def _failed(status: ConnectorStatus) -> ConnectorFailed:
    return ConnectorFailed(
        "the connector failed", where=status.name, found=status.failure, remedy=status.remedies
    )


def _not_in_time(status: ConnectorStatus, timeout_seconds: float) -> ConnectorFailed:
    return ConnectorFailed(
        f"the connector is still not running after {timeout_seconds:g} seconds",
        where=status.name,
        found=", ".join([status.state, *(task.state for task in status.tasks)]),
        expected="RUNNING, for the connector and its tasks",
        remedy="See the log of the Connect worker.",
    )


def _is_rebalancing(answer: requests.Response) -> bool:
    return answer.status_code == _CONFLICT or (not answer.ok and _REBALANCE_EXPECTED in _message(answer))


def _is_busy(answer: requests.Response) -> bool:
    return not answer.ok and _message(answer).startswith(_BUSY)


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code} {answer.reason}"


def _cause(trace: str) -> str:
    """Return the innermost cause with a message in a Java stack trace, without the class's package."""
    lines: Sequence[str] = trace.splitlines() or ["no trace"]
    later = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    causes = [lines[0], *later]
    # A class alone says little: a statement that cannot be parsed ends in a NoViableAltException.
    told = [cause for cause in causes if ": " in cause]
    name, colon, message = (told or causes)[-1].partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{message}"
