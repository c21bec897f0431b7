"""Only pages that the console served can talk to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tributary.console.guard import OwnPagesOnly, is_own

HOSTS = frozenset({"127.0.0.1:8642", "localhost:8642"})


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"host": "127.0.0.1:8642"}, True),
        ({"host": "localhost:8642", "origin": "http://localhost:8642"}, True),
        ({"host": "127.0.0.1:8642", "origin": "http://127.0.0.1:8642"}, True),
        ({"host": "127.0.0.1:8642", "origin": "https://evil.example"}, False),
        ({"host": "127.0.0.1:8642", "origin": "null"}, False),
        ({"host": "127.0.0.1:8642", "origin": "http://localhost:8642"}, False),
        ({"host": "evil.example:8642"}, False),
        ({"host": "127.0.0.1"}, False),
        ({}, False),
    ],
)
def test_another_host_or_origin_is_told_apart(headers: dict[str, str], own: bool) -> None:
    assert (
        is_own({name.encode(): value.encode() for name, value in headers.items()}, HOSTS.__contains__) == own
    )


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("origin", [b"http://127.0.0.1:8642", b"http://evil.example"])
def test_a_foreign_request_never_reaches_a_page(kind: str, origin: bytes) -> None:
    reached: list[str] = []
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, _: Any, send: Any) -> None:
        reached.append(scope["type"])
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {}

    scope = {"type": kind, "headers": [(b"host", b"127.0.0.1:8642"), (b"origin", origin)]}
    asyncio.run(OwnPagesOnly(app, HOSTS.__contains__)(scope, receive, send))

    if origin == b"http://evil.example":
        assert reached == []
        assert sent[0].get("status") == 403 or sent[0]["type"] == "websocket.close"
    else:
        assert reached == [kind]
        assert kind == "websocket" or dict(sent[0]["headers"])[b"x-content-type-options"] == b"nosniff"
