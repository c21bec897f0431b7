"""What all servers on this machine have in common: how they start, answer and stop."""

from __future__ import annotations

import signal
import socket
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from tributary.local.process import (
    Command,
    ProcessRecord,
    ServiceFailed,
    start_process,
    stop_process,
    wait_until_healthy,
)


class LocalServer(ABC):
    """A server on a loopback port, as a value. Only `start` and `stop` change anything.

    service                its name: of its process, its log and its port
    of_every_lake          whether every lake with a database needs it
    ends_first             whether it writes to other servers, and so has to stop before them
    start_timeout_seconds  how long it may take until it answers
    end_signal             asks it to end cleanly
    patience_seconds       how long a clean end may take
    run                    the folder with the records of running processes
    port                   where the server listens
    """

    service: ClassVar[str]
    of_every_lake: ClassVar[bool] = False
    ends_first: ClassVar[bool] = False
    start_timeout_seconds: ClassVar[float] = 60.0
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    patience_seconds: ClassVar[float] = 10.0

    run: Path
    port: int

    @abstractmethod
    def command(self) -> Command:
        """Write the files that the server needs, and return the command that runs it."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server does what it is for. Raises ServiceFailed if it never will."""

    def start(self, cancelled: threading.Event) -> ProcessRecord:
        """Start the server and wait until it answers.

        Raises ServiceFailed, or StartCancelled if `cancelled` is set, and the errors of `command`.
        """
        record = start_process(self.command(), self.run)
        wait_until_healthy(record, self._has_started, self.start_timeout_seconds, cancelled)
        return record

    def _has_started(self) -> bool:
        # A client takes much more processor time, which the server needs to start.
        return _listens(self.port) and self.answers()

    @classmethod
    def stop(cls, run: Path, patience_seconds: float | None = None) -> bool:
        """Stop the server that is recorded in the folder `run`. Return False if it was not running."""
        patience = cls.patience_seconds if patience_seconds is None else patience_seconds
        return stop_process(cls.service, run, cls.end_signal, patience)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def password_refused(title: str, data: Path) -> ServiceFailed:
    """Return the error of a database server that refuses the administrator's password."""
    return ServiceFailed(
        f"the local {title} does not accept the password of this state folder",
        where=str(data),
        remedy="Choose another folder with --state. This folder's settings do not belong to its data",
    )
