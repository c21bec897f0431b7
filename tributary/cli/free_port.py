"""Whether a port of this machine is free for a command that serves something."""

from __future__ import annotations

import errno
import socket

from tributary.contract.errors import TributaryError


class PortTaken(TributaryError):
    """Another process listens on the port."""


class NoAddress(TributaryError):
    """An address that this machine does not have."""


def require_free(port: int, what: str, address: str = "127.0.0.1") -> None:
    """Raise PortTaken if another process listens on the port, and NoAddress for a foreign address.

    what  names the port in the error
    """
    try:
        # A port with only old connections (TIME_WAIT) is free.
        family, kind, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise NoAddress(
                f"This machine cannot listen there: {error.strerror}",
                where=f"{address}:{port}",
                expected="an address of this machine, or 0.0.0.0 for all, and a port that you may use",
            ) from error
        raise PortTaken(
            f"{what} is in use",
            where=f"{address}:{port}",
            remedy="Stop that process, or name another port with --port.",
        ) from error
