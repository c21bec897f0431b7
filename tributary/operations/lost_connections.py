"""Restart the connectors whose database or schema registry did not answer for a while.

Debezium gives up if the server of a MySQL or MariaDB ends its connection, and Connect if the registry does
not answer for a new schema. MSK Connect restarts such a task by itself, and a worker of your own does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from connectors.connect_rest import ConnectorStatus, ConnectorUnknown, ConnectRest, ConnectUnreachable
from tributary.contract.errors import TributaryError
from tributary.operations.keeping import in_a_thread
from tributary.operations.workspace import Workspace

SECONDS_BETWEEN_LOOKS = 5.0
_DELAYS = (0.0, 10.0, 30.0, 60.0)
"""Seconds from one restart of a connector to the next one. The last one repeats."""
_SECONDS_OF_A_GOOD_RUN = 120.0


class Connectors(Protocol):
    """What the keeper needs of Connect's interface (`ConnectRest`)."""

    def status(self, name: str) -> ConnectorStatus: ...

    def restart_failed(self, name: str) -> None: ...


@dataclass
class _Restarts:
    count: int = 0
    last: float = 0.0


@dataclass
class ConnectionKeeper:
    """Restarts connectors that failed because a database or a registry did not answer, and no others.

    tell  gets what a person should know"""

    connect: Connectors
    names: Callable[[], tuple[str, ...]]
    tell: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _restarts: dict[str, _Restarts] = field(default_factory=dict)

    @staticmethod
    def of(workspace: Workspace, tell: Callable[[str], None]) -> ConnectionKeeper:
        """Return the keeper of all sources that Debezium reads."""
        lake = workspace.lake

        def names() -> tuple[str, ...]:
            return tuple(lake.source_names(source).connector for source in lake.connected_sources)

        return ConnectionKeeper(ConnectRest(workspace.settings.connect_url), names, tell)

    def step(self, now: float) -> None:
        """Restart what has lost its connection and is due. `now` is in seconds of a clock that never stops.

        Raises the errors of the worker's interface."""
        for name in self.names():
            with suppress(ConnectorUnknown):
                status = self.connect.status(name)
                before = self._restarts.setdefault(name, _Restarts())
                lost = status.lost_peer
                if lost is None:
                    if status.is_running and now >= before.last + _SECONDS_OF_A_GOOD_RUN:
                        before.count = 0
                    continue
                if now < before.last + _DELAYS[min(before.count, len(_DELAYS) - 1)]:
                    continue
                if before.count == 0:
                    self.tell(
                        f"{name} lost its {lost}: {status.failure}. It is restarted until that is back."
                    )
                self._restarts[name] = _Restarts(before.count + 1, now)
                self.connect.restart_failed(name)

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
            except TributaryError as error:
                if str(error) != told:
                    self.tell(f"The connectors cannot be looked at now: {error}")
                told = str(error)

    def running(self) -> AbstractContextManager[None]:
        """Run in a thread as long as the context lasts."""
        return in_a_thread(self.run, self.stop, "connections")
