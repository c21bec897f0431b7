"""Whether a port of this machine is free for a command that serves something."""

from __future__ import annotations

from tributary.contract.errors import TributaryError


class PortTaken(TributaryError):
    """Another process listens on the port."""


def require_free(port: int, what: str) -> None:
    """Raise `PortTaken` if another process listens on the port. `what` names the port in the error."""
    from tributary.local.state import is_free

    if not is_free(port):
        raise PortTaken(
            f"{what} is in use",
            where=f"127.0.0.1:{port}",
            remedy="Stop that process, or name another port with --port.",
        )
