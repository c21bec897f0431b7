"""Who may talk to the console: only pages that the console itself served."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


@dataclass(frozen=True)
class OwnPagesOnly:
    """Refuse requests with another host or origin.

    Otherwise a page of another site could reach the console through the browser of somebody who has it open,
    by a form, a web socket, or a name that it lets resolve to this machine.
    """

    app: ASGIApp
    hosts: Collection[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or is_own(dict(scope["headers"]), self.hosts):
            await self.app(scope, receive, _with_headers(send))
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        body = b"This request did not come from a page of the console.\n"
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def is_own(headers: dict[bytes, bytes], hosts: Collection[str]) -> bool:
    """Tell whether a request names the console as its host and, if it names an origin, as its origin."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = headers.get(b"origin")
    if host not in hosts:
        return False
    return origin is None or urlsplit(origin.decode("latin-1").lower()).netloc in hosts


def _with_headers(send: Send) -> Send:
    async def sent(message: dict) -> None:  # type: ignore[type-arg]
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS.items()]}
        await send(message)

    return sent  # type: ignore[return-value]
