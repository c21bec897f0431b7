"""Knows when what Connect says of a connector is to be believed, and makes it anew where it is not."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from connectors.connect_rest import ConnectorStatus, ConnectorUnknown, ConnectRest
from connectors.deployment import ConnectorConfig
from tributary.local.process import POLL_SECONDS, StartCancelled

CONNECTOR_SECONDS = 90.0
"""How long a connector may take until it and its task run, or until it is gone."""

_SECONDS_TO_RUN = 1.5
"""For so long a new one has to have run."""


@dataclass(frozen=True)
class ConnectorKeeper:
    """Brings connectors to the state that they ought to be in. Each call gives up once `cancelled` is set."""

    rest: ConnectRest
    cancelled: threading.Event

    def ensure_running(self, connector: ConnectorConfig, worker_has_died: bool) -> bool:
        """Returns once the connector runs; True if it had to be made (anew). Raises ConnectorFailed.

        It is made anew if it has another config, has failed, or its worker has died: that leaves behind that
        its tasks run, and only the state of a new connector is surely its own. Its offsets are not lost.
        """
        known = self.rest.config(connector.name)
        is_anew = known != connector.config or worker_has_died or self._has_failed(connector.name)
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

    def remove(self, name: str) -> None:
        """Returns once the worker has forgotten the connector's state too. Its offsets stay.

        A worker that has not joined its group yet lists no connector, but knows the states of all: it can
        wait for the session of a killed one to end.
        """
        deadline = time.monotonic() + CONNECTOR_SECONDS
        while time.monotonic() < deadline and self._is_known(name):
            self._give_up_if_cancelled()
            with suppress(ConnectorUnknown):
                self.rest.delete(name)
            time.sleep(POLL_SECONDS)

    def forget_offsets(self, connector: ConnectorConfig) -> None:
        """Of a connector that was removed. Connect lets go of those only that are of one which is stopped."""
        self.rest.create_stopped(connector)
        self.rest.forget_offsets(connector.name)
        self.remove(connector.name)

    def _is_known(self, name: str) -> bool:
        return self._status(name) is not None or name in self.rest.connectors()

    def _has_failed(self, name: str) -> bool:
        status = self._status(name)
        return status is None or status.failure is not None

    def _status(self, name: str) -> ConnectorStatus | None:
        try:
            return self.rest.status(name)
        except ConnectorUnknown:
            return None

    def _give_up_if_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise StartCancelled("connectors")
