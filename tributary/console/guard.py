"""Who may talk to the console: only its own pages, and on a network only those who know the token."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.types import ASGIApp, Receive, Scope, Send

from tributary.console import login

_HEADERS = {
    b"content-security-policy": b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    # Without any referrer, browsers send the login form with the origin "null".
    b"referrer-policy": b"same-origin",
}
_SEE_OTHER, _UNAUTHORIZED, _FORBIDDEN = 303, 401, 403


@dataclass(frozen=True)
class OwnPagesOnly:
    """Refuse requests with another host or origin. `scheme` is that of the console's pages.

    Otherwise a page of another site could reach the console through the browser of somebody who has it open,
    by a form, a web socket, or a name that it lets resolve to this machine.
    """

    app: ASGIApp
    is_host: Callable[[str], bool]
    scheme: str = "http"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_other = scope["type"] not in ("http", "websocket")
        if is_other or is_own(dict(scope["headers"]), self.is_host, self.scheme):
            await self.app(scope, receive, _with_headers(send))
            return
        await _refuse(scope, send, _FORBIDDEN, "This request did not come from a page of the console.")


@dataclass(frozen=True)
class WithToken:
    """Refuse requests without the token: people have it in a cookie, programs in `Authorization: Bearer`."""

    app: ASGIApp
    token: str = field(repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._may_pass(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
            path, query = (scope[part].decode("latin-1") for part in ("raw_path", "query_string"))
            wanted = f"{path}?{query}" if query else path
            location = login.path_to(wanted).encode()
            await _refuse(scope, send, _SEE_OTHER, "Log in first.", {b"location": location})
        else:
            await _refuse(
                scope, send, _UNAUTHORIZED, "This request has no token.", {b"www-authenticate": b"Bearer"}
            )

    def _may_pass(self, scope: Scope) -> bool:
        if scope["type"] == "http" and scope["path"] in (login.PATH, login.LOGOUT):
            return True
        headers = dict(scope["headers"])
        sent = headers.get(b"authorization", b"").decode("latin-1")
        is_program = hmac.compare_digest(sent.encode(), f"Bearer {self.token}".encode())
        return is_program or login.is_session(self.token, _cookie(headers))


def is_own(headers: Mapping[bytes, bytes], is_host: Callable[[str], bool], scheme: str = "http") -> bool:
    """Tell whether a request names the console as its host and, if it names an origin, as its origin."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = headers.get(b"origin")
    if not is_host(host):
        return False
    return origin is None or origin.decode("latin-1").lower() == f"{scheme}://{host}"


def _cookie(headers: Mapping[bytes, bytes]) -> str:
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(login.COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refuse(
    scope: Scope, send: Send, status: int, why: str, headers: Mapping[bytes, bytes] | None = None
) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = f"{why}\n".encode()
    own = {b"content-type": b"text/plain", b"content-length": str(len(body)).encode(), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": [*own.items()]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sent(message: dict) -> None:  # type: ignore[type-arg]
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS.items()]}
        await send(message)

    return sent  # type: ignore[return-value]
