"""Kafka Connect's REST interface: how a connector is put, watched and removed, and what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from connectors.deployment import ConnectorConfig
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import CheckStatus, ReadRunbook, Remedies, TakeSnapshot, remedies_of

_POLL_SECONDS = 0.2
_REBALANCE_SECONDS = 60.0
"""A worker that was killed is missed by its group only after a session, of 10 seconds by default."""
_REQUEST_SECONDS = 60
_NOT_FOUND = 404
_CONFLICT = 409
_REBALANCE_EXPECTED = "a rebalance is expected"
"""A read of a connector's config answers 500 with these words (DistributedHerder.checkRebalanceNeeded); what
changes something answers 409 (HerderRequestHandler.completeOrForwardRequest)."""


_REMEDIES = {
    # Debezium cannot go on from its offset (BaseSourceTask#validateSchemaHistory).
    "no longer available on the server": remedies_of(
        ["Its replication slot was dropped or has lost its log.", TakeSnapshot()]
    ),
    # Kafka's producer (KafkaProducer#ensureValidRecordSize).
    "the value of the max.request.size configuration": remedies_of(
        ["An event is larger than [lake].max_event_mb.", ReadRunbook("event too large")]
    ),
}
"""By a part of the words of the innermost cause."""


class ConnectUnreachable(TributaryError):
    """The Connect worker does not answer."""


class ConnectRefused(TributaryError):
    """The Connect worker answers that it will not."""


class ConnectorUnknown(ConnectRefused):
    """The Connect worker knows of no such connector, or of no status of it."""


class ConnectorFailed(TributaryError):
    """A connector or one of its tasks stopped with an error, or did not start in time."""


@dataclass(frozen=True)
class TaskStatus:
    """`trace` is the Java stack trace of a task that failed, else empty."""

    id: int
    state: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """States are Connect's: RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, RESTARTING."""

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
        """The innermost cause of the first failure; None where nothing failed."""
        for state, trace in ((self.state, self.trace), *((task.state, task.trace) for task in self.tasks)):
            if state == "FAILED":
                return _cause(trace)
        return None

    @property
    def remedies(self) -> Remedies:
        """What to do about the failure; nothing where nothing failed."""
        failure = self.failure
        if failure is None:
            return ()
        found = (remedies for words, remedies in _REMEDIES.items() if words in failure)
        return next(found, remedies_of("See the log of the Connect worker."))


@dataclass(frozen=True)
class ConnectRest:
    """A worker's REST interface at `url`, such as http://127.0.0.1:8083."""

    url: str

    def put(self, connector: ConnectorConfig) -> None:
        """Creates the connector, or changes its config. Raises ConnectRefused, which tells what is wrong."""
        self._request(
            "PUT", f"/connectors/{quote(connector.name)}/config", dict(connector.config), connector.name
        )

    def connectors(self) -> tuple[str, ...]:
        """The names of all connectors, sorted."""
        return tuple(sorted(self._request("GET", "/connectors")))

    def config(self, name: str) -> dict[str, str] | None:
        """The config that the connector was last given; None where there is no such connector."""
        if name not in self.connectors():
            return None
        answer = self._request("GET", f"/connectors/{quote(name)}/config", where=name)
        return {option: value for option, value in answer.items() if option != "name"}

    def status(self, name: str) -> ConnectorStatus:
        """Raises ConnectorUnknown."""
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
        """Returns when the connectors and all their tasks run. Raises ConnectorFailed, with the cause.

        A failure counts when it has lasted for `settle_seconds`: right after a connector was put the
        worker still tells of the one before. That it runs counts when it has for `running_seconds`: Debezium
        looks whether its slot holds what it needs when its task is said to run already.
        """
        for name in names:
            began = time.monotonic()
            failed_since: float | None = None
            running_since: float | None = None
            while True:
                status, now = self._status_if_known(name), time.monotonic()
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
        """Creates the connector without starting it (KIP-980, Kafka 3.7). Raises ConnectRefused."""
        body = {"name": connector.name, "config": dict(connector.config), "initial_state": "STOPPED"}
        self._request("POST", "/connectors", body, connector.name)

    def forget_offsets(self, name: str) -> None:
        """Of a connector that is stopped (KIP-875): its next start is its first."""
        self._request("DELETE", f"/connectors/{quote(name)}/offsets", where=name)

    def delete(self, name: str) -> None:
        """Removes the connector; its offsets stay. Raises ConnectorUnknown."""
        self._request("DELETE", f"/connectors/{quote(name)}", where=name)

    def _status_if_known(self, name: str) -> ConnectorStatus:
        """The status; UNASSIGNED in the moment before the worker has read it back from its status topic."""
        try:
            return self.status(name)
        except ConnectorUnknown:
            return ConnectorStatus(name, "UNASSIGNED", ())

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, where: str | None = None
    ) -> Any:
        """The answer's JSON. A worker that rebalances is asked again."""
        deadline = time.monotonic() + _REBALANCE_SECONDS
        while True:
            try:
                answer = requests.request(method, f"{self.url}{path}", json=body, timeout=_REQUEST_SECONDS)
            except requests.RequestException as error:
                raise ConnectUnreachable(
                    "the Kafka Connect worker does not answer",
                    where=self.url,
                    found=type(error).__name__,
                    remedy=[CheckStatus(), "The log of the worker says why it does not run."],
                ) from error
            if not _is_rebalancing(answer) or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        if not answer.ok:
            refused = ConnectorUnknown if answer.status_code == _NOT_FOUND else ConnectRefused
            raise refused("the Kafka Connect worker refuses", where=where or self.url, found=_message(answer))
        return answer.json() if answer.content else None


def _failed(status: ConnectorStatus) -> ConnectorFailed:
    return ConnectorFailed(
        "the connector failed", where=status.name, found=status.failure, remedy=status.remedies
    )


def _not_in_time(status: ConnectorStatus, timeout_seconds: float) -> ConnectorFailed:
    return ConnectorFailed(
        f"the connector does not run after {timeout_seconds:g} seconds",
        where=status.name,
        found=", ".join([status.state, *(task.state for task in status.tasks)]),
        expected="RUNNING, with its tasks",
        remedy="See the log of the Connect worker.",
    )


def _is_rebalancing(answer: requests.Response) -> bool:
    return answer.status_code == _CONFLICT or (not answer.ok and _REBALANCE_EXPECTED in _message(answer))


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code} {answer.reason}"


def _cause(trace: str) -> str:
    """The innermost cause that a Java stack trace names, without the class's package."""
    lines: Sequence[str] = trace.splitlines() or ["no trace"]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    line = (causes or lines)[-1 if causes else 0].removeprefix("Caused by: ")
    name, colon, message = line.partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{message}"
