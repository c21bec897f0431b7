"""Log the requests to an S3 server with a proxy.

`python -m bench.s3_requests PORT SERVER_PORT LOG DELAY` runs the proxy until it is stopped. The proxy
forwards each request after DELAY seconds. It parses only where an HTTP message ends, so a signed request
arrives unchanged.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from urllib.parse import parse_qs, urlsplit

LONGEST_HEAD = 1 << 20
NO_BODY = (204, 304)


@dataclass(frozen=True)
class Request:
    """A request: its time of arrival (seconds since 1970), the seconds until its answer, and its content."""

    at: float
    seconds: float
    method: str
    target: str
    status: int
    sent_bytes: int
    received_bytes: int

    @property
    def kind(self) -> str:
        """The request's kind, as S3's prices and limits name it."""
        parts = urlsplit(self.target)
        query = parse_qs(parts.query, keep_blank_values=True)
        is_of_bucket = parts.path.strip("/").count("/") == 0
        if self.method == "GET" and is_of_bucket:
            return "LIST"
        if self.method == "POST" and "delete" in query:
            return "DELETE many"
        if self.method == "PUT" and "partNumber" in query:
            return "PUT part"
        return self.method


@dataclass(frozen=True)
class RequestLog:
    """The file in which the proxy logs requests."""

    path: Path

    def position(self) -> int:
        """Return the current end of the log."""
        return self.path.stat().st_size

    def since(self, position: int) -> tuple[Request, ...]:
        with self.path.open() as file:
            file.seek(position)
            return tuple(Request(**json.loads(line)) for line in file)


@contextmanager
def counted_requests(
    port: int, server_port: int, log: Path, delay_seconds: float = 0.0
) -> Iterator[RequestLog]:
    """Run a proxy on `port` in front of the server within the context. It delays each request."""
    log.touch()
    arguments = [str(port), str(server_port), str(log), str(delay_seconds)]
    with Popen([sys.executable, "-m", "bench.s3_requests", *arguments], stdin=DEVNULL) as process:
        try:
            _wait_until_open(port)
            yield RequestLog(log)
        finally:
            process.terminate()


def by_kind(requests: tuple[Request, ...]) -> Mapping[str, int]:
    return dict(sorted(Counter(request.kind for request in requests).items()))


def _wait_until_open(port: int, patience_seconds: float = 10.0) -> None:
    import socket

    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@dataclass
class _Open:
    """A request without an answer yet."""

    at: float
    began: float
    method: str
    target: str
    sent_bytes: int = 0


class _Connection:
    def __init__(self, server_port: int, log: Path, delay_seconds: float) -> None:
        self._server_port = server_port
        self._delay_seconds = delay_seconds
        self._log = log.open("a")
        self._open: deque[_Open] = deque()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port, limit=LONGEST_HEAD)
        passing = (
            asyncio.create_task(self._pass_requests(client, to_server)),
            asyncio.create_task(self._pass_responses(server, to_client)),
        )
        try:
            # When one side closes, the other has nobody left to talk to.
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            for writer in (to_client, to_server):
                writer.close()
            self._log.close()

    async def _pass_requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while head := await read_head(client):
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            request = _Open(time.time(), time.perf_counter(), method, target)
            self._open.append(request)
            await asyncio.sleep(self._delay_seconds)
            to_server.write(head)
            request.sent_bytes = await pass_body(client, to_server, headers_of(head), may_last=False)

    async def _pass_responses(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while head := await read_head(server):
            status = int(head.split(b" ", 2)[1])
            to_client.write(head)
            if status == 100:
                await to_client.drain()
                continue
            request = self._open.popleft()
            has_body = request.method != "HEAD" and status not in NO_BODY
            received = await pass_body(server, to_client, headers_of(head), may_last=True) if has_body else 0
            await to_client.drain()
            self._write(request, status, received)

    def _write(self, request: _Open, status: int, received: int) -> None:
        done = Request(
            at=request.at,
            seconds=time.perf_counter() - request.began,
            method=request.method,
            target=request.target,
            status=status,
            sent_bytes=request.sent_bytes,
            received_bytes=received,
        )
        self._log.write(json.dumps(asdict(done)) + "\n")
        self._log.flush()


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """Read a message up to its body, or nothing if the connection is closed. Raise `IncompleteReadError`."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise
        return b""


def headers_of(head: bytes) -> Mapping[str, str]:
    """Return the headers by lower-case name."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


async def pass_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str], *, may_last: bool
) -> int:
    """Forward a body and return its length. `may_last`: a body without a length ends with the connection."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _pass_chunks(reader, writer)
    if "content-length" in headers:
        return await _pass_bytes(reader, writer, int(headers["content-length"]))
    return await _pass_bytes(reader, writer, None) if may_last else await _pass_bytes(reader, writer, 0)


async def _pass_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> int:
    passed = 0
    while length is None or passed < length:
        data = await reader.read(1 << 16 if length is None else min(1 << 16, length - passed))
        if not data:
            break
        writer.write(data)
        await writer.drain()
        passed += len(data)
    await writer.drain()
    return passed


async def _pass_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    passed = 0
    while True:
        size_line = await reader.readuntil(b"\r\n")
        writer.write(size_line)
        size = int(size_line.split(b";")[0], 16)
        writer.write(await reader.readexactly(size + 2))
        await writer.drain()
        passed += size
        if size == 0:
            return passed


async def _serve(port: int, server_port: int, log: Path, delay_seconds: float) -> None:
    async def connected(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            await _Connection(server_port, log, delay_seconds).serve(client, to_client)
        except ConnectionError as error:
            print(f"A connection to the S3 server was lost: {error}", file=sys.stderr)

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=LONGEST_HEAD)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])))
