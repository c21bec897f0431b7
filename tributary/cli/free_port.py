"""Check that a port of this machine is free for a command that serves something."""

from __future__ import annotations

import errno

from tributary.contract.errors import TributaryError


class PortTaken(TributaryError):
    """Another process listens on the port."""


class NoAddress(TributaryError):
    """An address that this machine does not have."""


def require_free(port: int, what: str, address: str = "127.0.0.1") -> None:
    """Raise PortTaken if another process listens on the port, and NoAddress for a foreign address.

    what  names the port in the error
    """
    from tributary.local.state import why_taken

    error = why_taken(port, address)
    if error is None:
        return
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
