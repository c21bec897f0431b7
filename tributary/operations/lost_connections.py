"""Start connectors again that have failed, if that helps.

Debezium gives up if the server of a MySQL or MariaDB ends its connection, and Connect if the registry does
not answer for a new schema. MSK Connect restarts such a task by itself, and a worker of your own does not.

It also gives up at the changes of a table that it cannot know, such as a sequence that was created after the
connector's start. Then the connector has to skip that table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from connectors.connect_rest import (
    GLANCE_SECONDS,
    ConnectorStatus,
    ConnectorUnknown,
    ConnectRest,
    ConnectUnreachable,
)
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import as_sentence
from tributary.contract.source import Source
from tributary.local.connector_renewal import leave_out_unknown_table
from tributary.operations.keeping import in_a_thread
from tributary.operations.remedy_words import remedy_words
from tributary.operations.sourced_lake import passing_errors
from tributary.operations.workspace import Workspace

SECONDS_BETWEEN_LOOKS = 5.0
_DELAYS = (0.0, 10.0, 30.0, 60.0)
"""Seconds from one restart of a connector to the next one. The last one repeats."""
_SECONDS_OF_A_GOOD_RUN = 120.0


class Connectors(Protocol):
    """What the keeper needs of Connect's interface (`ConnectRest`)."""

    def status(self, name: str) -> ConnectorStatus: ...

    def restart_failed(self, name: str) -> None: ...


_SECONDS_BETWEEN_TRIES = 30.0
"""How long to wait before looking again whether the same failure comes from a table to skip."""


@dataclass(frozen=True)
class _Try:
    failure: str
    at: float


@dataclass
class _Restarts:
    count: int = 0
    last: float = 0.0


@dataclass
class ConnectionKeeper:
    """Restarts connectors that failed because a database or a registry did not answer.

    tell     gets what a person should know
    skip     lets the connector of a name skip the table at which it failed, if it must; false: it need not
    passing  errors of `skip` after which it is worth trying again"""

    connect: Connectors
    names: Callable[[], tuple[str, ...]]
    tell: Callable[[str], None]
    skip: Callable[[str, str], bool] = lambda *_: False
    passing: tuple[type[Exception], ...] = (TributaryError,)
    stop: threading.Event = field(default_factory=threading.Event)
    _restarts: dict[str, _Restarts] = field(default_factory=dict)
    _tries: dict[str, _Try] = field(default_factory=dict)

    @staticmethod
    def of(workspace: Workspace, tell: Callable[[str], None]) -> ConnectionKeeper:
        """Return the keeper of all sources that Debezium reads."""
        lake = workspace.lake

        def sources() -> dict[str, Source]:
            return {lake.source_names(source).connector: source for source in lake.connected_sources}

        def skip(name: str, failure: str) -> bool:
            return leave_out_unknown_table(
                lake, sources()[name], workspace.state, workspace.settings, remedy_words, failure
            )

        return ConnectionKeeper(
            ConnectRest(workspace.settings.connect_url, GLANCE_SECONDS),
            lambda: tuple(sources()),
            tell,
            skip,
            passing_errors(workspace),
        )

    def step(self, now: float) -> None:
        """Start again what has failed and is due. `now` is in seconds of a clock that never stops.

        Raises the errors of the worker's interface, and those in `passing`."""
        for name in self.names():
            with suppress(ConnectorUnknown):
                status = self.connect.status(name)
                before = self._restarts.setdefault(name, _Restarts())
                if status.failure is None:
                    if status.is_running and now >= before.last + _SECONDS_OF_A_GOOD_RUN:
                        before.count = 0
                    continue
                lost = status.lost_peer
                if lost is None:
                    self._skip(name, status.failure, now)
                    continue
                if now < before.last + _DELAYS[min(before.count, len(_DELAYS) - 1)]:
                    continue
                self._restarts[name] = _Restarts(before.count + 1, now)
                if before.count == 0:
                    self.tell(
                        f"{name} lost its {lost}: {status.failure}. It is restarted until that is back."
                    )
                self.connect.restart_failed(name)

    def _skip(self, name: str, failure: str, now: float) -> None:
        before = self._tries.get(name)
        if before is not None and before.failure == failure and now < before.at + _SECONDS_BETWEEN_TRIES:
            return
        self._tries[name] = _Try(failure, now)
        if self.skip(name, failure):
            self.tell(f"{name} failed: {as_sentence(failure)} It runs again without that table.")

    def run(self) -> None:
        """Look at the connectors until `stop` is set. A worker that is away is looked at again later."""
        told = ""
        while not self.stop.wait(SECONDS_BETWEEN_LOOKS):
            try:
                self.step(time.monotonic())
                told = ""
            except ConnectUnreachable:
                # A worker that died is shown by tributary status, and started again by tributary start.
                continue
            except self.passing as error:
                if str(error) != told:
                    self.tell(f"The connectors cannot be looked at now: {error}")
                told = str(error)

    def running(self) -> AbstractContextManager[None]:
        """Run in a thread as long as the context lasts."""
        return in_a_thread(self.run, self.stop, "connections")
