"""An HTTP server for tests of what its answers lead to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    """What the server was asked. `login` is the header `Authorization`."""

    path: str
    login: str | None
    body: str = ""


@dataclass
class Answering:
    """Gives one answer to everything, and remembers what it was asked."""

    address: str
    status: int = 200
    body: str = "{}"
    asked: list[Request] = field(default_factory=list)


@contextmanager
def answering_server() -> Iterator[Answering]:
    """Answer on a port of this machine until the context ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            told.asked.append(Request(self.path, self.headers.get("Authorization"), body))
            self.send_response(told.status)
            self.end_headers()
            self.wfile.write(told.body.encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = Answering(f"http://127.0.0.1:{running.server_port}")
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        running.shutdown()
        running.server_close()
        thread.join(10)
