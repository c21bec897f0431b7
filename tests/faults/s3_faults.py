"""A proxy in front of a real S3 server, which fails on request."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

from bench.s3_requests import LONGEST_HEAD, NO_BODY, headers_of, pass_body, read_head

Moment = Literal["before", "after"]

_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
)
_UNAVAILABLE = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n" % len(
    _SLOW_DOWN
)


@dataclass(frozen=True)
class S3Request:
    """A request. `key` is the object's key in its bucket, and empty if the request is about the bucket."""

    method: str
    bucket: str
    key: str
    is_copy: bool


@dataclass(frozen=True)
class Point:
    """A request that shows a writer's progress.

    It is the first one with this method and a key that the pattern matches up to the key's end.
    """

    name: str
    method: str
    key: str

    def is_at(self, request: S3Request) -> bool:
        return request.method == self.method and re.search(f"{self.key}$", request.key) is not None


REMOVAL = r"\A"
"""The key of a `Point` for a POST that removes objects, which is a request about the bucket."""


@dataclass
class FaultyS3:
    """The proxy's behavior: it forwards everything except what `refuses` matches, `delay_seconds` late.

    is_reached  set once the request of the last `stop_at` has come
    """

    port: int
    server_port: int
    delay_seconds: float = 0.0
    refuses: Callable[[S3Request], bool] = lambda _: False
    is_reached: threading.Event = field(default_factory=threading.Event)
    refused: int = 0
    _at: tuple[Point, Moment, Literal["cut", "hold"]] | None = None
    _is_cut: bool = False
    _is_holding: bool = False

    def stop_at(self, point: Point, moment: Moment) -> None:
        """From this request on, with or without it, forward nothing and answer nobody.

        To the server it looks as if all its clients had ended.
        """
        self.is_reached.clear()
        self._at = (point, moment, "cut")

    def hold_at(self, point: Point, moment: Moment) -> None:
        """Hold back this request, or its answer, until `mend`, as if its sender were paused.

        Other requests are forwarded.
        """
        self.is_reached.clear()
        self._at = (point, moment, "hold")

    def mend(self) -> None:
        """Forward everything again."""
        self._at, self._is_cut, self._is_holding, self.delay_seconds = None, False, False, 0.0
        self.refuses, self.refused = lambda _: False, 0

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Serve one connection, request by request.

        Each request has a connection of its own to the server. The server closes one that is idle, and a
        request on it would fail although no test asked for that.
        """
        to_server: asyncio.StreamWriter | None = None
        try:
            while head := await read_head(client):
                request = _request_of(head)
                if await self._is_last("before", request):
                    return
                if "expect" in headers_of(head):
                    to_client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                if self.refuses(request):
                    self.refused += 1
                    await pass_body(client, _Nowhere(), headers_of(head), may_last=False)
                    to_client.write(_UNAVAILABLE if request.method == "HEAD" else _UNAVAILABLE + _SLOW_DOWN)
                    await to_client.drain()
                    continue
                await asyncio.sleep(self.delay_seconds)
                server, to_server = await asyncio.open_connection(
                    "127.0.0.1", self.server_port, limit=LONGEST_HEAD
                )
                to_server.write(head)
                await pass_body(client, to_server, headers_of(head), may_last=False)
                answer = await _final_head(server)
                if await self._is_last("after", request):
                    return
                to_client.write(answer)
                if request.method != "HEAD" and _status(answer) not in NO_BODY:
                    await pass_body(server, to_client, headers_of(answer), may_last=True)
                await to_client.drain()
                to_server.close()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # One side closed the connection, which these tests provoke.
        finally:
            for writer in (to_client, to_server):
                if writer is not None:
                    writer.close()

    async def _is_last(self, moment: Moment, request: S3Request) -> bool:
        """Tell whether this request ends all forwarding."""
        if self._at is not None and self._at[1] == moment and self._at[0].is_at(request):
            self._is_cut, self._is_holding = self._at[2] == "cut", self._at[2] == "hold"
            self._at = None
            self.is_reached.set()
            while self._is_holding:
                await asyncio.sleep(0.01)
        return self._is_cut


class _Nowhere(asyncio.StreamWriter):
    """A writer that drops everything."""

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass

    def write(self, data: object) -> None:
        pass

    async def drain(self) -> None:
        pass


@contextmanager
def faulty_s3(port: int, server_port: int) -> Iterator[FaultyS3]:
    """Run the proxy in a thread, on the port in front of the server's."""
    proxy = FaultyS3(port, server_port)
    loop, ready = asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", port, limit=LONGEST_HEAD)
        ready.set()
        async with server:
            await server.serve_forever()

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    task = loop.create_task(serve())
    thread = threading.Thread(target=run, name="faulty S3")
    thread.start()
    try:
        assert ready.wait(10)
        yield proxy
    finally:
        loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join()
        loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _request_of(head: bytes) -> S3Request:
    method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    bucket, _, key = unquote(urlsplit(target).path).strip("/").partition("/")
    return S3Request(method, bucket, key, "x-amz-copy-source" in headers_of(head))


async def _final_head(server: asyncio.StreamReader) -> bytes:
    while _status(head := await read_head(server)) == 100:
        pass
    return head


def _status(head: bytes) -> int:
    if not head:
        raise ConnectionResetError("The S3 server has closed the connection")
    return int(head.split(b" ", 2)[1])
