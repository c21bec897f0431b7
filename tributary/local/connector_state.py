"""Bring connectors to their wanted state, and recreate a connector whose reported state cannot be trusted."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from connectors.connect_rest import ConnectorFailed, ConnectorStatus, ConnectorUnknown, ConnectRest
from connectors.deployment import ConnectorConfig
from tributary.local.process import POLL_SECONDS, StartCancelled

CONNECTOR_SECONDS = 90.0
"""The timeout until a connector and its task run, or until the connector is gone."""

_SECONDS_TO_RUN = 1.5
"""The time for which a new connector must have run."""
_STOPPED = ("STOPPED", "PAUSED")
"""The states in which a connector waits for somebody. `forget_offsets` leaves one if it is interrupted."""


@dataclass(frozen=True)
class ConnectorKeeper:
    """Brings connectors to their wanted state. Each call gives up once `cancelled` is set."""

    rest: ConnectRest
    cancelled: threading.Event

    def ensure_running(self, connector: ConnectorConfig, *, recreate: bool) -> bool:
        """Return once the connector runs, and return True if it was created or recreated.

        It is recreated if its config differs, if it has failed or is stopped, or with `recreate`. A worker
        that has died needs that: it leaves the state "running" behind, so only the state of a new connector
        is certain to be its own. The offsets are kept. Raises ConnectorFailed.
        """
        known = self.rest.config(connector.name)
        is_anew = known != connector.config or recreate or self._stands_still(connector.name)
        if is_anew:
            self.remove(connector.name)
            self.rest.put(connector)
        self.rest.wait_running(
            [connector.name],
            CONNECTOR_SECONDS,
            lambda _: self._give_up_if_cancelled(),
            running_seconds=_SECONDS_TO_RUN if is_anew else 0.0,
        )
        return is_anew

    def failure(self, name: str) -> str | None:
        """Return why a connector has failed. None: it has not, or there is none."""
        status = self._status(name)
        return None if status is None else status.failure

    def remove(self, name: str) -> None:
        """Return once the worker has forgotten the connector's state too. The offsets are kept.

        A worker that has not joined its group yet, because a killed worker's session must expire first, lists
        no connector but knows the states of all. Raises ConnectorFailed if that takes too long.
        """
        deadline = time.monotonic() + CONNECTOR_SECONDS
        is_asked = False
        while self._is_known(name):
            self._give_up_if_cancelled()
            if is_asked and time.monotonic() >= deadline:
                raise ConnectorFailed(
                    f"the connector is still there {CONNECTOR_SECONDS:g} seconds after its removal",
                    where=name,
                    remedy="See the log of the Connect worker.",
                )
            with suppress(ConnectorUnknown):
                self.rest.delete(name)
            is_asked = True
            time.sleep(POLL_SECONDS)

    def forget_offsets(self, connector: ConnectorConfig) -> None:
        """Delete the offsets of a removed connector. Connect does so only for a stopped connector."""
        self.rest.create_stopped(connector)
        self.rest.forget_offsets(connector.name)
        self.remove(connector.name)

    def _is_known(self, name: str) -> bool:
        return self._status(name) is not None or name in self.rest.connectors()

    def _stands_still(self, name: str) -> bool:
        status = self._status(name)
        return status is None or status.failure is not None or status.state in _STOPPED

    def _status(self, name: str) -> ConnectorStatus | None:
        try:
            return self.rest.status(name)
        except ConnectorUnknown:
            return None

    def _give_up_if_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise StartCancelled("connectors")
